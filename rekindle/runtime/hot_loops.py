"""Loops that run often become Python functions.

The steps of a loop are functions of the registers, and calling them is most of the time that a loop over numbers
takes. Once a loop has come back to its start :data:`HOT` times, the instructions between are written down as the body
of one function, which runs the iterations that are left::

    L2:                                        def loop(registers):
    6 = mul 4, 1                                 (r0, r1, …) = (registers[0], registers[1], …)
    3 = select move(3), 2, move(6)   becomes     while True:
    4 = LoopNext 0 -> L2                           r6 = r4 * r1
                                                   registers[3] = f3(registers[3], r2, r6)
                                                   r4 = r4 + 1
                                                   if r4 >= r0: break
                                                 (registers[4], registers[6]) = (r4, r6)

Numbers live in variables meanwhile. The other registers are read, written and cleared as before, so that everything
dies as before. A loop that calls other functions of the program, forks or waits is left alone: it may have to stop
in its middle.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence, Set
from types import CodeType
from typing import Any

from rekindle.runtime.instructions import BOUNDARIES, Instruction, Opcode, copy_constant

HOT = 200
"""How often a loop comes back to its start before it is compiled: about as many steps take as long as compiling one."""

_MOST_LOOPS = 15
"""Python's compiler nests no more than 20 loops."""
_MOST_BLOCKS = 60
"""And no more than 100 blocks."""

_INFIX: dict[object, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.truediv: "/",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
}
_PREFIX: dict[object, str] = {operator.neg: "-", operator.not_: "not "}


class _NotCompilable(Exception):
    """The loop has to be interpreted."""


def _must_be_interpreted(instruction: Instruction) -> bool:
    """Calls need the interpreter's stack; with statements need its registers, should an error come."""
    return instruction.opcode in BOUNDARIES or instruction.node.kind == "prim::Enter"


class HotLoops:
    """The loops of some instructions that have been compiled, and where their lines come from."""

    __slots__ = ("_instructions", "_light", "_lines")

    def __init__(self, instructions: Sequence[Instruction], light: Set[int]) -> None:
        self._instructions = instructions
        self._light = light
        self._lines: dict[int, tuple[CodeType, list[int]]] = {}
        """By the identity of the code: code objects compare equal to their likes."""

    def compile(self, start: int, end: int) -> Callable[[list[Any]], None] | None:
        """A function that runs the loop from ``start`` to the jump back at ``end``, from the next iteration to its
        last one.

        None where it has to be interpreted.
        """
        if any(map(_must_be_interpreted, self._instructions[start:end])):
            return None
        writer = _Writer(self._instructions, self._light)
        try:
            writer.loop(start, end)
        except _NotCompilable:
            return None
        text = "\n".join(["def loop(registers):", writer.head(), *writer.lines, writer.tail()])
        exec(compile(text, "<rekindle loop>", "exec"), writer.names)  # noqa: S102 (the text is ours, not a program's)
        loop: Callable[[list[Any]], None] = writer.names["loop"]
        self._lines[id(loop.__code__)] = loop.__code__, writer.indices
        return loop

    def index(self, code: CodeType, line: int) -> int | None:
        """The instruction that ``line`` of the code of a compiled loop runs; None for other code."""
        found = self._lines.get(id(code))
        return None if found is None else found[1][line - 3]


class _Writer:
    """Writes instructions as lines of Python. For each line, ``indices`` has the instruction."""

    def __init__(self, instructions: Sequence[Instruction], light: Set[int]) -> None:
        self.instructions = instructions
        self.light = light
        self.read: set[int] = set()
        self.written: set[int] = set()
        """Registers that have a variable, if they are read, if they are written."""
        self.lines: list[str] = []
        self.indices: list[int] = []
        self.names: dict[str, Any] = {"__builtins__": {}}
        self.indent = 1
        self.open_loops: list[int] = []
        """The jumps back of the loops around."""
        self.jumps_back: dict[int, list[int]] = {}
        """By the start of a loop, the jumps back to it."""
        for index, instruction in enumerate(instructions):
            if 0 <= instruction.target <= index:
                self.jumps_back.setdefault(instruction.target, []).append(index)

    def source(self, register: int | None) -> str:
        """What is read for a register."""
        assert register is not None
        if register not in self.light:
            return f"registers[{register}]"
        self.read.add(register)
        return f"r{register}"

    def target(self, register: int | None) -> str:
        """What is written for a register."""
        if register is None:
            return "_"
        if register in self.light:
            self.written.add(register)
        return self.source(register)

    def head(self) -> str:
        """The line that loads the variables."""
        names = sorted(self.read | self.written)
        return f" ({''.join(f'r{n}, ' for n in names)}) = ({''.join(f'registers[{n}], ' for n in names)})"

    def tail(self) -> str:
        """The line that writes them back."""
        names = sorted(self.written)
        return f" ({''.join(f'registers[{n}], ' for n in names)}) = ({''.join(f'r{n}, ' for n in names)})"

    def write(self, index: int, line: str) -> None:
        if self.indent > _MOST_BLOCKS:
            raise _NotCompilable
        self.lines.append(" " * self.indent + line)
        self.indices.append(index)

    def inside(self, index: int, head: str, start: int, end: int) -> None:
        """``head`` with the instructions from ``start`` to before ``end`` as its block."""
        self.write(index, head)
        self.indent += 1
        before = len(self.lines)
        self.instructions_from(start, end)
        if len(self.lines) == before:
            self.write(index, "pass")
        self.indent -= 1

    def loop(self, start: int, end: int) -> None:
        """The loop from ``start`` to the jump back at ``end``."""
        if len(self.open_loops) >= _MOST_LOOPS:
            raise _NotCompilable
        self.open_loops.append(end)
        self.inside(start, "while True:", start, end)
        self.indent += 1
        jump = self.instructions[end]
        if jump.opcode is Opcode.LOOP_NEXT:
            counter = self.target(jump.outputs[0])
            self.write(end, f"{counter} = {counter} + 1")
            self.write(end, f"if {counter} >= {self.source(jump.inputs[0])}: break")
        elif jump.opcode is Opcode.JUMP_IF_TRUE:
            self.write(end, f"if not {self.source(jump.inputs[0])}: break")
        self.indent -= 1
        self.open_loops.pop()

    def instructions_from(self, start: int, end: int) -> None:
        index = start
        while index < end:
            index = self.instruction(index, end)

    def instruction(self, index: int, end: int) -> int:
        """Write the instruction at ``index`` and what belongs to it; returns the index behind."""
        back = self.jump_back_to(index, end)
        if back is not None:
            self.loop(index, back)
            return back + 1
        instruction = self.instructions[index]
        match instruction.opcode:
            case Opcode.OPERATION | Opcode.MOVE | Opcode.DROP | Opcode.CONSTANT:
                self.plain(index, instruction)
                return index + 1
            case Opcode.JUMP_IF_TRUE | Opcode.JUMP_IF_FALSE:
                return self.choice(index, instruction)
            case Opcode.LOOP_START:
                self.write(index, f"{self.target(instruction.outputs[0])} = 0")
                self.inside(index, f"if {self.source(instruction.inputs[0])} > 0:", index + 1, instruction.target)
                return instruction.target
            case _:
                raise _NotCompilable

    def jump_back_to(self, index: int, end: int) -> int | None:
        """The jump back of the outermost loop that starts at ``index``, ends before ``end`` and is not open yet."""
        inner = [back for back in self.jumps_back.get(index, ()) if back < end and back not in self.open_loops]
        return max(inner, default=None)

    def choice(self, index: int, test: Instruction) -> int:
        """A jump forward that depends on a register."""
        condition = self.source(test.inputs[0])
        negated = "" if test.opcode is Opcode.JUMP_IF_FALSE else "not "
        if self.open_loops and test.target == self.open_loops[-1] + 1:
            self.write(index, f"if not {condition}: break")
            return index + 1
        last = self.instructions[test.target - 1]
        has_else = last.opcode is Opcode.JUMP and last.node is test.node and last.target >= test.target > index + 1
        if not has_else:
            self.inside(index, f"if {negated}{condition}:", index + 1, test.target)
            return test.target
        self.inside(index, f"if {negated}{condition}:", index + 1, test.target - 1)
        self.inside(index, "else:", test.target, last.target)
        return last.target

    def plain(self, index: int, instruction: Instruction) -> None:
        reads = (
            [self.source(register) for register in instruction.inputs] if instruction.opcode is not Opcode.DROP else []
        )
        targets = [self.target(register) for register in instruction.outputs]
        line = ""
        if instruction.opcode is Opcode.OPERATION:
            line = self.operation(index, instruction, reads)
        elif instruction.opcode is Opcode.MOVE:
            line = ", ".join(reads)
        elif instruction.opcode is Opcode.CONSTANT:
            self.names[f"v{index}"] = instruction.constant
            self.names["copy"] = copy_constant
            line = f"copy(v{index})"
        if line:
            self.write(index, line if not any(t != "_" for t in targets) else f"{', '.join(targets)} = {line}")
        freed = [f"registers[{register}]" for register in instruction.cleared]
        if len(targets) > 1 and "_" in targets:
            freed.append("_")
        if freed:
            self.write(index, f"{' = '.join(freed)} = None")

    def operation(self, index: int, instruction: Instruction, reads: list[str]) -> str:
        operation = instruction.operation
        if len(reads) == 2 and operation in _INFIX:
            return f"{reads[0]} {_INFIX[operation]} {reads[1]}"
        if len(reads) == 2 and operation is operator.getitem:
            return f"{reads[0]}[{reads[1]}]"
        if len(reads) == 1 and operation in _PREFIX:
            return f"{_PREFIX[operation]}{reads[0]}"
        self.names[f"f{index}"] = operation
        return f"f{index}({', '.join(reads)})"
