"""Lists and dicts of numbers whose types are known only at run time: ``xs.count(v.item())``, ``counts[v.item()]``.

Operators of TorchScript take an int for a list of ints. If the number, or an element, may have another number type, the
container is cast to one of any numbers, and Python's own method runs (``python::count``): 1, 1.0 and True are one key,
and a NaN is found if it is the same object.
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
"""Operators of lists and dicts to which :func:`as_containers_of_numbers` applies."""


def as_containers_of_numbers(
    kind: str, itself: NamedValue | None, args: Sequence[NamedValue], graph: Graph, range: SourceRange
) -> tuple[str, NamedValue | None, Sequence[NamedValue]]:
    """Return the operator to call, its self and its arguments. If a number whose type is known only at run time is
    involved, casts of the containers to containers of any numbers are emitted, and the operator is one of namespace
    ``python``. For ``extend``, the list that is added is cast to elements of the other list's type. Otherwise all are
    unchanged."""
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
    """Return whether all of the types are number types, and the type of one number is known only at run time."""
    found = (type, *others)
    return all(number_members(item) is not None for item in found) and any(map(is_open_number, found))


def _as(item: NamedValue, number: Type, graph: Graph, range: SourceRange) -> NamedValue:
    """Emit a cast of a list, or of a dict with number keys, to one of ``number``, for an operator that adds no element;
    return it. A number is returned unchanged."""
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
    """Emit a cast of a list or dict that is new or only read to ``type``, if that type admits more kinds of numbers;
    otherwise return ``value`` unchanged."""
    if type is None or value.type == type or join_contents(value.type, type) != type:
        return value
    return graph.insert_node(graph.create("prim::unchecked_cast", [value], types=[type], range=range)).output


def join_known(known: Type | None, type: Type) -> Type | None:
    """Return the type of a container with the contents of both types; ``known`` if they have no common type. A type
    None is unknown: the other one is returned."""
    return type if known is None else join_contents(known, type) or known
