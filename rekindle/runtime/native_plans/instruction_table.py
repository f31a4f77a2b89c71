"""Instructions as words of memory."""

from __future__ import annotations

import ctypes
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
        places: list[int] = []
        size = 0
        for entry in self.entries:
            places.append(size)
            size += 3 + len(entry.operands)
        words = (ctypes.c_int64 * max(size, 1))()
        base = ctypes.addressof(words)
        references: dict[int, list[int]] = {}
        for number, entry in enumerate(self.entries):
            at = places[number]
            words[at] = address_of(entry.handler)
            if entry.next is not None:
                words[at + 1] = base + places[self.starts[entry.next.index]] * WORD
            elif number + 1 < len(places):
                words[at + 1] = base + places[number + 1] * WORD
            words[at + 2] = entry.index
            for place, operand in enumerate(entry.operands, at + 3):
                match operand:
                    case Label(index):
                        words[place] = base + places[self.starts[index]] * WORD
                    case Reference(value):
                        words[place] = id(value)
                        self.kept.append(value)
                        references.setdefault(id(value), []).append(place)
                    case _:
                        words[place] = operand
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
