"""What sets are to the rest of the compiler: the names of their methods, and where they cannot stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.sugared import SugaredValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.matching import CallArgument
from rekindle.ir.types import FLOAT, DictType, EnumType, ListType, Type

SET_METHODS: Final = frozenset(
    {"add", "discard", "remove", "clear", "copy", "update", "union", "issubset", "issuperset", "isdisjoint"}
    | {"intersection", "intersection_update", "difference", "difference_update"}
    | {"symmetric_difference", "symmetric_difference_update"}
)

_EATS_ALL: Final = frozenset({"aten::sorted", "prim::min", "prim::max", "aten::sum", "aten::any", "aten::all"})

_SHOWS: Final = frozenset({"aten::str", "aten::format", "aten::percentFormat", "aten::hash", "prim::Print"})


LOOK_AT_SETS: Final = _EATS_ALL | _SHOWS | {"aten::len"}
"""The operators whose arguments :func:`given_sets` looks at."""


class UnboundSetMethod(SugaredValue):
    """``s.add`` and the like: the emitter knows how they are called."""

    def __init__(self, value: Value, name: str) -> None:
        self.value = value
        self.name = name

    @property
    def description(self) -> str:
        return f"the method '{self.name}' of a set"


def set_attribute(range: SourceRange, value: Value, type: DictType, name: str) -> SugaredValue:
    """``s.name``

    Raises:
        UndefinedNameError: sets have no such method.
        UnsupportedError: it is ``pop``, which only Python can answer.
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
    """The error of going over a set."""
    return UnsupportedError(
        "the order of a set's elements is known only to Python; a program cannot go over them",
        range,
        hint="go over sorted(s)",
    )


def check_sum(element: Type, range: SourceRange) -> None:
    """Refuse a sum over a set where it depends on the order."""
    if element == FLOAT:
        raise UnsupportedError(
            "the sum of the floats in a set depends on their order, which is known only to Python",
            range,
            hint="sum up sorted(…)",
        )


def holds_set(type: Type) -> bool:
    """Whether a value of the type is a set, or may have one in it."""
    return (isinstance(type, DictType) and type.is_set) or any(map(holds_set, type.contained))


def _of_collections(type: Type) -> str | None:
    """The class of ``collections`` that values of the type are in Python, or hold; None where there is none."""
    if isinstance(type, (ListType, DictType)) and type.python and not (isinstance(type, DictType) and type.is_set):
        return type.python.partition(":")[0]
    return next((found for part in type.contained if (found := _of_collections(part)) is not None), None)


def check_shown(kind: str, types: Sequence[Type], range: SourceRange) -> None:
    """Refuse texts of sets.

    Raises:
        UnsupportedError: ``kind`` makes a text of what it is given, and a set is among it.
    """
    if kind not in _SHOWS:
        return
    other = next((found for type in types if (found := _of_collections(type)) is not None), None)
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


def given_sets(kind: str, args: Sequence[CallArgument], graph: Graph, range: SourceRange) -> Sequence[CallArgument]:
    """The arguments of an operator, with the elements of a set where the operator eats them all.

    Raises:
        UnsupportedError: it would tell the order of a set.
    """
    types = [item.type for item in args]
    if kind == "aten::len" and types and isinstance(types[0], DictType) and isinstance(types[0].key, EnumType):
        keys = graph.insert("python::keys", [args[0].materialise(graph)], range=range)
        return [CallArgument(keys, range=args[0].range)]  # a list of one dict would do for the operator
    check_shown(kind, types, range)
    if len(args) != 1 or kind not in _EATS_ALL or not isinstance(types[0], DictType) or not types[0].is_set:
        return args
    if kind == "aten::sum":
        check_sum(types[0].key, range)
    elements = graph.insert("aten::keys", [args[0].materialise(graph)], range=range)
    return [CallArgument(elements, range=args[0].range)]
