"""The layout of frames and instructions, which the handlers and the writer of plans share.

All fields are words of 64 bits. A frame holds the registers of one call of a plan::

    plan*, status, index, result, thread*, pending, calls, jumps | registers | scratch memory of instructions

An instruction is::

    handler*, next instruction*, index of the instruction of the Code, operands ...

A handler takes the frame and the instruction, and returns the instruction to run next, or null if the plan ends:
``status`` is then a :class:`Status`.
"""

from __future__ import annotations

import enum
from typing import Final

WORD: Final = 8


class FrameField(enum.IntEnum):
    """The words at the start of a frame."""

    PLAN = 0
    STATUS = 1
    INDEX = 2
    """The index, in the Code, of the instruction that failed, or at which the interpreter takes over."""
    RESULT = 3
    """The result of the last call: a number, or an object that the frame owns."""
    THREAD = 4
    """The state of Python's thread while the GIL is released; else 0. Handlers that use CPython acquire the GIL first.
    """
    PENDING = 5
    """One more than the number of the register that the object in RESULT belongs to, where the interpreter takes over
    after an instruction whose result fits no native register; -1 where the items of the object belong to the outputs
    of the instruction; else 0."""
    CALLS = 6
    """Number of operators that have run since the GIL was last released."""
    JUMPS = 7
    """Number of backward jumps."""


REGISTERS: Final = len(FrameField)
"""The first word after the fields."""


class Status(enum.IntEnum):
    """Exit statuses of a plan."""

    FAILED = 0
    """Python's error is set."""
    RETURNED = 1
    """The result is in RESULT."""
    LEFT_BEFORE = 2
    """The interpreter has to run the instruction at INDEX, and what follows."""
    LEFT_AFTER = 3
    """The interpreter has to run what follows the instruction at INDEX."""


class Kind(enum.IntEnum):
    """Kinds of register contents. Empty registers of the owning kinds hold 0."""

    OBJECT = 0
    """A reference to an object of Python. Where the program has a Tensor, its class is exactly Tensor or Parameter."""
    TENSOR = 1
    """An ``at::Tensor``."""
    INT = 2
    FLOAT = 3
    BOOL = 4
    INTS = 5
    """The address of ints, and in a second word their number."""
    TENSORS = 6
    """The address of owned ``at::Tensor``, and in a second word their number."""
    CONSTANT = 7
    """No initialization: the value of the register is part of the instructions."""

    @property
    def words(self) -> int:
        return 2 if self in (Kind.INTS, Kind.TENSORS) else 1

    @property
    def owns(self) -> bool:
        """Whether a register of this kind has to be released."""
        return self in (Kind.OBJECT, Kind.TENSOR, Kind.TENSORS)
