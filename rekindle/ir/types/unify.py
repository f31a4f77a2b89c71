"""The one type that values of two types share, where control flow joins or a list is built."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from rekindle.ir.types.base import ANY, INT, NONE, NUMBER, IntType, NumberType, Type, VarType
from rekindle.ir.types.container_subclasses import lost_class
from rekindle.ir.types.containers import (
    DictType,
    FutureType,
    ListType,
    OptionalType,
    TupleType,
    UnionType,
    are_apart_in_python,
    optional,
    union,
    union_members,
    without_none,
)
from rekindle.ir.types.enums import EnumType
from rekindle.ir.types.tensor import TENSOR, TensorType


def unshaped(type: Type) -> Type:
    """Return ``type`` without refinements of its Tensor types."""
    if isinstance(type, TensorType):
        return TENSOR
    if not type.contained:
        return type
    return type.with_contained([unshaped(part) for part in type.contained])


def unify(a: Type, b: Type, *, default_to_union: bool = False, hint: Type | None = None) -> Type | None:
    """Return the smallest type that both are subtypes of, or None where there is none that a user would expect.

    ``default_to_union`` makes a Union where nothing smaller is found. ``hint`` is the type that the program declares:
    it is returned if both are subtypes of it.
    An int and a float have no common type: an operator could not be chosen.
    """
    if hint is not None and a.is_subtype_of(hint) and b.is_subtype_of(hint):
        return hint
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.merge(b)
    if are_apart_in_python(a, b):
        return union((a, b)) if default_to_union else None
    if not default_to_union and lost_class(a, b) is not None:
        return None
    if a.is_subtype_of(b):
        return _as_either_is(b, a)
    if b.is_subtype_of(a):
        return _as_either_is(a, b)
    found = _unify_parts(a, b)
    if found is None:
        loose_a, loose_b = unshaped(a), unshaped(b)
        if loose_a.is_subtype_of(loose_b):
            found = loose_b
        elif loose_b.is_subtype_of(loose_a):
            found = loose_a
    if found is None and default_to_union:
        return union((a, b))
    return found


def _as_either_is(type: Type, other: Type) -> Type:
    """Return ``type``, of which ``other`` is a subtype, as it fits the Python classes of both: int for numbers of
    different classes, such as a dtype and an int, and a list for a list and a tuple."""
    if isinstance(type, IntType):
        return INT if isinstance(other, IntType) and type != other else type
    if not isinstance(type, ListType) or not isinstance(other, ListType) or type.python == other.python:
        return type
    if not type.is_tuple and not other.is_tuple:
        return type
    return ListType(type.element, "tuple" if type.is_tuple and other.is_tuple else "")


def number_members(type: Type) -> tuple[Type, ...] | None:
    """Return the types of number that a value of ``type`` may have, or None if it may be something else.

    ``int`` has itself, ``Union[float, int]`` both; a Scalar stays one member, since it may be any number.
    """
    members = union_members(type)
    return members if all(member.kind in _NUMBERS for member in members) else None


def is_open_number(type: Type) -> bool:
    """Return whether a value of ``type`` is a number whose type is known only at run time."""
    return isinstance(type, (NumberType, UnionType)) and number_members(type) is not None


def is_python_key(type: Type) -> bool:
    """Return whether dicts with such keys exist only in Python, not in TorchScript: members of enums, tuples, numbers
    of several types."""
    return isinstance(type, (EnumType, TupleType)) or is_open_number(type)


def may_be_bool(type: Type) -> bool:
    """Return whether a value of ``type`` is a number that may be a bool, beside others."""
    members = number_members(type) if is_open_number(type) else None
    return members is not None and any(member.kind in ("BoolType", "NumberType") for member in members)


def join_numbers(a: Type, b: Type) -> Type | None:
    """Return the common type of two number types; None if either is not a number.

    Bools, ints and floats join to their Union, so that it stays known that the number is real; with anything else
    they join to a Scalar.
    """
    members = [*(number_members(a) or ()), *(number_members(b) or ())]
    if number_members(a) is None or number_members(b) is None:
        return None
    if a == b:
        return a
    joined = union(members)
    return joined if all(member.kind in _REAL for member in union_members(joined)) else NUMBER


def join_values(a: Type, b: Type) -> Type | None:
    """Return the common type of numbers, of Tensors and numbers, of tuples of such values, or of two equal types; None
    if there is none.

    A value of either type is one of the joined type as it is. Numbers cannot be changed, and a Tensor stays itself.
    """
    if a == b:
        return a
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        return _join_parts(a, b, join_values)
    return join_numbers(a, b) or _join_with_tensor(a, b)


def join_assigned(a: Type, b: Type) -> Type | None:
    """Return the type of a variable that is assigned an ``a`` and a ``b``: that of :func:`join_values`, or, if one is
    an Optional number and the other a number or Optional number, the Optional of their common type. None if there is
    none."""
    if NONE in (a, b) or not (a.is_optional or b.is_optional):
        return join_values(a, b)
    inner = join_numbers(without_none(a), without_none(b))
    return None if inner is None else optional(inner)


def join_any(a: Type, b: Type) -> Type:
    """Return the common type of two types: a Union, if no other type includes both. Tuples of one length are joined
    element by element; the names of different NamedTuples are lost."""
    if a == b:
        return a
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.elements) == len(b.elements):
        return TupleType(tuple(map(join_any, a.elements, b.elements)))
    joined = join_values(a, b) or unify(a, b, default_to_union=True)
    assert joined is not None
    return joined


def _join_with_tensor(a: Type, b: Type) -> Type | None:
    """Return the type of a Tensor or a number, if one type may be a Tensor and the other a number; else None."""
    numbers = [number for type in (a, b) if (number := number_beside_tensor(type)) is not None]
    numbers += [type for type in (a, b) if number_members(type) is not None]
    has_tensor = isinstance(a, TensorType) or isinstance(b, TensorType)
    if len(numbers) + has_tensor != 2:
        return None
    joined = functools.reduce(lambda one, other: join_numbers(one, other) or one, numbers)
    return union((TENSOR, *union_members(joined)))


def number_beside_tensor(type: Type) -> Type | None:
    """Return the number type of a Union of Tensor and numbers; None for any other type."""
    members = union_members(type)
    numbers = [member for member in members if not isinstance(member, TensorType)]
    if not numbers or len(numbers) == len(members) or any(member.kind not in _NUMBERS for member in numbers):
        return None
    return union(numbers)


def present(type: Type) -> Type:
    """Return ``type`` with None removed; Tensor for a Union of a Tensor and numbers."""
    return without_none(type) if number_beside_tensor(type) is None else TENSOR


def join_contents(a: Type, b: Type) -> Type | None:
    """Return the type of a new value that may be an ``a`` or a ``b``, including lists and dicts; None if there is none.

    An existing ``List[int]`` is not a ``List[Union[float, int]]``, since floats could be written to it. The node that
    makes the list must make it of the joined type.
    """
    if a == b:
        return a
    if ANY in (a, b):
        return ANY
    if a == NONE or b == NONE:
        return optional(b if a == NONE else a)
    if a.is_optional or b.is_optional:
        inner = join_contents(without_none(a), without_none(b))
        return None if inner is None else optional(inner)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        return _join_parts(a, b, join_contents)
    if isinstance(a, ListType) and isinstance(b, ListType) and a.python == b.python:
        return _join_parts(a, b, join_contents)
    if isinstance(a, DictType) and isinstance(b, DictType) and a.python == b.python and a.key == b.key:
        return _join_parts(a, b, join_contents)
    return join_numbers(a, b) or _join_with_tensor(a, b)


def _join_parts(a: Type, b: Type, join: Callable[[Type, Type], Type | None]) -> Type | None:
    if len(a.contained) != len(b.contained) or getattr(a, "fields", None) or getattr(b, "fields", None):
        return None
    parts = [join(one, other) for one, other in zip(a.contained, b.contained, strict=True)]
    found = [part for part in parts if part is not None]
    return a.with_contained(found) if len(found) == len(parts) else None


_REAL = frozenset({"BoolType", "IntType", "FloatType"})
_NUMBERS = _REAL | {"ComplexType", "NumberType"}


def _unify_parts(a: Type, b: Type) -> Type | None:
    if a == NONE and b != NONE:
        return optional(b)
    if b == NONE and a != NONE:
        return optional(a)
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        inner_a = a.element if isinstance(a, OptionalType) else a
        inner_b = b.element if isinstance(b, OptionalType) else b
        inner = unify(inner_a, inner_b)
        return None if inner is None else optional(inner)
    if isinstance(a, UnionType) or isinstance(b, UnionType):
        return None
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.elements) == len(b.elements):
        parts = [unify(x, y) for x, y in zip(a.elements, b.elements, strict=True)]
        found = [part for part in parts if part is not None]
        fields = a.fields if a.fields == b.fields else None
        return TupleType(tuple(found), None, fields) if len(found) == len(parts) else None
    if isinstance(a, FutureType) and isinstance(b, FutureType):
        inner = unify(a.element, b.element)
        return None if inner is None else FutureType(inner)
    return None


def as_python_has(declared: Type, given: Type) -> Type:
    """Return ``declared`` with the Python classes of ``given`` where these differ from the IR: tuples for lists, dtypes
    for ints."""
    if isinstance(declared, OptionalType):
        return optional(as_python_has(declared.element, given.element if isinstance(given, OptionalType) else given))
    if isinstance(declared, IntType) and isinstance(given, IntType):
        return given
    if isinstance(declared, ListType) and isinstance(given, ListType):
        python = given.python if given.is_tuple and not declared.python else declared.python
        return ListType(as_python_has(declared.element, given.element), python)
    same = declared.kind == given.kind and len(declared.contained) == len(given.contained)
    if not same or not isinstance(declared, (TupleType, DictType)):
        return declared
    return declared.with_contained(
        [as_python_has(a, b) for a, b in zip(declared.contained, given.contained, strict=True)]
    )


def unify_all(types: Iterable[Type], *, default_to_union: bool = False, hint: Type | None = None) -> Type | None:
    """Unify several types with :func:`unify`. Return None if they have no common type, or if there are no types. See
    there for ``default_to_union`` and ``hint``."""
    result: Type | None = None
    for type in types:
        result = type if result is None else unify(result, type, default_to_union=default_to_union, hint=hint)
        if result is None:
            return None
    return result


Bindings = dict[str, Type]
"""Bindings of the type variables of a schema."""


def substitute(type: Type, bindings: Bindings) -> Type | None:
    """Return ``type`` with its type variables replaced; None if one is not bound."""
    if isinstance(type, VarType):
        return bindings.get(type.name)
    if not type.contained:
        return type
    parts: list[Type] = []
    for part in type.contained:
        found = substitute(part, bindings)
        if found is None:
            return None
        parts.append(found)
    return type.with_contained(parts)


def match_variables(formal: Type, actual: Type, bindings: Bindings) -> str | None:
    """Bind the type variables in ``formal`` so that ``actual`` fits it, and add them to ``bindings``. Return the reason
    if that is impossible, else None. After a failure, ``bindings`` may have some of the variables."""
    if isinstance(formal, VarType):
        bound = bindings.get(formal.name)
        if bound is None:
            bindings[formal.name] = actual
            return None
        common = unify(bound, actual)
        # A variable is not widened: a list of ints that was matched already would turn into one of Optional[int]. To
        # the IR, though, a torch.Size is a list of ints, and passes put one in the place of the other.
        if common is None or str(unshaped(common)) != str(unshaped(bound)):
            return f"type variable '{formal.name}' cannot be both {bound.annotation} and {actual.annotation}"
        bindings[formal.name] = common
        return None
    if isinstance(formal, OptionalType):
        if actual == NONE:
            return None  # the variable, if any, is left to other arguments
        inner = actual.element if isinstance(actual, OptionalType) else actual
        return match_variables(formal.element, inner, bindings)
    if not formal.contained:
        return None
    if isinstance(formal, ListType) and isinstance(actual, TupleType) and actual.elements:
        common = unify_all(actual.elements)
        if common is None:
            return f"cannot take {actual.annotation} for a list: its elements differ"
        return match_variables(formal.element, common, bindings)
    if formal.kind != actual.kind or len(formal.contained) != len(actual.contained):
        return f"expected a {formal.annotation}, got {actual.annotation}"
    for part, found in zip(formal.contained, actual.contained, strict=True):
        why = match_variables(part, found, bindings)
        if why is not None:
            return why
    return None
