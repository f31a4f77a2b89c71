"""Expression folding: instructions that need no statement of their own in generated Python.

Two sorts of results are substituted into their readers, rather than assigned to a variable first::

    8 = remainder 1, 2
    9 = eq 8, 3                      becomes   if r1 % 2 == r3:
    JumpIfFalse 9 -> L7

    4 = ListConstruct 1, 2           becomes   r5 = f3(r0, (r1, r2, ))
    5 = view 0, move(4)

An *inlined* result is read once, by the next instruction that is not inlined itself; it cannot fail, so that errors
keep their location. A *rematerialized* result is a list of numbers that no reader distinguishes from a tuple: only
operators that take any sequence read it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.ir.graph import Value
from rekindle.ops.python.scalars import derive_index
from rekindle.runtime.interpreter.instructions import JUMPS, Instruction, Opcode
from rekindle.runtime.interpreter.lowering import WITHOUT_MEMORY

_MAX_DEPTH: Final = 12
"""Python's parser takes a hundred parentheses within each other; a reader takes fewer."""
_MAX_LENGTH: Final = 16
"""Lists with more elements are made once."""

_REAL: Final = frozenset({"IntType", "FloatType", "BoolType"})
_ARITHMETIC: Final = frozenset({operator.add, operator.sub, operator.mul})
_COMPARISONS: Final = frozenset({operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge})
_LOGIC: Final = frozenset({operator.and_, operator.or_, operator.xor})
_DIVISIONS: Final = frozenset({operator.floordiv, operator.mod})
_UNARY: Final = frozenset({operator.neg, operator.not_})
_IDENTITIES: Final = frozenset({operator.is_, operator.is_not})
_CASTS: Final = frozenset({"prim::unchecked_cast", "prim::unchecked_unwrap_optional"})
_READERS: Final = frozenset(
    {Opcode.OPERATION, Opcode.JUMP_IF_FALSE, Opcode.JUMP_IF_TRUE, Opcode.MOVE, Opcode.STORE},
)


@dataclass(slots=True)
class FoldedInstructions:
    """The indices of instructions that are folded into the next one, and of those whose expression is repeated at each
    use."""

    inlined: set[int] = field(default_factory=set)
    rematerialized: set[int] = field(default_factory=set)


def foldable(instructions: Sequence[Instruction], uses: Uses) -> FoldedInstructions:
    """Return the indices of the instructions whose results need no line of their own in a plan."""
    found = FoldedInstructions()
    for index, instruction in enumerate(instructions):
        if uses.is_plain_result(instruction) and _is_list_of_numbers(instruction, uses):
            readers = uses.readers.get(instruction.outputs[0], [])
            if readers and all(_takes_any_sequence(instructions[reader]) for reader in readers):
                found.rematerialized.add(index)
    _join(instructions, uses, found)
    return found


class Uses:
    """The instructions that read each register, the number of its writes, and the targets of jumps."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.readers: dict[int | None, list[int]] = {}
        self.writes: dict[int | None, int] = {}
        self.targets: set[int] = set()
        self._writers: dict[int | None, Instruction] = {}
        for index, instruction in enumerate(instructions):
            if instruction.opcode is not Opcode.DROP:
                for register in instruction.inputs:
                    self.readers.setdefault(register, []).append(index)
            for output in instruction.outputs:
                self.writes[output] = self.writes.get(output, 0) + 1
                self._writers[output] = instruction
            if instruction.target >= 0:
                self.targets.add(instruction.target)

    def is_plain_result(self, instruction: Instruction) -> bool:
        """Return whether an instruction has one result, in a register that nothing else writes."""
        outputs = instruction.outputs
        return len(outputs) == 1 and outputs[0] is not None and self.writes[outputs[0]] == 1

    def writer_of(self, register: int) -> Instruction | None:
        """Return the only instruction that writes a register; None if none or several write it."""
        return self._writers[register] if self.writes.get(register) == 1 else None

    def reader_of(self, instruction: Instruction) -> int:
        """Return the index of the only instruction that reads the result of another; -1 if none or several read it."""
        readers = self.readers.get(instruction.outputs[0], ()) if instruction.outputs else ()
        return readers[0] if len(readers) == 1 else -1


def _takes_any_sequence(reader: Instruction) -> bool:
    found = reader.node.operator if reader.opcode is Opcode.OPERATION else None
    return found is not None and found.takes_any_sequence


def _is_list_of_numbers(instruction: Instruction, uses: Uses) -> bool:
    if instruction.opcode is Opcode.CONSTANT:
        value = instruction.constant
        return isinstance(value, list) and len(value) <= _MAX_LENGTH and all(type(item) is int for item in value)
    if instruction.opcode is not Opcode.OPERATION or instruction.node.kind != "prim::ListConstruct":
        return False
    if len(instruction.inputs) > _MAX_LENGTH or not all(_is_number(value) for value in instruction.node.inputs):
        return False
    return all(uses.writes.get(register, 0) <= 1 for register in instruction.inputs)


def _is_number(value: Value) -> bool:
    return value.type.kind in WITHOUT_MEMORY


def _join(instructions: Sequence[Instruction], uses: Uses, found: FoldedInstructions) -> None:
    reader = -1
    """The next instruction that has a line of its own."""
    depths: dict[int, int] = {}
    for index in range(len(instructions) - 1, -1, -1):
        instruction = instructions[index]
        depth = depths.get(uses.reader_of(instruction), 0) + 1
        if index in found.rematerialized:
            pass
        elif depth <= _MAX_DEPTH and _can_join(index, instructions, reader, uses, found):
            depths[index] = depth
            found.inlined.add(index)
        else:
            reader = index
        if index in uses.targets:
            reader = -1  # a jump target may be reached from elsewhere


def _can_join(
    index: int, instructions: Sequence[Instruction], reader: int, uses: Uses, found: FoldedInstructions
) -> bool:
    """Return whether an instruction can be folded into the line of ``reader``, or of the instruction that it is folded
    into."""
    instruction = instructions[index]
    if reader < 0 or instruction.opcode is not Opcode.OPERATION or not uses.is_plain_result(instruction):
        return False
    into = uses.reader_of(instruction)
    if not index < into <= reader or into in found.rematerialized:
        return False
    opcode = instructions[reader].opcode
    if opcode not in _READERS or (opcode in JUMPS and instruction.cleared):
        return False
    return _cannot_fail(instruction)


def _cannot_fail(instruction: Instruction) -> bool:
    function, node = instruction.operation, instruction.node
    if node.kind in _CASTS:
        return True
    kinds = {value.type.kind for value in node.inputs}
    if function in _IDENTITIES:
        return True
    if not kinds <= _REAL:
        return False
    if function in _COMPARISONS or function in _UNARY:
        return True
    if len(kinds) != 1:
        return False  # an int may be too large for a float
    if function in _ARITHMETIC or function in _LOGIC or function is derive_index:
        return True
    if function not in _DIVISIONS or kinds != {"IntType"}:
        return False
    _, divisor = node.inputs
    return bool(divisor.to_python())  # a constant other than zero
