"""Lists and dicts of numbers whose types are known only at run time: ``xs.count(v.item())``, ``counts[v.item()]``.

Operators of TorchScript take an int for a list of ints. Where the number, or an element, may be of another type, the
container is taken for one of any numbers, and Python's own method runs (``python::count``): 1, 1.0 and True are one
key, and a NaN is found where it is the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import (
    NUMBER,
    DictType,
    ListType,
    Type,
    is_open_number,
    join_contents,
    join_values,
    number_members,
)

_OF_LISTS: Final = frozenset({"count", "index", "remove", "__contains__", "eq", "ne", "all", "any"})
_OF_DICTS: Final = frozenset({"__contains__", "__getitem__", "get", "pop", "Delete", "_set_item", "setdefault"})

NUMBER_KINDS: Final = frozenset(f"aten::{name}" for name in (*_OF_LISTS, *_OF_DICTS, "extend"))
"""The operators that numbers of several types change."""


def as_containers_of_numbers(
    kind: str, itself: NamedValue | None, args: Sequence[NamedValue], graph: Graph, range: SourceRange
) -> tuple[str, NamedValue | None, Sequence[NamedValue]]:
    """Return the operator to call, its self and its arguments, with containers of numbers converted to one number type;
    unchanged if no number of unknown type is involved."""
    name = kind.partition("::")[2]
    given = [*(() if itself is None else (itself,)), *args]
    if not given or given[0].value is None:
        return kind, itself, args
    owner = given[0].type
    others = [item.type for item in given[1:]]
    if isinstance(owner, ListType) and name == "extend":
        joined = len(others) == 1 and isinstance(others[0], ListType) and join_values(owner.element, others[0].element)
        if joined != owner.element or others[0] == owner:
            return kind, itself, args
        return kind, itself, [_as(args[-1], owner.element, graph, range)]
    if isinstance(owner, ListType) and name in _OF_LISTS and not owner.is_tuple:
        if not _may_differ(owner.element, [_element(type) for type in others]):
            return kind, itself, args
        cast = [_as(item, NUMBER, graph, range) for item in given]
    elif isinstance(owner, DictType) and name in _OF_DICTS and not owner.is_set and others:
        is_writing = name in ("_set_item", "setdefault")
        if is_writing or is_open_number(owner.key) or not _may_differ(owner.key, others[:1]):
            return kind, itself, args
        cast = [_as(given[0], NUMBER, graph, range), *given[1:]]
    else:
        return kind, itself, args
    rest = cast if itself is None else cast[1:]
    return f"python::{name}", None if itself is None else cast[0], rest


def _element(type: Type) -> Type:
    return type.element if isinstance(type, ListType) else type


def _may_differ(type: Type, others: Sequence[Type]) -> bool:
    """Return whether all are numbers, and one is known only at run time."""
    found = (type, *others)
    return all(number_members(item) is not None for item in found) and any(map(is_open_number, found))


def _as(item: NamedValue, number: Type, graph: Graph, range: SourceRange) -> NamedValue:
    """Return a list, or a dict with such keys, reinterpreted as one of ``number``, for an operator that adds nothing to
    it. A number is returned unchanged."""
    if item.value is None or not isinstance(item.type, (ListType, DictType)):
        return item
    others = item.type.contained[1:]
    type = item.type.with_contained([number, *others])
    if item.type == type:
        return item
    value: Value = item.value
    cast = graph.insert_node(graph.create("prim::unchecked_cast", [value], types=[type], range=range)).output
    return NamedValue(cast, range=item.range, name=item.name)


def made_as(value: Value, type: Type | None, graph: Graph, range: SourceRange) -> Value:
    """Return a new or read-only list or dict as one of ``type``, if that type admits more kinds of numbers; otherwise
    unchanged."""
    if type is None or value.type == type or join_contents(value.type, type) != type:
        return value
    return graph.insert_node(graph.create("prim::unchecked_cast", [value], types=[type], range=range)).output


def join_known(known: Type | None, type: Type) -> Type | None:
    """Return the type of a list with elements of both types; ``known``, if they have no common type. Either may be
    None: it is not known then."""
    return type if known is None else join_contents(known, type) or known
