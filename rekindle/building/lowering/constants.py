"""Constants of a program: strings, descriptors, and objects that live as long as the library."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch

from rekindle.building.lowering.representation import NotBuildable, descriptor_of
from rekindle.building.lowlevel.compiler import c_string
from rekindle.building.runtime.objects import IMMORTAL, Kind
from rekindle.ir.scalar_types import DTYPE_NUMBERS, DTYPES, number_of
from rekindle.ir.types import ListType, OptionalType, TupleType, Type


@dataclass(slots=True)
class Constants:
    """The constants of a library. ``definitions`` are their definitions in LLVM IR; equal constants are defined
    once."""

    definitions: list[str] = field(default_factory=list)
    known: dict[Hashable, str] = field(default_factory=dict)

    def _define(self, stem: str, key: Hashable, text: str, *, written: bool) -> str:
        if key not in self.known:
            name = f"@{stem}.{len(self.known)}"
            self.known[key] = name
            self.definitions.append(f"{name} = internal {'global' if written else 'constant'} {text}, align 8")
        return self.known[key]

    def bytes(self, data: bytes) -> str:
        """Return the address of a constant that consists of ``data`` and a zero byte."""
        return self._define("text", data, c_string(data), written=False)

    def descriptor(self, type: Type) -> str:
        """Return the address of the descriptor of a type, a string that encodes the type for the runtime."""
        return self.bytes(descriptor_of(type).encode())

    def words(self, words: list[int]) -> str:
        """Return the address of a constant array of 64-bit words."""
        text = f"[{len(words)} x i64] [{', '.join(f'i64 {each}' for each in words)}]"
        return self._define("words", ("words", *words), text, written=False)

    def string(self, value: str) -> str:
        """Return the address of a constant string object."""
        data = value.encode("utf-8", "surrogatepass")
        head = f"i64 {IMMORTAL}, i64 {int(Kind.TEXT)}, i64 {len(data)}, i64 {len(value)}"
        text = f"{{ i64, i64, i64, i64, [{len(data) + 1} x i8] }} {{ {head}, {c_string(data)} }}"
        return self._define("string", ("string", value), text, written=True)

    def word(self, value: object, type: Type) -> str:
        """Return a value of ``type`` as a 64-bit constant in LLVM IR: a number, or the address of a constant object.

        Raises:
            NotBuildable: native libraries have no constants of this type, or an int has more than 64 bits.
        """
        descriptor = descriptor_of(type)
        match descriptor[0]:
            case "i" | "b":
                return str(int_word(value))
            case "f":
                assert isinstance(value, float | int)
                return str(struct.unpack("<q", struct.pack("<d", float(value)))[0])
            case _:
                return f"ptrtoint (ptr {self.object(value, type)} to i64)"

    def object(self, value: Any, type: Type) -> str:
        """Return the address of a constant object; ``null`` for None.

        Raises:
            NotBuildable: native libraries have no constants of this type.
        """
        if value is None:
            return "null"
        if isinstance(value, bool | int | float) and not isinstance(value, Enum):
            kind = Kind.BOOL if isinstance(value, bool) else Kind.INT if isinstance(value, int) else Kind.FLOAT
            bits = struct.unpack("<q", struct.pack("<d", value))[0] if isinstance(value, float) else int_word(value)
            text = f"{{ i64, i64, i64 }} {{ i64 {IMMORTAL}, i64 {int(kind)}, i64 {bits} }}"
            return self._define("box", ("box", kind, bits), text, written=True)
        if isinstance(value, complex):
            parts = ", ".join(
                f"i64 {each}" for each in struct.unpack("<2q", struct.pack("<2d", value.real, value.imag))
            )
            text = f"{{ i64, i64, i64, i64 }} {{ i64 {IMMORTAL}, i64 {int(Kind.COMPLEX)}, {parts} }}"
            return self._define("complex", ("complex", text), text, written=True)
        if isinstance(value, str):
            return self.string(value)
        if isinstance(type, OptionalType):
            return self.object(value, type.element)
        if isinstance(type, ListType):
            assert isinstance(value, list)
            words = [self.word(each, type.element) for each in value]
            items = f"[{len(words)} x i64] [{', '.join(f'i64 {each}' for each in words)}]"
            place = self._define("items", ("items", items), items, written=True) if words else "null"
            element = self.descriptor(type.element)
            fields = f"i64 {len(words)}, i64 {len(words)}, ptr {place}, ptr {element}"
            text = f"{{ i64, i64, i64, i64, ptr, ptr }} {{ i64 {IMMORTAL}, i64 {int(Kind.LIST)}, {fields} }}"
            return self._define("list", ("list", text), text, written=True)
        if isinstance(type, TupleType):
            assert isinstance(value, tuple)
            words = [self.word(each, part) for each, part in zip(value, type.contained, strict=True)]
            fields = ", ".join(f"i64 {each}" for each in words)
            head = f"i64 {IMMORTAL}, i64 {int(Kind.RECORD)}, ptr {self.descriptor(type)}, i64 {len(words)}"
            text = (
                f"{{ i64, i64, ptr, i64, [{len(words)} x i64] }} {{ {head}, [{len(words)} x i64] [{fields}] }}"
                if words
                else f"{{ i64, i64, ptr, i64 }} {{ {head} }}"
            )
            return self._define("record", ("record", text), text, written=True)
        raise NotBuildable(f"native libraries have no constants of type {type}")


def member_number(value: Enum) -> int:
    """Return the index of a member of an enum, in the order of definition."""
    return list(type(value).__members__).index(value.name)


def int_word(value: Any) -> int:
    """Return an int, a bool, a dtype, a layout, a memory format, a device or a member of an enum as the int that
    represents it in a library.

    Raises:
        NotBuildable: ``value`` is of another kind, has more than 64 bits, or is a device other than the CPU.
    """
    if isinstance(value, Enum):
        return member_number(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise NotBuildable(f"native libraries have ints of 64 bits, and {value} has more")
        return value
    if isinstance(value, torch.dtype):
        return scalar_type(value)
    if isinstance(value, torch.device):
        if value.type != "cpu":
            raise NotBuildable(f"native libraries run on the CPU, and this is a device of type '{value.type}'")
        index: int | None = value.index
        return NO_INDEX if index is None else index
    if isinstance(value, torch.memory_format | torch.layout):
        return number_of(value)
    raise NotBuildable(f"{value!r} is not a number")


NO_INDEX = 0xFFFFFFFF
"""The word of the device ``cpu`` without an index. The type is in the upper half of the word, and is 0 for the CPU."""

_KNOWN = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128, torch.bool, torch.bfloat16),
)


def scalar_type(dtype: torch.dtype | int) -> int:
    """Return the number of a dtype, as in ``c10::ScalarType``.

    Raises:
        NotBuildable: native libraries do not support tensors of this dtype.
    """
    number = dtype if isinstance(dtype, int) else DTYPE_NUMBERS[dtype]
    if DTYPES[number] not in _KNOWN:
        raise NotBuildable(f"native libraries have no tensors of {DTYPES[number]}")
    return number
