"""Which kind each register of a Code is of in a native plan, and where in the frame it lies."""

from __future__ import annotations

import struct
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.plan_runtime.frame import REGISTERS, WORD, Kind
from rekindle.ir.types import BOOL, FLOAT, INT, TensorType, Type
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Opcode

_NUMBERS: Final[dict[Type, Kind]] = {INT: Kind.INT, FLOAT: Kind.FLOAT, BOOL: Kind.BOOL}
_CLASSES: Final[dict[Kind, type]] = {Kind.INT: int, Kind.FLOAT: float, Kind.BOOL: bool}
_INT_LIMIT: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Register:
    """A register of a native plan; ``offset`` is its position in the frame in bytes."""

    number: int
    kind: Kind
    offset: int
    is_tensor: bool = False
    """Whether the program has a Tensor here, in whichever kind."""


@dataclass(slots=True)
class FrameLayout:
    """The layout of a frame: the registers of ``code``, followed by scratch memory. ``writes_natively`` states for each
    instruction whether it is expected to write tensors without Python; ``arrays`` maps the registers of lists that only
    C++ functions read to their kinds."""

    code: Code
    writes_natively: Sequence[bool]
    arrays: dict[int, Kind]
    registers: list[Register] = field(init=False)
    owners: list[tuple[Kind, int]] = field(init=False, default_factory=list)
    """The kind and the offset of everything in the frame that is released at the end."""
    words: int = field(init=False, default=REGISTERS)
    template: dict[int, int] = field(init=False, default_factory=dict)
    """The words of the frame that do not start as 0, by their number."""
    _constants: Set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._constants = frozenset(self.code.constants)
        native = self._natively_written()
        self.registers = []
        for number in range(len(self.code.template)):
            self.registers.append(self._register(number, number in native))

    def _natively_written(self) -> set[int]:
        found = set[int]()
        for index, instruction in enumerate(self.code.instructions):
            if instruction.opcode is Opcode.OPERATION and self.writes_natively[index]:
                found.update(register for register in instruction.outputs if register is not None)
        return found

    def _register(self, number: int, native: bool) -> Register:
        types = [value.type for value in self.code.values[number]]
        constant = number in self._constants
        kind = self.arrays.get(number) or _kind_of(types)
        is_tensor = bool(types) and all(isinstance(type, TensorType) for type in types)
        if constant:
            if not _fits(self.code.template[number], kind):
                return Register(number, Kind.CONSTANT, 0, is_tensor)
        elif is_tensor and native:
            kind = Kind.TENSOR
        offset = self.reserve(kind.words, kind)
        if constant:
            self.template[offset // WORD] = _word(self.code.template[number])
        return Register(number, kind, offset, is_tensor)

    def reserve(self, words: int, kind: Kind = Kind.INT) -> int:
        """Reserve 64-bit words at the end of the frame, which are 0 at the start of a call; return their offset in
        bytes. The memory that they own as ``kind`` is released at the end of the call."""
        if words > 1:
            self.words += self.words % 2  # C++ structures are aligned to 16 bytes
        offset = self.words * WORD
        self.words += words
        if kind.owns:
            self.owners.append((kind, offset))
        return offset

    def constant(self, number: int) -> tuple[bool, object]:
        """Return whether a register holds a constant that cannot be written to, and the constant."""
        return (True, self.code.template[number]) if number in self._constants else (False, None)


def _kind_of(types: list[Type]) -> Kind:
    kinds = {_NUMBERS.get(type, Kind.OBJECT) for type in types}
    return kinds.pop() if len(kinds) == 1 else Kind.OBJECT


def _fits(value: object, kind: Kind) -> bool:
    """Return whether a constant is a number of a kind."""
    return type(value) is _CLASSES.get(kind) and (not isinstance(value, int) or -_INT_LIMIT <= value < _INT_LIMIT)


def _word(value: object) -> int:
    if isinstance(value, float):
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    assert isinstance(value, int)
    return int(value)
