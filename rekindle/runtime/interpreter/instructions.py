"""The instructions of the interpreter."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from rekindle.ir.graph import Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.registry import Operation


class Opcode(enum.Enum):
    """Opcodes. The values are their names in listings."""

    OPERATION = "operation"
    """Call ``operation`` with the inputs; write its results to the outputs."""
    CONSTANT = "Constant"
    """Write a fresh copy of a constant that programs can write to."""
    MOVE = "Move"
    """Write the inputs to the outputs, all at once."""
    DROP = "Drop"
    """Clear the inputs' registers."""
    JUMP = "Jump"
    JUMP_IF_TRUE = "JumpIfTrue"
    JUMP_IF_FALSE = "JumpIfFalse"
    """Jumps to ``target`` if the input is false, else continues with the next instruction."""
    LOOP_START = "LoopStart"
    """Set the counter (the output) to 0; go to ``target`` if the input, the number of iterations, allows none,
    else on."""
    LOOP_NEXT = "LoopNext"
    """Add 1 to the counter; go to ``target``, the start of the body, if the number of iterations allows one more,
    else on."""
    CALL = "Call"
    """Run another function on the inputs, in a frame of its own."""
    CALL_METHOD = "CallMethod"
    """Run a method of the first input on the inputs."""
    FORK = "Fork"
    """Start a function on another thread with the inputs; write the future of its result."""
    WAIT = "Wait"
    """Write the value of the future that is the input. Until there is one, the execution is suspended."""
    DEFER = "Awaitable"
    """Write an Await, which runs a function on the inputs when its result is requested."""
    AWAIT = "Await"
    """Write the result of the Await that is the input. If it does not exist yet, run its function, in a frame of its
    own. If another execution is running it, this one is suspended."""
    BAILOUT = "BailOut"
    """Write the first input, if it passes the guard. Else continue in the rest of the program, which takes the
    inputs: ``constant`` is the continuation."""
    STORE = "Store"
    """Return the inputs."""


JUMPS = frozenset({Opcode.JUMP, Opcode.JUMP_IF_TRUE, Opcode.JUMP_IF_FALSE, Opcode.LOOP_START, Opcode.LOOP_NEXT})
CALLS = frozenset({Opcode.CALL, Opcode.CALL_METHOD})
TASKS = frozenset({Opcode.FORK, Opcode.WAIT, Opcode.DEFER, Opcode.AWAIT})
BOUNDARIES = CALLS | TASKS | {Opcode.BAILOUT, Opcode.STORE}
"""Opcodes that the interpreter itself runs: they change more than the registers."""
ENDS_SEGMENT = JUMPS | BOUNDARIES
"""Instructions that may continue elsewhere than with the next one."""

_WITH_EQUALS = CALLS | TASKS | {Opcode.OPERATION, Opcode.BAILOUT, Opcode.STORE}


@dataclass(slots=True, eq=False)
class Instruction:
    """One step of a program.

    ``inputs`` are registers, and so are ``outputs``, where None stands for an unused result. ``moves`` specifies for
    each input whether this is its last use. ``cleared`` are the registers that are cleared for it: not those of numbers
    and the like, which hold no memory, and only of a call those that the instruction itself writes. ``target`` is where
    a jump goes: the index of an instruction. ``function`` is what a call or a fork runs, where it is known before it
    runs.
    """

    opcode: Opcode
    name: str
    node: Node
    inputs: tuple[int, ...] = ()
    moves: tuple[bool, ...] = ()
    outputs: tuple[int | None, ...] = ()
    cleared: tuple[int, ...] = ()
    target: int = -1
    operation: Operation | None = None
    function: GraphFunction | None = None
    constant: object = None

    @property
    def input(self) -> int:
        """The only input register."""
        (register,) = self.inputs
        return register

    def __str__(self) -> str:
        outputs = ", ".join("_" if register is None else str(register) for register in self.outputs)
        inputs = ", ".join(
            f"move({register})" if moved else str(register)
            for register, moved in zip(self.inputs, self.moves, strict=True)
        )
        parts = [outputs, "=" if self.outputs or self.opcode in _WITH_EQUALS else "", self.name, inputs]
        if self.opcode is Opcode.CONSTANT:
            parts.append(describe_constant(self.constant))
        if self.opcode in JUMPS:
            parts.append(f"-> L{self.target}")
        return " ".join(part for part in parts if part)


def describe_constant(value: object) -> str:
    """Return a constant on one line, without the content of tensors, cut to 60 characters."""
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        text = repr(value)
    elif isinstance(value, list):
        text = f"[{', '.join(map(describe_constant, value))}]"
    elif isinstance(value, tuple):
        text = f"({', '.join(map(describe_constant, value))})"
    elif isinstance(value, dict):
        text = f"{{{', '.join(f'{describe_constant(k)}: {describe_constant(v)}' for k, v in value.items())}}}"
    else:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def copy_constant(value: object) -> object:
    """Return a copy of a constant with its own mutable containers. Tensors and objects are shared."""
    if isinstance(value, list):
        return [copy_constant(item) for item in value]
    if isinstance(value, tuple):
        items: list[Any] = [copy_constant(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        return {key: copy_constant(item) for key, item in value.items()}
    return value
