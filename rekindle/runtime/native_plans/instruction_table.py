"""Instructions as words of memory."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rekindle.codegen.llvm.call_sites import site_of
from rekindle.codegen.plan_runtime.frame import WORD
from rekindle.ir.subgraph_execution import PatchableOperation


@dataclass(frozen=True, slots=True)
class Label:
    """A reference to the first table entry that was written for the instruction ``index`` of the Code."""

    index: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a Python object, which the table keeps alive."""

    value: object


@dataclass(slots=True, eq=False)
class EntryLabel:
    """A reference to an entry of the table, bound by :meth:`InstructionTable.place`."""

    entry: int = -1


@dataclass(frozen=True, slots=True)
class KernelSite:
    """A reference to the call site from which the kernels of an operation are launched: its address, or 0 as long as
    there is none."""

    operation: PatchableOperation


Operand = int | Label | EntryLabel | Reference | KernelSite


@dataclass(slots=True)
class _Entry:
    handler: str
    index: int
    operands: Sequence[Operand]
    next: Label | None


@dataclass(slots=True)
class InstructionTable:
    """A collector of the instructions of a native plan; :meth:`finish` encodes them as 64-bit words. ``kept`` are the
    objects to which the words refer."""

    entries: list[_Entry] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)
    """The entry that each instruction of the Code begins with."""
    kept: list[object] = field(default_factory=list)

    def begin(self, index: int) -> None:
        """Record that the instructions added next belong to the instruction ``index`` of the Code."""
        self.starts[index] = len(self.entries)

    def add(self, index: int, handler: str, *operands: Operand, next: Label | None = None) -> None:
        """Append an instruction. ``next`` is the instruction that follows it at run time; by default, the one that is
        appended next."""
        self.entries.append(_Entry(handler, index, operands, next))

    def place(self, label: EntryLabel) -> None:
        """Bind ``label`` to the next instruction."""
        label.entry = len(self.entries)

    def static(self, data: bytes) -> int:
        """Return the address of 16-byte aligned memory that holds ``data`` as long as the table lives."""
        buffer = ctypes.create_string_buffer(len(data) + 16)
        start = (ctypes.addressof(buffer) + 15) & ~15
        ctypes.memmove(start, data, len(data))
        self.kept.append(buffer)
        return start

    def finish(self, address_of: Callable[[str], int]) -> FinishedTable:
        """Return the instructions encoded as 64-bit words; ``address_of`` returns the address of a handler."""
        places = [0, *itertools.accumulate(3 + len(entry.operands) for entry in self.entries)]
        words: Any = (ctypes.c_int64 * places[-1])()
        found = FinishedTable(words)
        base = ctypes.addressof(words)

        def address(label: Label | EntryLabel) -> int:
            entry = self.starts[label.index] if isinstance(label, Label) else label.entry
            return base + places[entry] * WORD

        values: list[int] = []
        for number, entry in enumerate(self.entries, 1):
            following = base + places[number] * WORD if entry.next is None else address(entry.next)
            values += (address_of(entry.handler), following, entry.index)
            for operand in entry.operands:
                match operand:
                    case int():
                        values.append(operand)
                    case Reference(value):
                        self.kept.append(value)
                        found.references.setdefault(id(value), []).append(len(values))
                        values.append(id(value))
                    case KernelSite(operation):
                        found.sites.setdefault(id(operation), []).append(len(values))
                        values.append(0)
                    case _:
                        values.append(address(operand))
        words[:] = values
        return found


@dataclass(frozen=True, slots=True)
class FinishedTable:
    """The instructions of a native plan as 64-bit words. By the identity of an object, ``references`` are the indices
    of words that hold its address, and ``sites`` those that hold the site of its kernels."""

    words: Any
    references: dict[int, list[int]] = field(default_factory=dict)
    sites: dict[int, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of an operation in a native plan: the words at ``places`` refer to its function, and those at ``sites``
    launch its kernels. Calling this object with another function patches these words."""

    words: Any
    places: Sequence[int]
    sites: Sequence[int]
    kept: list[object]

    def __call__(self, function: Callable[..., Any]) -> None:
        """Patch the plan to call ``function``."""
        self.kept.append(function)  # what was called before stays alive: another thread may be in it
        for place in self.places:
            self.words[place] = id(function)
        for place in self.sites:
            self.words[place] = site_of(function) or 0
