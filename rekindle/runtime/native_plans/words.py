"""Words of a call, and which of them go to registers: System V's ABI for x86-64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.plan_runtime.call_ir import DOUBLES, REGISTER_WORDS, STACK_WORDS, aten_handler_name

Word = tuple[int, int, int, int]
"""The word ``(frame[a] & m) + (frame address & n) + v``: see :mod:`rekindle.codegen.plan_runtime.call_ir`."""

_ALL: Final = -1


def immediate(value: int) -> Word:
    """Return the operand whose value is ``value`` itself."""
    return 0, 0, 0, value


def address(offset: int) -> Word:
    """Return the operand whose value is the address ``offset`` bytes after the start of the frame."""
    return 0, 0, _ALL, offset


def content(offset: int, add: int = 0) -> Word:
    """Return the operand whose value is the 64-bit word at ``offset`` bytes after the start of the frame, plus
    ``add``."""
    return offset, _ALL, 0, add


@dataclass(frozen=True, slots=True)
class Integers:
    """An argument of one or two 64-bit words of the class INTEGER of the calling convention: all in registers, or all
    on the stack."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class InMemory:
    """An argument of the class MEMORY of the calling convention: on the stack, by value."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Floating:
    """A double argument, and the word of class INTEGER that follows it in the same structure."""

    value: Word
    behind: Word | None = None


Passed = Integers | InMemory | Floating


class TooManyArguments(Exception):
    """Raised for calls with more words of arguments than any handler passes."""


@dataclass(slots=True)
class ArgumentPlacement:
    """The assignment of arguments to registers and stack, in order, by the rules of the C++ calling convention."""

    registers: list[Word] = field(default_factory=list)
    stack: list[Word] = field(default_factory=list)
    doubles: list[Word] = field(default_factory=list)

    def add(self, argument: Passed) -> None:
        """Assign a register or a stack position to the next argument.

        Raises:
            TooManyArguments: no register for doubles is left.
        """
        match argument:
            case Integers(words) if len(self.registers) + len(words) <= REGISTER_WORDS:
                self.registers += words
            case Integers(words) | InMemory(words):
                self.stack += words
            case Floating(value, None):
                self._add_double(value)
            case Floating(value, behind) if behind is not None and len(self.registers) < REGISTER_WORDS:
                self._add_double(value)
                self.registers.append(behind)
            case Floating(value, behind):
                assert behind is not None
                self.stack += (value, behind)

    def _add_double(self, value: Word) -> None:
        if len(self.doubles) == DOUBLES[-1]:
            raise TooManyArguments
        self.doubles.append(value)

    def handler(self, result: str) -> tuple[str, list[Word]]:
        """Return the name of the handler that passes the arguments, and the words that it reads.

        Raises:
            TooManyArguments: no handler passes so many words, or words on the stack or doubles to a function that
                returns a double.
        """
        stack = _first_not_below(STACK_WORDS, len(self.stack))
        doubles = _first_not_below(DOUBLES, len(self.doubles))
        if result == "double" and (stack or doubles):
            raise TooManyArguments
        words = [
            *_padded(self.registers, REGISTER_WORDS),
            *_padded(self.stack, stack),
            *_padded(self.doubles, doubles),
        ]
        return aten_handler_name(stack, doubles, result), words


def _first_not_below(sizes: Sequence[int], needed: int) -> int:
    for size in sizes:
        if size >= needed:
            return size
    raise TooManyArguments


def _padded(words: Sequence[Word], count: int) -> list[Word]:
    return [*words, *[immediate(0)] * (count - len(words))]
