"""Construct list and dict literals as the expected type.

``f([1])`` of a parameter ``List[Optional[int]]``: an existing ``List[int]`` is not accepted, since the function could
write None to it. A literal has no other reference, so it is constructed with the parameter's type. Its elements are not
converted: an int in a ``List[float]`` would have to become a float, and is an error. The result of ``tolist()`` has no
other reference either: ``x.split(lengths.tolist())`` makes a ``List[int]``.
"""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Node, Value
from rekindle.ir.graph_function import called_function
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    DictType,
    ListType,
    Type,
    has_free_variables,
    join_contents,
    unshaped,
    without_none,
)

_LITERALS: Final = frozenset({"prim::ListConstruct", "prim::DictConstruct"})

TOLIST_ELEMENTS: Final = (INT, FLOAT, BOOL, COMPLEX)
"""The types of the elements of ``x.tolist()``, in the order in which ``prim::tolist`` numbers them."""

TOLIST_OF_ROW: Final = "tolist_of_row"
"""The library function that makes ``x.tolist()`` where no type is declared."""


def can_be_made_as(value: Value, type: Type, *, uses: int = 0, conversions: bool = True) -> bool:
    """Return whether ``value`` is a non-empty literal in a program from Python, with exactly ``uses`` uses, that can be
    constructed as ``type`` instead of its own type. With ``conversions``, this includes a call of ``tolist()``, which
    will raise if the Tensor's elements have another type."""
    wanted = without_none(type)
    if _is_tolist(value.node):
        is_list = isinstance(wanted, ListType) and wanted.element in TOLIST_ELEMENTS
        return conversions and is_list and len(value.uses) == uses
    if value.node.kind not in _LITERALS or not value.node.inputs or len(value.uses) != uses:
        return False
    return value.type != wanted and not has_free_variables(wanted) and _fits(value, wanted, uses)


def _is_tolist(node: Node) -> bool:
    record = called_function(node)
    return record is not None and record.library_name == TOLIST_OF_ROW


def _fits(value: Value, type: Type, uses: int) -> bool:
    node, known, wanted = value.node, value.type, without_none(type)
    is_literal = node.kind in _LITERALS and node.graph.follows_python and len(value.uses) == uses
    if not is_literal or not isinstance(wanted, (ListType, DictType)) or not isinstance(known, (ListType, DictType)):
        return uses == 1 and known.is_subtype_of(type)
    parts = wanted.contained
    return (
        known.kind == wanted.kind
        and not (known.python or wanted.python)
        and all(_fits(item, parts[index % len(parts)], 1) for index, item in enumerate(node.inputs))
    )


def make_as(value: Value, type: Type) -> Value:
    """Change the type of the literal ``value``, and of the literals within it, to ``type``, in place; return it. A call
    of ``tolist()`` is replaced by one that declares ``type``, whose result is returned."""
    wanted = without_none(type)
    if _is_tolist(value.node) and isinstance(wanted, ListType):
        return _declared_tolist(value.node, wanted)
    if value.node.kind in _LITERALS and isinstance(wanted, (ListType, DictType)):
        value.set_type(wanted)
        for index, item in enumerate(value.node.inputs):
            make_as(item, wanted.contained[index % len(wanted.contained)])
    return value


def make_alike(a: Value, b: Value) -> None:
    """Unify the types of the values of two branches by changing literals in place, where that is possible: an empty
    list gets the type of the other one, ``[1]`` and ``[0.5]`` become lists of both number types."""
    if a.type.kind != b.type.kind or a.type == b.type or not isinstance(a.type, (ListType, DictType)):
        return
    for value, other in ((a, b), (b, a)):
        alike = other.type.with_contained(value.type.contained) == value.type  # not where one is a set, or a deque
        if alike and _is_empty(value) and not _is_empty(other):
            value.set_type(unshaped(other.type))
            return
    joined = join_contents(unshaped(a.type), unshaped(b.type))
    if joined is not None and all(value.type == joined or can_be_made_as(value, joined, uses=1) for value in (a, b)):
        for value in (a, b):
            if value.type != joined:
                make_as(value, joined)


def _is_empty(value: Value) -> bool:
    node = value.node
    return len(value.uses) == 1 and (
        node.kind == "prim::EmptyListLiteral" or (node.kind == "prim::DictConstruct" and not node.inputs)
    )


def _declared_tolist(node: Node, type: ListType) -> Value:
    """Replace the call of the library function by ``prim::tolist`` of the declared type."""
    graph = node.graph
    _, row = node.inputs
    with graph.inserting_before(node):
        numbers = [graph.insert_constant(n, range=node.range) for n in (1, TOLIST_ELEMENTS.index(type.element))]
        made = graph.create("prim::tolist", [row, *numbers], types=[type], range=node.range)
        result = graph.insert_node(made).output
    node.destroy()
    return result
