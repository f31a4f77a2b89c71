"""Constants as text. A constant without a text form (a tensor, an object, a non-ASCII string) is stored in a table, to
which the text refers by index."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable

import torch

from rekindle.errors import UnsupportedError
from rekindle.ir.attributes import infer_type, type_name
from rekindle.ir.constants import EnumMember, are_equal_tensors
from rekindle.ir.text.literals import format_complex, format_float, format_schema_float, format_string
from rekindle.ir.types import DictType, EnumType, ListType, TupleType, Type, UnionType, without_none

Spelling = Callable[[Type], str]
"""Function that returns a type as source text."""

_LITERAL_FLOATS_END = 1e10
"""Smallest absolute value for which the text of a float is that in schemas, with a dot appended if it has neither a dot
nor an exponent."""


class ConstantTable:
    """The constants that a source refers to as ``CONSTANTS.c0``, ``CONSTANTS.c1`` …. Equal tensors share an index."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._tensors: dict[tuple[object, ...], list[int]] = {}

    def index_of(self, value: object) -> int:
        """Return the index of ``value`` in the table. The value is added, unless it is a tensor that is already
        there."""
        if isinstance(value, torch.Tensor):
            key = (value.dtype, value.device, value.layout, tuple(value.shape))
            places = self._tensors.setdefault(key, [])
            for place in places:
                if _equal_tensors(self.values[place], value):
                    return place
            places.append(len(self.values))
        self.values.append(value)
        return len(self.values) - 1


def _equal_tensors(known: object, value: torch.Tensor) -> bool:
    assert isinstance(known, torch.Tensor)
    return known is value or (known.requires_grad == value.requires_grad and are_equal_tensors(known, value))


def format_constant(value: object, type: Type, spell: Spelling, table: ConstantTable) -> str:
    """Format ``value``, a constant of type ``type``, as an expression of TorchScript source. A value without a text
    form is added to ``table``.

    Raises:
        UnsupportedError: the enum of a member, or the type of a container, is not known; or values of this class cannot
            be written as source.
    """
    if _needs_table(value):
        return f"CONSTANTS.c{table.index_of(value)}"
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, (EnumMember, enum.Enum)):
        return _enum_member(value, type, spell)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, complex):
        return _format_complex(value)
    if isinstance(value, str):
        return format_string(value)
    if isinstance(value, torch.device):
        return f"torch.device({format_string(str(value))})"
    if isinstance(value, (list, tuple, dict)):
        return _container(value, without_none(type), spell, table)
    raise UnsupportedError(f"a constant of type {type_name(value)} cannot be written as source")


def _format_float(value: float) -> str:
    # A whole number needs its dot: without it, it would be read back as an int.
    if math.isfinite(value) and abs(value) >= _LITERAL_FLOATS_END:
        text = format_schema_float(value)
        return text if "." in text or "e" in text else f"{text}."
    return "nan" if math.isnan(value) else format_float(value)


def _format_complex(value: complex) -> str:
    # Source is read as the sum or difference of a float and an imaginary number, in which the sign of a zero is lost.
    if any(part == 0 and math.copysign(1.0, part) < 0 for part in (value.real, value.imag)):
        return f"complex({_format_float(value.real)}, {_format_float(value.imag)})"
    return format_complex(value)


def _needs_table(value: object) -> bool:
    if isinstance(value, str):
        return not value.isascii()
    if isinstance(value, (list, tuple)):
        # A NamedTuple or list that holds a string of another alphabet goes there as a whole; one with tensors does not.
        return any(_needs_table(item) for item in value if not isinstance(item, torch.Tensor))
    if isinstance(value, dict):
        return any(_needs_table(item) for item in (*value, *value.values()) if not isinstance(item, torch.Tensor))
    simple = (int, float, complex, torch.device, enum.Enum, EnumMember)
    return isinstance(value, torch.Tensor) or not (value is None or isinstance(value, simple))


def _enum_member(value: EnumMember | enum.Enum, type: Type, spell: Spelling) -> str:
    wanted = without_none(type)
    if isinstance(value, EnumMember):
        wanted = value.type
    if isinstance(wanted, UnionType):
        members = [item for item in wanted.members if isinstance(item, EnumType)]
        wanted = next((item for item in members if item.python_class is value.__class__), wanted)
    if not isinstance(wanted, EnumType):
        raise UnsupportedError(f"the enum of the constant {value!r} is not known")
    return f"{spell(wanted)}.{value.name}"


def _container(value: object, type: Type, spell: Spelling, table: ConstantTable) -> str:
    type = _type_of(value, type)
    if isinstance(value, tuple):
        assert isinstance(type, TupleType)
        items = [
            format_constant(item, element, spell, table) for item, element in zip(value, type.elements, strict=True)
        ]
        name = spell(type) if type.name is not None else ""
        return f"{name}({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, list):
        assert isinstance(type, ListType)
        body = f"[{', '.join(format_constant(item, type.element, spell, table) for item in value)}]"
        plain = bool(value) and is_inferred_from_members(type.element)
    else:
        assert isinstance(value, dict)
        assert isinstance(type, DictType)
        pairs = [
            f"{format_constant(key, type.key, spell, table)}: {format_constant(item, type.value, spell, table)}"
            for key, item in value.items()
        ]
        body = f"{{{', '.join(pairs)}}}"
        plain = bool(value) and is_inferred_from_members(type.key) and is_inferred_from_members(type.value)
    return body if plain else f"annotate({spell(type)}, {body})"


def _type_of(value: object, type: Type) -> Type:
    """Return ``type`` if it is that of the container ``value``, or the one member of a Union that is; else the type
    that the contents have.

    Raises:
        UnsupportedError: the contents do not determine the type.
    """
    kind = ListType if isinstance(value, list) else TupleType if isinstance(value, tuple) else DictType
    if isinstance(type, kind):
        return type
    if isinstance(type, UnionType):
        members = [item for item in type.members if isinstance(item, kind)]
        if len(members) == 1:
            return members[0]
    found = infer_type(value)
    if found is None:
        raise UnsupportedError(f"the type of a constant is not known: {type.annotation} says too little")
    return found


def is_inferred_from_members(element: Type) -> bool:
    """Return whether a reader infers from the members of a literal that it is a list (or dict) of ``element``."""
    wide = ("UnionType", "OptionalType", "NumberType", "AnyType", "InterfaceType")
    return element.kind not in wide
