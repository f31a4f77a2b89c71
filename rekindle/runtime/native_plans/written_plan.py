"""All instructions of a native plan for a Code."""

from __future__ import annotations

from typing import Final

from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Opcode
from rekindle.runtime.native_plans.aten_calls import write_aten_call
from rekindle.runtime.native_plans.facts import UnboxedLists
from rekindle.runtime.native_plans.kernel_calls import write_kernel_call
from rekindle.runtime.native_plans.operators import write_arithmetic, write_by_kind
from rekindle.runtime.native_plans.writer import Demoted, PlanWriter, Unsuitable

WAYS: Final = (write_by_kind, write_arithmetic, write_kernel_call, write_aten_call)
"""Writers of operators, in this order; Python is called if none applies."""

_MAX_WORDS: Final = 1 << 16
"""Maximum size of a frame: each call allocates one."""
_SUPPORTED: Final = frozenset(
    {
        *(Opcode.OPERATION, Opcode.CONSTANT, Opcode.MOVE, Opcode.DROP, Opcode.STORE),
        *(Opcode.JUMP, Opcode.JUMP_IF_TRUE, Opcode.JUMP_IF_FALSE, Opcode.LOOP_START, Opcode.LOOP_NEXT),
    }
)
_WITH: Final = frozenset({"prim::Enter", "prim::Exit"})


def written_plan(code: Code, tensor_offset: int) -> PlanWriter:
    """Return the writer of the instructions of ``code``.

    Raises:
        Unsuitable: the Code has instructions that native plans do not run, or its frame is too large.
    """
    for instruction in code.instructions:
        if instruction.opcode not in _SUPPORTED or instruction.node.kind in _WITH:
            raise Unsuitable
    unboxed = UnboxedLists.of(code)
    while True:
        writer = PlanWriter(code, tensor_offset, unboxed, WAYS)
        try:
            writer.write()
        except Demoted as error:
            unboxed = unboxed.without(frozenset(error.registers))
            continue
        if writer.layout.words > _MAX_WORDS:
            raise Unsuitable
        return writer
