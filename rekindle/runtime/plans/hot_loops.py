"""Loop JIT: compile hot loops to Python functions.

The steps of a loop are functions of the registers, and calling them is most of the time of a loop over numbers. Once a
loop has jumped back to its start :data:`HOT` times, its instructions are compiled as the body of one function, which
runs the remaining iterations::

    L2:                                        def loop(registers):
    6 = mul 4, 1                                 (r0, r1, …) = (registers[0], registers[1], …)
    3 = select move(3), 2, move(6)   becomes     while True:
    4 = LoopNext 0 -> L2                           r6 = r4 * r1
                                                   registers[3] = f3(registers[3], r2, r6)
                                                   r4 = r4 + 1
                                                   if r4 >= r0: break
                                                 (registers[4], registers[6]) = (r4, r6)

Numbers are in variables while it runs. The other registers are read, written and cleared as before, so that lifetimes
are unchanged. A loop that calls other functions of the program, forks or waits is not compiled: it may have to be
suspended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import partial
from types import CodeType
from typing import Any

from rekindle.ir.subgraph_execution import PatchableOperation
from rekindle.runtime.interpreter.instructions import BOUNDARIES, Instruction
from rekindle.runtime.plans.python_code import NotCompilable, PythonWriter

HOT = 200
"""Number of backward jumps before a loop is compiled: about as many steps take as long as compiling one."""


def _must_be_interpreted(instruction: Instruction) -> bool:
    """Return whether only the interpreter can execute the instruction: calls need its stack; with statements need its
    registers if an error occurs."""
    return instruction.opcode in BOUNDARIES or instruction.node.kind == "prim::Enter"


class HotLoops:
    """The loops of a sequence of instructions, compiled on demand, and the source locations of their lines."""

    __slots__ = ("_instructions", "_light", "_lines")

    def __init__(self, instructions: Sequence[Instruction], light: Set[int]) -> None:
        self._instructions = instructions
        self._light = light
        self._lines: dict[int, tuple[CodeType, list[int]]] = {}
        """By the identity of the code: code objects compare equal to their likes."""

    def compile(self, start: int, end: int) -> Callable[[list[Any]], None] | None:
        """Return a function that runs the loop from ``start`` to the jump back at ``end``, from the next iteration to
        its last one.

        None where it has to be interpreted.
        """
        if any(map(_must_be_interpreted, self._instructions[start:end])):
            return None
        writer = LoopWriter(self._instructions, self._light)
        try:
            writer.loop(start, end)
        except NotCompilable:
            return None
        text = "\n".join(["def loop(registers):", writer.head(), *writer.lines, writer.tail()])
        exec(compile(text, "<rekindle loop>", "exec"), writer.names)  # noqa: S102 (the text is generated here, not a program's)
        for name, value in list(writer.names.items()):
            if isinstance(value, PatchableOperation):
                value.add_call_site(partial(writer.names.__setitem__, name))
        loop: Callable[[list[Any]], None] = writer.names["loop"]
        self._lines[id(loop.__code__)] = loop.__code__, writer.indices
        return loop

    def index(self, code: CodeType, line: int) -> int | None:
        """Return the index of the instruction that ``line`` of the code of a compiled loop runs; None for other
        code."""
        found = self._lines.get(id(code))
        return None if found is None else found[1][line - 3]


class LoopWriter(PythonWriter):
    """A writer of one loop as Python code. Registers remain items of the list of registers, but each register of a
    number has a local variable."""

    def __init__(self, instructions: Sequence[Instruction], light: Set[int]) -> None:
        super().__init__(instructions)
        self.light = light
        self.read: set[int] = set()
        self.written: set[int] = set()
        """Registers that have a variable, if they are read, if they are written."""

    def source(self, register: int | None) -> str:
        assert register is not None
        if register not in self.light:
            return f"registers[{register}]"
        self.read.add(register)
        return f"r{register}"

    def target(self, register: int | None) -> str:
        if register is None:
            return "_"
        if register in self.light:
            self.written.add(register)
        return self.source(register)

    def head(self) -> str:
        """Return the line that loads registers into local variables."""
        names = sorted(self.read | self.written)
        return f" ({''.join(f'r{n}, ' for n in names)}) = ({''.join(f'registers[{n}], ' for n in names)})"

    def tail(self) -> str:
        """Return the line that writes the local variables to their registers."""
        names = sorted(self.written)
        return f" ({''.join(f'registers[{n}], ' for n in names)}) = ({''.join(f'r{n}, ' for n in names)})"
