"""Bytecode: a graph as a list of instructions on registers.

Every value has a register of its own. An instruction reads registers, runs an operation and writes registers; an input
that is not used afterwards is moved: its register is cleared, so that a tensor is freed right after its last use.
``str(code)`` reads

    0, 1 = Load
    2 = Constant 1
    3 = t move(1)
    4 = add move(0), move(3), 2
    = Store move(4)

Registers are shared in one case only: where control flow joins, a value is computed directly into the register of the
output that it becomes, if that register is free by then. So ``s = s + i`` in a loop costs one instruction. A
loop-carried value remains in one register.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rekindle.errors.gc_pause import gc_paused
from rekindle.ir.graph import Graph, Value
from rekindle.runtime.interpreter.basic_blocks import BasicBlock, BoundInstruction, basic_blocks_of
from rekindle.runtime.interpreter.instructions import Instruction, Opcode, describe_constant
from rekindle.runtime.interpreter.long_loops import LoopEntries
from rekindle.runtime.interpreter.lowering import lower
from rekindle.runtime.plans.hot_loops import HotLoops


class Code:
    """The instructions of a graph, shared by all its executions.

    ``template`` is the initial contents of the registers: the constants, whose registers are ``constants``. The
    arguments are in the first ``argument_count`` registers. ``values`` has for each register the values of the graph
    that it holds at some time.

    Raises:
        SchemaError: nothing is registered that runs one of the nodes.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        with gc_paused():
            lowered = lower(graph)
        self.name = name
        self.graph = graph
        self.argument_count = len(graph.inputs)
        self.instructions: Sequence[Instruction] = lowered.instructions
        self.template = lowered.template
        self.constants = tuple(lowered.constants)
        self.values: Sequence[Sequence[Value]] = lowered.values
        self.hot = HotLoops(lowered.instructions, lowered.non_owning)

    @cached_property
    def segments(self) -> Sequence[BasicBlock]:
        """The basic blocks, in the form that the interpreter runs."""
        return basic_blocks_of(self.instructions, self.hot, LoopEntries(self.values, self.name))

    @property
    def basename(self) -> str:
        """The unqualified name of the function."""
        return self.name.rsplit(".", 1)[-1]

    @cached_property
    def positions(self) -> dict[BoundInstruction, int]:
        """The index of the instruction that each bound function runs."""
        found: dict[BoundInstruction, int] = {}
        for segment in self.segments:
            for offset, step in enumerate(segment.body):
                found[step] = segment.start + offset
            for jump in (segment.jump, segment.transfer):
                if jump is not None:
                    found[jump] = segment.boundary_index
        return found

    @cached_property
    def _with_statements(self) -> list[tuple[int, int, int]]:
        """The indices of each ``prim::Enter`` and its ``prim::Exit``, and the register of the context manager."""
        found: list[tuple[int, int, int]] = []
        entered: list[int] = []
        for index, instruction in enumerate(self.instructions):
            if instruction.opcode is not Opcode.OPERATION:
                continue
            if instruction.node.kind == "prim::Enter":
                entered.append(index)
            elif instruction.node.kind == "prim::Exit" and entered:
                found.append((entered.pop(), index, instruction.input))
        return sorted(found)

    def entered_at(self, index: int) -> list[int]:
        """Return the registers of the context managers that are entered while instruction ``index`` runs, the innermost
        last."""
        return [register for enter, exit, register in self._with_statements if enter < index < exit]

    def listing(self) -> tuple[list[str], list[int]]:
        """Return the lines of ``str(code)``, and the line number of each instruction, counted from 1."""
        registers = ", ".join(map(str, range(self.argument_count)))
        lines = [f"{registers} = Load".strip()]
        lines += [f"{register} = Constant {describe_constant(self.template[register])}" for register in self.constants]
        targets = {instruction.target for instruction in self.instructions}
        numbers: list[int] = []
        for index, instruction in enumerate(self.instructions):
            if index in targets:
                lines.append(f"L{index}:")
            lines.append(str(instruction))
            numbers.append(len(lines))
        return lines, numbers

    def __str__(self) -> str:
        return "\n".join(self.listing()[0])
