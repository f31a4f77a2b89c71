"""Support of sets in the rest of the compiler: the names of their methods, and where they are unsupported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import Formatter
from typing import Final

from rekindle.errors import Cause, SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.calls.iterated_arguments import ITERATES
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue, unpack_tuple
from rekindle.ir.types import (
    FLOAT,
    DictType,
    IntType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    holds_set,
    is_python_key,
)

SET_METHODS: Final = frozenset(
    {"add", "discard", "remove", "clear", "copy", "update", "union", "issubset", "issuperset", "isdisjoint"}
    | {"intersection", "intersection_update", "difference", "difference_update"}
    | {"symmetric_difference", "symmetric_difference_update"}
)

_FORMATS: Final = frozenset({"aten::str", "aten::format", "aten::percentFormat", "aten::hash", "prim::Print"})


SET_AWARE_KINDS: Final = ITERATES | _FORMATS | {"aten::len"}
"""Operators whose arguments :func:`convert_set_arguments` inspects."""


class UnboundSetMethod(SugaredValue):
    """A method of a set, such as ``s.add``, before the emitter replaces it by one that can be called."""

    def __init__(self, value: Value, name: str) -> None:
        self.value = value
        self.name = name

    @property
    def description(self) -> str:
        return f"the method '{self.name}' of a set"


def set_attribute(range: SourceRange, value: Value, type: DictType, name: str) -> SugaredValue:
    """Return the method ``name`` of a set, with the set.

    Raises:
        UndefinedNameError: sets have no such method.
        UnsupportedError: it is ``pop``, whose result depends on Python's order of the elements.
    """
    if name in SET_METHODS:
        return UnboundSetMethod(value, name)
    if name == "pop":
        raise UnsupportedError(
            "which element 'pop' takes out of a set is known only to Python",
            range,
            hint="name the element: s.remove(min(s))",
        )
    raise UndefinedNameError(f"a value of type {type.annotation} has no attribute or method '{name}'", range)


def refuse_order(range: SourceRange) -> UnsupportedError:
    """Return the error for an iteration over a set, whose order only Python knows."""
    return UnsupportedError(
        "the order of a set's elements is known only to Python; a program cannot go over them",
        range,
        hint="go over sorted(s)",
    )


def check_sum(element: Type, range: SourceRange) -> None:
    """Reject a sum over a set if it depends on the order.

    Raises:
        UnsupportedError: the elements are floats.
    """
    if element == FLOAT:
        raise UnsupportedError(
            "the sum of the floats in a set depends on their order, which is known only to Python",
            range,
            hint="sum up sorted(…)",
        )


def check_attribute(owner: str, name: str, type: Type, range: SourceRange) -> None:
    """Reject an attribute of an object that is a set, or contains one.

    Raises:
        UnsupportedError: ``type`` is or contains a set type.
    """
    if holds_set(type):
        raise UnsupportedError(
            f"attribute '{name}' of '{owner}' is a {type.annotation}; objects hold no sets, since "
            "Python would see something else in them",
            range,
            hint="keep a dict with the elements as keys, or a list",
            cause=Cause.INVALID_CLASS,
        )


def _of_collections(type: Type) -> str | None:
    """Return the name of the Python class that values of ``type`` have, or contain, if the IR represents them by
    another type, such as a deque by a list; None if there is none. Sets are not included."""
    if isinstance(type, IntType) and type.python_name:
        return type.python_name
    if isinstance(type, ListType) and type.is_tuple:
        return "torch.Size" if type.python == "Size" else "tuple"
    if isinstance(type, (ListType, DictType)) and type.python and not (isinstance(type, DictType) and type.is_set):
        return type.python.partition(":")[0]
    return next((found for part in type.contained if (found := _of_collections(part)) is not None), None)


def check_shown(kind: str, types: Sequence[Type], range: SourceRange) -> None:
    """Reject the conversion to strings of sets, and of values whose IR representation has another string than in
    Python.

    Raises:
        UnsupportedError: ``kind`` converts its arguments to strings, and one of ``types`` is or contains such a type.
    """
    if kind not in _FORMATS:
        return
    other = next((found for type in types if (found := _of_collections(type)) is not None), None)
    if other in ("tuple", "torch.Size", "torch.dtype"):
        raise UnsupportedError(
            f"a {other} within another container has no text in a program, "
            f"where it is {'an int' if other == 'torch.dtype' else 'a list'}",
            range,
            hint="show one after the other",
        )
    if other is not None:
        raise UnsupportedError(
            f"a {other} has no text in a program, where it is a {'list' if other == 'deque' else 'dict'}",
            range,
            hint=f"show {'list' if other == 'deque' else 'dict'}(…)",
        )
    if any(holds_set(type) for type in types):
        raise UnsupportedError(
            "the text of a set depends on the order of its elements, which is known only to Python",
            range,
            hint="show sorted(s)",
        )


def is_shown_otherwise(type: Type) -> bool:
    """Return whether ``str`` of values of ``type`` in Python differs from ``str`` of their representation in the IR,
    and can be emitted nevertheless."""
    if isinstance(type, OptionalType):
        return isinstance(type.element, (ListType, IntType)) and is_shown_otherwise(type.element)
    if isinstance(type, ListType):
        return type.is_tuple
    if isinstance(type, IntType):
        return type.python_name != ""
    return isinstance(type, TupleType) and type.fields is None and any(map(is_shown_otherwise, type.elements))


text_of: Callable[[Graph, Value, SourceRange], Value] | None = None
"""Hook: emit ``str`` of a value for which :func:`is_shown_otherwise` holds. It is set by
:mod:`rekindle.frontend.python.formatting`.

It breaks a cycle of imports: a function of the prelude, which is compiled and calls operators, computes the string.
"""


def shown(kind: str, args: Sequence[NamedValue], graph: Graph, range: SourceRange) -> Sequence[NamedValue]:
    """Return the arguments of an operator that converts them to strings; unchanged for other operators. Those whose
    ``str`` in Python is different are converted to strings before.

    Raises:
        UnsupportedError: an argument cannot be converted to the string that Python has for it.
    """
    if kind not in _FORMATS:
        return args
    found = list(args)
    for index, item in enumerate(args):
        if text_of is not None and graph.follows_python and is_shown_otherwise(item.type):
            value = item.materialize(graph)
            if kind == "aten::percentFormat" and isinstance(value.type, TupleType):
                parts = [
                    text_of(graph, part, range) if is_shown_otherwise(part.type) else part
                    for part in unpack_tuple(graph, value, range)
                ]
                type = TupleType(tuple(part.type for part in parts))
                made = graph.insert_node(graph.create("prim::TupleConstruct", parts, types=[type], range=range)).output
            else:
                made = text_of(graph, value, range)
            if kind == "aten::format" and index:
                _show_plainly(found, index, graph)
            found[index] = NamedValue(made, range=item.range)
    check_shown(kind, [item.type for item in found], range)
    return found


def _show_plainly(args: list[NamedValue], index: int, graph: Graph) -> None:
    """Replace the template of ``format``, ``args[0]``, by one without ``!r`` for argument ``index``, which is its
    ``repr`` already."""
    template = args[0].materialize(graph)
    text = template.node.attributes.get("value") if template.node.kind == "prim::Constant" else None
    if not isinstance(text, str) or "!r" not in text:
        return
    made, count = "", 0
    for before, field, spec, conversion in Formatter().parse(text):
        made += before.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        place = int(field) if field.isdigit() else count
        count += (not field) + (spec or "").count("{}")
        said = "" if conversion is None or (conversion == "r" and place == index - 1) else f"!{conversion}"
        made += "{" + field + said + (f":{spec}" if spec else "") + "}"
    args[0] = NamedValue(graph.insert_constant(made, range=args[0].range), range=args[0].range)


def convert_set_arguments(
    kind: str, args: Sequence[NamedValue], graph: Graph, range: SourceRange
) -> Sequence[NamedValue]:
    """Return the arguments of an operator: a set over which it iterates is replaced by the list of its elements, a dict
    with keys that only Python has by the list of its keys for ``len``, and arguments that are converted to strings as
    :func:`shown` does.

    Raises:
        UnsupportedError: the result would depend on the order of a set, or a string cannot be computed.
    """
    types = [item.type for item in args]
    if kind == "aten::len" and types and isinstance(types[0], DictType) and is_python_key(types[0].key):
        keys = graph.insert("python::keys", [args[0].materialize(graph)], range=range)
        return [NamedValue(keys, range=args[0].range)]  # a list of one dict would do for the operator
    args = shown(kind, args, graph, range)
    if len(args) != 1 or kind not in ITERATES or not isinstance(types[0], DictType) or not types[0].is_set:
        return args
    if kind == "aten::sum":
        check_sum(types[0].key, range)
    elements = graph.insert("aten::keys", [args[0].materialize(graph)], range=range)
    return [NamedValue(elements, range=args[0].range)]


def is_set(value: Value | None) -> bool:
    return value is not None and isinstance(value.type, DictType) and value.type.is_set
