"""Operands of comparisons: of kinds that are never equal in Python, as in ``[2, 3] == x.shape``, and empty literals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rekindle.ir.types import DictType, ListType, NoneType, StringType, TupleType, number_members

if TYPE_CHECKING:
    from rekindle.ir.graph import Value

_NEW: Final = frozenset({"prim::EmptyListLiteral", "prim::DictConstruct"})


def are_never_equal(one: Value, other: Value) -> bool:
    """Return whether the values are of kinds of which Python finds no two equal."""
    kinds = _kinds(one), _kinds(other)
    return bool(kinds[0]) and bool(kinds[1]) and not kinds[0] & kinds[1]


def _kinds(value: Value) -> frozenset[str]:
    """Return the kinds of object that Python may have for the value; none if too little is known."""
    type = value.type
    if number_members(type) is not None:
        return frozenset({"number"})
    if isinstance(type, NoneType):
        return frozenset({"None"})
    if isinstance(type, StringType):
        return frozenset({"str"})
    if isinstance(type, TupleType):
        return frozenset({"tuple"})
    if isinstance(type, DictType):
        return frozenset({"set" if type.is_set else "dict"})
    if isinstance(type, ListType):
        if type.is_tuple:
            return frozenset({"tuple"})
        if type.is_deque:
            return frozenset({"deque"})
        return frozenset({"list", "set"})  # the keys of a dict are a list here
    return frozenset()


def give_empty_literals_types(one: Value, other: Value) -> None:
    """Give ``[]`` and ``{}`` the type of the list or dict that they are compared with."""
    for literal, beside in ((one, other), (other, one)):
        is_empty = literal.node.kind in _NEW and not literal.node.inputs and not literal.has_uses
        if is_empty and literal.type.kind == beside.type.kind:
            literal.set_type(beside.type)
