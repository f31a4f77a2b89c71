"""Instructions as lines of Python.

Running an instruction one by one costs more than most of what they do with numbers. What runs often is written down
as Python source and compiled once: loops that have become hot, and whole functions. Jumps become ``if`` and ``while``
again::

    JumpIfFalse 2 -> L4                if r2:
    3 = add move(0), 1                   r3 = f1(r0, r1); r0 = None
    Jump -> L5                becomes  else:
    L4: 3 = neg move(0)                  r3 = f3(r0); r0 = None
    L5: …

The text is ours: nothing of a program stands in it but numbers and strings as Python's ``repr`` writes them.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from rekindle.ir.graph import Node
from rekindle.ir.registry import Operation
from rekindle.ir.types import TupleType
from rekindle.runtime.instructions import Instruction, Opcode, copy_constant

MOST_LOOPS: Final = 15
"""Python's compiler nests no more than 20 blocks that an exception or a ``break`` must know of."""
_MOST_BLOCKS: Final = 60
"""And indents no deeper than 100 times."""

_INFIX: Final[dict[object, str]] = {
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
    operator.is_: "is",
    operator.is_not: "is not",
}
_IDENTITY: Final = (operator.is_, operator.is_not)
_PREFIX: Final[dict[object, str]] = {operator.neg: "-", operator.not_: "not "}


class NotCompilable(Exception):
    """The instructions cannot be written as Python, and have to be interpreted."""


class PythonWriter:
    """Writes instructions as lines of Python; how registers are read and written is for subclasses to say.

    ``lines`` are the lines, ``indices`` has for each the instruction that it runs, and ``names`` are the globals that
    the code needs.
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.instructions = instructions
        self.lines: list[str] = []
        self.indices: list[int] = []
        # The functions of torch that are written in C import what they need by way of the frame's builtins.
        self.names: dict[str, Any] = {"__builtins__": builtins}
        self.indent = 1
        self.open_loops: list[int] = []
        """The jumps back of the loops around."""
        self.open_tries = 0
        self.jumps_back: dict[int, list[int]] = {}
        """By the start of a loop, the jumps back to it."""
        for index, instruction in enumerate(instructions):
            if 0 <= instruction.target <= index:
                self.jumps_back.setdefault(instruction.target, []).append(index)

    # ------------------------------------------------------------------------------------------------------ registers

    def source(self, register: int | None) -> str:
        """What is read for a register."""
        raise NotImplementedError

    def target(self, register: int | None) -> str:
        """What is written for a register; ``_`` for None."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------------------- lines

    def write(self, index: int, line: str) -> None:
        if self.indent > _MOST_BLOCKS:
            raise NotCompilable
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

    def instructions_from(self, start: int, end: int) -> None:
        index = start
        while index < end:
            index = self.instruction(index, end)

    def instruction(self, index: int, end: int) -> int:
        """Write the instruction at ``index`` and what belongs to it; returns the index behind.

        Raises:
            NotCompilable: it is not for this writer.
        """
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
                return self._choice(index, instruction)
            case Opcode.LOOP_START:
                self.write(index, f"{self.target(instruction.outputs[0])} = 0")
                self.inside(index, f"if {self.source(instruction.inputs[0])} > 0:", index + 1, instruction.target)
                return instruction.target
            case _:
                raise NotCompilable

    # --------------------------------------------------------------------------------------------------- control flow

    def loop(self, start: int, end: int) -> None:
        """The loop from ``start`` to the jump back at ``end``."""
        if len(self.open_loops) + self.open_tries >= MOST_LOOPS:
            raise NotCompilable
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

    def jump_back_to(self, index: int, end: int) -> int | None:
        """The jump back of the outermost loop that starts at ``index``, ends before ``end`` and is not open yet."""
        inner = [back for back in self.jumps_back.get(index, ()) if back < end and back not in self.open_loops]
        return max(inner, default=None)

    def _choice(self, index: int, test: Instruction) -> int:
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

    # ----------------------------------------------------------------------------------------------------- operations

    def plain(self, index: int, instruction: Instruction) -> None:
        """An instruction that leads to the next one."""
        value = ""
        if instruction.opcode is Opcode.OPERATION:
            value = self.operation(index, instruction)
        elif instruction.opcode is Opcode.MOVE:
            value = ", ".join(map(self.source, instruction.inputs))
        elif instruction.opcode is Opcode.CONSTANT:
            value = self._fresh(index, instruction.constant)
        self.assign(index, instruction, value)

    def assign(self, index: int, instruction: Instruction, value: str) -> None:
        """Write ``value`` to the outputs of an instruction, and clear what it clears."""
        targets = [self.target(register) for register in instruction.outputs]
        if value:
            self.write(index, value if not any(t != "_" for t in targets) else f"{', '.join(targets)} = {value}")
        freed = [self.source(register) for register in instruction.cleared]
        if len(targets) > 1 and "_" in targets:
            freed.append("_")
        if freed:
            self.write(index, f"{' = '.join(freed)} = None")

    def operation(self, index: int, instruction: Instruction) -> str:
        """The expression that an operation is."""
        reads = [self.source(register) for register in instruction.inputs]
        function = instruction.operation
        if len(reads) == 2 and function in _INFIX and not (function in _IDENTITY and any(map(_is_literal, reads))):
            return f"{reads[0]} {_INFIX[function]} {reads[1]}"
        if len(reads) == 2 and function is operator.getitem:
            return f"{reads[0]}[{reads[1]}]"
        if len(reads) == 1 and function in _PREFIX:
            return f"{_PREFIX[function]}{reads[0]}"
        form = _FORMS.get(instruction.node.kind)
        text = form(instruction.node, reads) if form is not None else None
        return self._call(index, instruction, reads) if text is None else text

    def _call(self, index: int, instruction: Instruction, reads: list[str]) -> str:
        found = instruction.node.operator
        function: Operation | None = instruction.operation
        arguments = reads
        if found is not None and found.invocation_for_node is not None:
            shortest = found.invocation_of(instruction.node)
            function = shortest.function
            arguments = [reads[i] for i in shortest.positional] + [f"{name}={reads[i]}" for name, i in shortest.named]
        self.names[f"f{index}"] = function
        return f"f{index}({', '.join(arguments)})"

    def _fresh(self, index: int, constant: object) -> str:
        """A new copy of a constant that programs can write to."""
        if isinstance(constant, list):
            items = [literal(item) for item in constant]
            if None not in items:
                return f"[{', '.join(map(str, items))}]"
        self.names[f"v{index}"] = constant
        self.names["copy"] = copy_constant
        return f"copy(v{index})"


def literal(value: object) -> str | None:
    """How Python writes a constant; None for what it has no literal for."""
    if value is None or isinstance(value, (bool, str)):
        return repr(value)
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return repr(value) if not repr(value).startswith("-") else f"({value!r})"
    return None


def _is_literal(text: str) -> bool:
    """Whether Python warns of a test for identity with this."""
    return text[0] in "'\"(0123456789"


# ---------------------------------------------------------------------------------------------------------------- forms


def _list(node: Node, reads: Sequence[str]) -> str:
    return f"[{', '.join(reads)}]"


def _dict(node: Node, reads: Sequence[str]) -> str:
    return f"{{{', '.join(f'{key}: {value}' for key, value in zip(reads[::2], reads[1::2], strict=True))}}}"


def _tuple(node: Node, reads: Sequence[str]) -> str | None:
    type = node.output.type
    if isinstance(type, TupleType) and type.fields is not None:
        return None
    return f"({''.join(f'{item}, ' for item in reads)})"


def _several(node: Node, reads: Sequence[str]) -> str | None:
    """Python itself takes apart what is assigned to several names."""
    return reads[0] if len(node.outputs) > 1 else None


def _itself(node: Node, reads: Sequence[str]) -> str:
    return reads[0]


_FORMS: Final[dict[str, Callable[[Node, Sequence[str]], str | None]]] = {
    "prim::ListConstruct": _list,
    "prim::DictConstruct": _dict,
    "prim::TupleConstruct": _tuple,
    "prim::TupleUnpack": _several,
    "prim::ListUnpack": _several,
    "prim::unchecked_cast": _itself,
    "prim::unchecked_unwrap_optional": _itself,
}
"""What Python writes without a call."""
