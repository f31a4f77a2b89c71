"""Instructions as words of memory."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rekindle.codegen.plan_runtime.frame import WORD


@dataclass(frozen=True, slots=True)
class Label:
    """The first instruction that is written for the instruction of a Code with this index."""

    index: int


@dataclass(frozen=True, slots=True)
class Reference:
    """An object of Python, which the table keeps alive."""

    value: object


Operand = int | Label | Reference


@dataclass(slots=True)
class _Entry:
    handler: str
    index: int
    operands: Sequence[Operand]
    next: Label | None


@dataclass(slots=True)
class InstructionTable:
    """Collects instructions; :meth:`finish` makes words of them.

    ``kept`` is what the words refer to.
    """

    entries: list[_Entry] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)
    """The entry that each instruction of the Code begins with."""
    kept: list[object] = field(default_factory=list)

    def begin(self, index: int) -> None:
        """Say that what follows is written for the instruction ``index`` of the Code."""
        self.starts[index] = len(self.entries)

    def add(self, index: int, handler: str, *operands: Operand, next: Label | None = None) -> None:
        """Append an instruction; ``next`` is where it leads to, by default the one that is appended next."""
        self.entries.append(_Entry(handler, index, operands, next))

    def static(self, data: bytes) -> int:
        """Return the address of 16-byte aligned memory that holds ``data`` as long as the table lives."""
        buffer = ctypes.create_string_buffer(len(data) + 16)
        start = (ctypes.addressof(buffer) + 15) & ~15
        ctypes.memmove(start, data, len(data))
        self.kept.append(buffer)
        return start

    def finish(self, address_of: Callable[[str], int]) -> tuple[Any, dict[int, list[int]]]:
        """Return an array of the words, and, by the identity of each object that is referred to, the indices of the
        words that do."""
        places = [0, *itertools.accumulate(3 + len(entry.operands) for entry in self.entries)]
        words: Any = (ctypes.c_int64 * places[-1])()
        base = ctypes.addressof(words)
        starts = {index: base + places[number] * WORD for index, number in self.starts.items()}
        references: dict[int, list[int]] = {}
        values: list[int] = []
        for number, entry in enumerate(self.entries, 1):
            following = base + places[number] * WORD if entry.next is None else starts[entry.next.index]
            values += (address_of(entry.handler), following, entry.index)
            for operand in entry.operands:
                if isinstance(operand, Reference):
                    self.kept.append(operand.value)
                    references.setdefault(id(operand.value), []).append(len(values))
                    values.append(id(operand.value))
                else:
                    values.append(starts[operand.index] if isinstance(operand, Label) else operand)
        words[:] = values
        return words, references


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a plan calls an operation: the words at ``places``. Called with another function, it has that called."""

    words: Any
    places: Sequence[int]
    kept: list[object]

    def __call__(self, function: Callable[..., Any]) -> None:
        """Have ``function`` called from now on."""
        self.kept.append(function)  # what was called before stays alive: another thread may be in it
        for place in self.places:
            self.words[place] = id(function)
