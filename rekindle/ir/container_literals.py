"""List and dict literals that are made as the type that their place wants.

``f([1])`` of a parameter ``List[Optional[int]]``: a ``List[int]`` that exists is none, since the function could write
None to it. A literal is referred to by nothing else, so it is made as what the parameter says. Its elements stay what
they are: an int in a ``List[float]`` would have to become a float, and is refused. The list of a Tensor's numbers
is made on the spot, too: ``x.split(lengths.tolist())`` makes a ``List[int]``.
"""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Node, Value
from rekindle.ir.types import BOOL, COMPLEX, FLOAT, INT, DictType, ListType, Type, has_free_variables, without_none

_LITERALS: Final = frozenset({"prim::ListConstruct", "prim::DictConstruct"})

TOLIST_ELEMENTS: Final = (INT, FLOAT, BOOL, COMPLEX)
"""The types of the elements of ``x.tolist()``, in the order in which ``prim::tolist`` numbers them."""

TOLIST_OF_ROW: Final = "tolist_of_row"
"""The library function that makes ``x.tolist()`` where no type is declared."""


def can_be_made_as(value: Value, type: Type) -> bool:
    """Return whether ``value`` is a literal of a program from Python, not an empty one, which nothing uses so far, and
    holds what a container of ``type`` may hold."""
    if _is_tolist(value.node):
        wanted = without_none(type)
        return isinstance(wanted, ListType) and wanted.element in TOLIST_ELEMENTS and not value.has_uses
    if value.node.kind not in _LITERALS or not value.node.inputs:
        return False
    wanted = without_none(type)
    return value.type != wanted and not value.has_uses and not has_free_variables(wanted) and _fits(value, wanted, 0)


def _is_tolist(node: Node) -> bool:
    callee = node.inputs[0].node if node.kind == "prim::CallFunction" else None
    return callee is not None and callee.attributes.get("name") == TOLIST_OF_ROW


def _fits(value: Value, type: Type, uses: int) -> bool:
    node, known, wanted = value.node, value.type, without_none(type)
    is_literal = node.kind in _LITERALS and node.graph.none_checks is not None and len(value.uses) == uses
    if not is_literal or not isinstance(wanted, (ListType, DictType)) or not isinstance(known, (ListType, DictType)):
        return uses == 1 and known.is_subtype_of(type)
    parts = wanted.contained
    return (
        known.kind == wanted.kind
        and not (known.python or wanted.python)
        and all(_fits(item, parts[index % len(parts)], 1) for index, item in enumerate(node.inputs))
    )


def make_as(value: Value, type: Type) -> Value:
    """Make the literal, and those within it, as the type."""
    wanted = without_none(type)
    if _is_tolist(value.node) and isinstance(wanted, ListType):
        return _declared_tolist(value.node, wanted)
    if value.node.kind in _LITERALS and isinstance(wanted, (ListType, DictType)):
        value.set_type(wanted)
        for index, item in enumerate(value.node.inputs):
            make_as(item, wanted.contained[index % len(wanted.contained)])
    return value


def _declared_tolist(node: Node, type: ListType) -> Value:
    """Replace the call of the library function by ``prim::tolist`` of the declared type."""
    graph = node.graph
    with graph.inserting_before(node):
        numbers = [graph.insert_constant(n, range=node.range) for n in (1, TOLIST_ELEMENTS.index(type.element))]
        made = graph.create("prim::tolist", [node.inputs[1], *numbers], types=[type], range=node.range)
        result = graph.insert_node(made).output
    node.destroy()
    return result
