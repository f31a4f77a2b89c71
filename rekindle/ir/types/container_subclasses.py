"""Subclasses of list and dict with other behavior: the limit of a deque, and the default factory of a dict, are part
of their types."""

from __future__ import annotations

from typing import Final

from rekindle.ir.types.base import ANY, Type, UnionBase
from rekindle.ir.types.containers import DictType, ListType, TupleType, union_members

_DIFFERS: Final = ("deque:", "defaultdict", "Counter")

_LOST: Final = {
    "deque": "would not be limited to so many elements any more",
    "defaultdict": "would not make values any more",
    "Counter": "would not count what is not there any more",
}


def holds_set(type: Type) -> bool:
    """Return whether a value of the type is a set, or may contain one."""
    return (isinstance(type, DictType) and type.is_set) or any(map(holds_set, type.contained))


def lost_class(actual: Type, wanted: Type) -> str | None:
    """Return a sentence about the Python class that a value of type ``actual`` loses as a ``wanted``, of which it is a
    subtype; None if it loses none."""
    if actual == wanted or not actual.contained:
        return None
    if wanted == ANY and holds_set(actual):
        return f"a {actual.annotation} would be a dict to Python as Any"
    if isinstance(actual, UnionBase):
        return next(filter(None, (lost_class(part, wanted) for part in union_members(actual))), None)
    if isinstance(wanted, UnionBase):
        found = [lost_class(actual, part) for part in union_members(wanted) if part.kind == actual.kind]
        return None if None in found else next(iter(found), None)
    if isinstance(actual, TupleType) != isinstance(wanted, TupleType) or actual.kind != wanted.kind:
        return None
    if isinstance(actual, (ListType, DictType)) and isinstance(wanted, (ListType, DictType)):
        if actual.python != wanted.python:
            if actual.python.startswith(_DIFFERS):
                return f"a {actual.annotation} {_LOST[actual.python.partition(':')[0]]} as a {wanted.annotation}"
            if wanted.python.startswith(_DIFFERS):
                return f"a {actual.annotation} is not a {wanted.annotation}"
    parts = zip(actual.contained, wanted.contained, strict=False)
    return next(filter(None, (lost_class(part, other) for part, other in parts)), None)
