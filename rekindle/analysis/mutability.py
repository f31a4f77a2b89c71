"""Mutability of types: which types are mutable, the types that they contain, and which may share memory."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from rekindle.ir.types import (
    ANY,
    AwaitType,
    BoolType,
    ClassType,
    ComplexType,
    DeviceType,
    DictType,
    EnumType,
    FloatType,
    FunctionType,
    FutureType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    RRefType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    VarType,
    without_none,
)

_IMMUTABLE: Final = (
    *(IntType, FloatType, ComplexType, BoolType, NumberType, StringType, NoneType, DeviceType),
    *(EnumType, FunctionType),
)


def is_immutable(type: Type) -> bool:
    """Return whether no value of this type, nor anything within it, can be written to."""
    if isinstance(type, TensorType):
        return False
    if isinstance(type, (TupleType, OptionalType, UnionType)):
        return all(is_immutable(part) for part in type.contained)
    return isinstance(type, _IMMUTABLE)


def may_contain_tensor(type: Type) -> bool:
    """Return whether a value of this type may be a tensor, or hold one."""
    if isinstance(type, TensorType):
        return True
    if type.contained:
        return any(may_contain_tensor(part) for part in type.contained)
    return not isinstance(type, _IMMUTABLE)


# ------------------------------------------------------------------------------------------------------------- families

AliasClass = Hashable
"""Types of different families never share memory; those of one may. :data:`ANY_ALIAS_CLASS` may be of any family."""

ANY_ALIAS_CLASS: Final = "anything"

_OF_KIND: Final[dict[str, AliasClass]] = {
    **dict.fromkeys(("TensorType", "StorageType"), "tensor"),
    **dict.fromkeys(("IntType", "FloatType", "ComplexType", "NumberType"), "number"),
    **dict.fromkeys(("ClassType", "InterfaceType", "AnyClassType"), "object"),
    **dict.fromkeys(("AnyType", "AnyListType", "AnyTupleType", "UnionType", "VarType"), ANY_ALIAS_CLASS),
}


def alias_class_of(type: Type) -> AliasClass:
    """Return the alias class of a type: values of different classes never alias. Lists whose elements have the same
    class are in one class, since a caller may pass one list as ``List[int]`` and as ``List[Optional[int]]``."""
    if isinstance(type, OptionalType):
        return alias_class_of(type.element)
    if type.contained and not isinstance(type, UnionType):
        parts = tuple(alias_class_of(part) for part in type.contained)
        return ANY_ALIAS_CLASS if ANY_ALIAS_CLASS in parts else (type.kind, parts)
    return _OF_KIND.get(type.kind, type.kind)


_CONCRETE: Final = frozenset(
    {"TensorType", "ListType", "DictType", "TupleType", "ClassType", "FutureType", "AwaitType", "RRefType"}
)
"""Kinds of types that determine the class of a value, if not always the types of its elements."""


def may_share_memory(a: Type, b: Type) -> bool:
    """Return whether some value could be of both types, or a view of one of the other's."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return True
    if isinstance(a, ClassType) and isinstance(b, ClassType):
        return a is b
    a, b = without_none(a), without_none(b)
    if a.kind != b.kind and a.kind in _CONCRETE and b.kind in _CONCRETE:
        return False
    mine, theirs = alias_class_of(a), alias_class_of(b)
    return mine == theirs or ANY_ALIAS_CLASS in (mine, theirs)


# ---------------------------------------------------------------------------------------------------------------- parts

Key = str | int
"""Where in a value a part of it is: ``ITEM``, ``KEY``, ``.name`` of an attribute, the number of a tuple's element."""

ITEM: Final = "item"
KEY: Final = "key"


def parts_of(type: Type) -> list[tuple[Key, Type]]:
    """Return the parts of a value of this type, as far as the type determines them: elements, keys and values, the
    result of a future."""
    if isinstance(type, OptionalType):
        return parts_of(type.element)
    if isinstance(type, (ListType, FutureType, AwaitType, RRefType)):
        return [(ITEM, type.element)]
    if isinstance(type, DictType):
        return [(KEY, type.key), (ITEM, type.value)]
    if isinstance(type, TupleType):
        return list(enumerate(type.elements))
    return []


def part_type(type: Type, key: Key) -> Type:
    """Return the type of one part; Any if the type does not determine it."""
    for other, found in parts_of(type):
        if other == key:
            return found
    return ANY


@dataclass(slots=True, frozen=True)
class MemoryTraits:
    """The properties of a type that alias analysis needs. ``holds`` are the types of the parts that can be written to.
    ``has_memory``: whether the value itself can be written to; a tuple cannot."""

    is_mutable: bool
    has_memory: bool
    holds: tuple[Type, ...]
    family: AliasClass


_OPAQUE: Final = ("ClassType", "InterfaceType", "AnyClassType", "AnyType", "AnyListType", "AnyTupleType")
"""Kinds of types whose values may hold anything."""

_FLAT: Final = MemoryTraits(is_mutable=True, has_memory=True, holds=(), family="tensor")
_NOTHING: Final = MemoryTraits(is_mutable=False, has_memory=False, holds=(), family="nothing")


def traits_of(type: Type) -> MemoryTraits:
    """Return the traits of a type. The function walks the whole type, and caches nothing."""
    if isinstance(type, TensorType):
        return _FLAT
    if is_immutable(type):
        return _NOTHING
    return MemoryTraits(True, not _is_tuple(type), tuple(_held(type)), alias_class_of(type))


def _is_tuple(type: Type) -> bool:
    return _is_tuple(type.element) if isinstance(type, OptionalType) else isinstance(type, TupleType)


def _held(type: Type) -> list[Type]:
    if isinstance(type, UnionType):
        return [part for member in type.members for part in _held(member)]
    if isinstance(type, OptionalType):
        return _held(type.element)
    if type.kind in _OPAQUE or isinstance(type, VarType):
        return [ANY]
    return [part for _, part in parts_of(type) if not is_immutable(part)]
