"""Instructions in the form that the interpreter executes.

A segment is a run of instructions without jumps into or out of its middle. Each instruction of its body is a function
of the registers, made for its number of inputs and outputs, so that running it decides nothing. The instruction that
ends a segment selects the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from rekindle.runtime.interpreter.instructions import BOUNDARIES, ENDS_SEGMENT, Instruction, Opcode, copy_constant
from rekindle.runtime.interpreter.long_loops import LoopEntries
from rekindle.runtime.plans.hot_loops import HOT, HotLoops

Registers = list[Any]
BoundInstruction = Callable[[Registers], object]
"""Runs one instruction."""
Jump = Callable[[Registers], "BasicBlock"]
"""Runs the instruction that ends a segment; returns the next segment."""


@dataclass(slots=True, eq=False)
class BasicBlock:
    """The instructions from ``start`` on.

    ``body`` are those that continue with the next instruction. ``transfer`` returns the next segment: it is the last
    instruction, or without a jump, a fall-through to the following segment. It is None if the last instruction,
    ``exit_instruction``, calls, forks, waits or returns. ``next`` is the segment after it. ``jump`` is ``transfer`` for
    single steps: ``transfer`` may run the rest of a loop at once.
    """

    start: int
    body: tuple[BoundInstruction, ...] = ()
    transfer: Jump | None = None
    jump: Jump | None = None
    exit_instruction: Instruction | None = None
    next: BasicBlock | None = None
    falls_through: bool = False
    """Whether there is no instruction at the end: control falls through."""

    @property
    def boundary_index(self) -> int:
        """The index of the instruction that ends the block; of the one after the block, if control falls through."""
        return self.start + len(self.body)


def basic_blocks_of(instructions: Sequence[Instruction], hot: HotLoops, entries: LoopEntries) -> list[BasicBlock]:
    """Split instructions into basic blocks; the first one is the entry. ``hot`` compiles loops that run often, and
    ``entries`` long ones when they are entered."""
    starts = {0}
    for index, instruction in enumerate(instructions):
        if instruction.opcode in ENDS_SEGMENT:
            starts.add(index + 1)
        if instruction.target >= 0:
            starts.add(instruction.target)
    starts.discard(len(instructions))
    at = {start: BasicBlock(start) for start in sorted(starts)}
    for segment in at.values():
        _fill(segment, instructions, at, hot, entries)
    return list(at.values())


def _fill(
    segment: BasicBlock,
    instructions: Sequence[Instruction],
    at: dict[int, BasicBlock],
    hot: HotLoops,
    entries: LoopEntries,
) -> None:
    body: list[BoundInstruction] = []
    index = segment.start
    while instructions[index].opcode not in ENDS_SEGMENT:
        body.append(step_of(instructions[index]))
        index += 1
        if index in at:
            segment.transfer = segment.jump = partial(_go_to, at[index])
            segment.falls_through = True
            break
    else:
        last = instructions[index]
        segment.next = at.get(index + 1)
        if last.opcode in BOUNDARIES:
            segment.exit_instruction = last
        else:
            segment.transfer = segment.jump = _jump(last, at[last.target], at.get(index + 1))
            if last.target <= index:
                run_rest = partial(entries.run_rest_if_long, last)
                segment.transfer = _warming(
                    segment.jump, at[index + 1], partial(hot.compile, last.target, index), run_rest
                )
            elif last.opcode is Opcode.LOOP_START:
                segment.transfer = _entering(segment.jump, at[last.target], partial(entries.run_if_long, last))
    segment.body = tuple(body)


# -------------------------------------------------------------------------------------------------------------- jumps


def _go_to(segment: BasicBlock, registers: Registers) -> BasicBlock:
    return segment


def _jump(instruction: Instruction, target: BasicBlock, following: BasicBlock | None) -> Jump:
    """Return the function that executes a jump. A conditional jump is never the last instruction."""
    if instruction.opcode is Opcode.JUMP:
        return partial(_go_to, target)
    assert following is not None
    if instruction.opcode is Opcode.JUMP_IF_TRUE:
        return _conditional(instruction.input, target, following)
    if instruction.opcode is Opcode.JUMP_IF_FALSE:
        return _conditional(instruction.input, following, target)
    (counter,) = instruction.outputs
    assert counter is not None
    if instruction.opcode is Opcode.LOOP_START:
        return _loop_start(counter, instruction.input, following, target)
    return _loop_next(counter, instruction.input, target, following)


def _conditional(condition: int, if_true: BasicBlock, if_false: BasicBlock) -> Jump:
    def choose(registers: Registers) -> BasicBlock:
        return if_true if registers[condition] else if_false

    return choose


def _loop_start(counter: int, limit: int, body: BasicBlock, after: BasicBlock) -> Jump:
    def start(registers: Registers) -> BasicBlock:
        registers[counter] = 0
        return body if registers[limit] > 0 else after

    return start


def _loop_next(counter: int, limit: int, body: BasicBlock, after: BasicBlock) -> Jump:
    def count(registers: Registers) -> BasicBlock:
        registers[counter] = done = registers[counter] + 1
        return body if done < registers[limit] else after

    return count


def _entering(jump: Jump, after: BasicBlock, run_if_long: Callable[[Registers], bool]) -> Jump:
    """Return a jump that starts a loop. It calls ``run_if_long``, and if that has run the loop, continues after it."""

    def enter(registers: Registers) -> BasicBlock:
        following = jump(registers)
        return after if following is not after and run_if_long(registers) else following

    return enter


def _warming(
    jump: Jump,
    after: BasicBlock,
    compile: Callable[[], Callable[[Registers], None] | None],
    run_rest: Callable[[Registers], bool | None],
) -> Jump:
    """Return a backward jump to the start of a loop. Once it has been taken often, it calls ``compile``, and from then
    on runs all remaining iterations by the compiled loop. Before that, it calls ``run_rest``, which returns whether it
    has run the remaining iterations; None if it takes no part in the loop."""
    taken = 0
    is_tried = False
    loop: Callable[[Registers], None] | None = None

    def jump_back(registers: Registers) -> BasicBlock:
        nonlocal taken, is_tried, loop
        following = jump(registers)
        if following is after:
            return after
        is_done = run_rest(registers)
        if is_done is not None:
            return after if is_done else following
        if loop is not None:
            loop(registers)
            return after
        taken += 1
        if taken >= HOT and not is_tried:  # several threads may count at once, and none see just that number
            is_tried = True
            loop = compile()
        return following

    return jump_back


# ------------------------------------------------------------------------------------------------------------- bodies


def step_of(instruction: Instruction) -> BoundInstruction:
    """Return the function that runs an instruction of a body."""
    if instruction.opcode is Opcode.CONSTANT:
        (register,) = instruction.outputs
        return partial(_write_copy, register, instruction.constant)
    inputs = () if instruction.opcode is Opcode.DROP else instruction.inputs
    written = tuple(register is not None for register in instruction.outputs)
    make = _maker(len(inputs), len(instruction.cleared), written, instruction.opcode is Opcode.OPERATION)
    outputs = [register for register in instruction.outputs if register is not None]
    step: BoundInstruction = make(instruction.operation, *inputs, *instruction.cleared, *outputs)
    return step


def _write_copy(register: int | None, value: object, registers: Registers) -> None:
    if register is not None:
        registers[register] = copy_constant(value)


@cache
def _maker(inputs: int, cleared: int, outputs: tuple[bool, ...], calls: bool) -> Callable[..., BoundInstruction]:
    """Return a factory of the functions that run instructions of one shape, by operation and registers: inputs,
    registers to clear, outputs.

    For two inputs, one to clear and one output::

        def make(operation, i0, i1, c0, o0):
            def step(registers):
                registers[o0] = operation(registers[i0], registers[i1])
                registers[c0] = None
            return step
    """
    reads = [f"registers[i{n}]" for n in range(inputs)]
    written = [n for n, used in enumerate(outputs) if used]
    targets = [f"registers[o{written.index(n)}]" if used else "_" for n, used in enumerate(outputs)]
    lines = []
    value = f"operation({', '.join(reads)})" if calls else ", ".join(reads)
    if written:
        lines.append(f"{', '.join(targets)} = {value}")
    elif calls:
        lines.append(value)
    if cleared:
        lines.append(" = ".join(f"registers[c{n}]" for n in range(cleared)) + " = None")
    parameters = ["operation", *(f"i{n}" for n in range(inputs)), *(f"c{n}" for n in range(cleared))]
    parameters += [f"o{n}" for n in range(len(written))]
    body = "".join(f"\n  {line}" for line in lines or ["pass"])
    text = f"def make({', '.join(parameters)}):\n def step(registers):{body}\n return step"
    namespace: dict[str, Any] = {}
    exec(compile(text, "<rekindle interpreter>", "exec"), namespace)  # noqa: S102 (the text is generated here, not a program's)
    maker: Callable[..., BoundInstruction] = namespace["make"]
    return maker
