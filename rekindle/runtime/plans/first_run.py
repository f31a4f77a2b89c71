"""First runs: interpret instructions that run at most once, which takes less time than to write a plan for them.

The instructions are those of native plans, without loops. An error has the frame of :func:`_interpret` in its
traceback, where :func:`interpreted_place` finds the instruction that raised it.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Final

from rekindle.ops.python.tuples import check_count
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Instruction, Opcode, copy_constant

_STRAIGHT: Final = frozenset({Opcode.OPERATION, Opcode.CONSTANT, Opcode.MOVE, Opcode.DROP, Opcode.STORE})
_JUMPS: Final = frozenset({Opcode.JUMP, Opcode.JUMP_IF_TRUE, Opcode.JUMP_IF_FALSE})
_WITH: Final = frozenset({"prim::Enter", "prim::Exit"})


class InterpretedRun:
    """A function that runs ``code``, each instruction of which :func:`runs_once`."""

    __slots__ = ("code",)

    def __init__(self, code: Code) -> None:
        self.code = code

    def __call__(self, *arguments: Any) -> Any:
        registers = self.code.template[:]
        registers[: len(arguments)] = arguments
        del arguments
        return _interpret(self.code, registers)


def runs_once(code: Code) -> bool:
    """Return whether each instruction of ``code`` runs at most once, and changes registers alone."""
    for index, instruction in enumerate(code.instructions):
        if instruction.opcode in _STRAIGHT:
            if instruction.node.kind in _WITH:
                return False
        elif instruction.opcode not in _JUMPS or instruction.target <= index:
            return False
    return True


def interpreted_place(frame: FrameType) -> tuple[Code, int] | None:
    """Return the code that a frame of a first run executes, and the index of the instruction that raised; None for
    other frames."""
    return (frame.f_locals["code"], frame.f_locals["index"]) if frame.f_code is _interpret.__code__ else None


def _interpret(code: Code, registers: list[Any]) -> Any:
    instructions = code.instructions
    index = 0
    try:
        while True:
            instruction = instructions[index]
            if instruction.opcode is Opcode.STORE:
                results = tuple([registers[register] for register in instruction.inputs])
                return results[0] if len(results) == 1 else results or None
            index = _step(instruction, registers) or index + 1
    except BaseException:  # the traceback has this frame, and must keep no value alive
        registers.clear()
        raise


def _step(instruction: Instruction, registers: list[Any]) -> int:
    """Run one instruction. Return the index of the next one if it jumps, otherwise 0."""
    opcode, outputs = instruction.opcode, instruction.outputs
    if opcode in _JUMPS:
        taken = opcode is Opcode.JUMP or bool(registers[instruction.input]) == (opcode is Opcode.JUMP_IF_TRUE)
        return instruction.target if taken else 0
    if opcode is Opcode.OPERATION:
        assert instruction.operation is not None
        _write(outputs, instruction.operation(*[registers[register] for register in instruction.inputs]), registers)
    elif opcode is Opcode.CONSTANT:
        _write(outputs, copy_constant(instruction.constant), registers)
    elif opcode is Opcode.MOVE:
        moved = [registers[register] for register in instruction.inputs]
        _write(outputs, moved[0] if len(outputs) == 1 else moved, registers)
    for register in instruction.cleared:
        registers[register] = None
    return 0


def _write(outputs: tuple[int | None, ...], result: Any, registers: list[Any]) -> None:
    """Write the result of an instruction to its outputs."""
    if len(outputs) == 1:
        result = (result,)
    elif all(register is None for register in outputs):
        return
    else:
        check_count(result, len(outputs))
    for register, item in zip(outputs, result, strict=True):
        if register is not None:
            registers[register] = item
