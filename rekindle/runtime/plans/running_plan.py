"""Locates the origin of an error that a plan has raised."""

from __future__ import annotations

from types import FrameType, TracebackType

from rekindle.analysis.effects import INLINE_SUBGRAPH_KINDS
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Opcode
from rekindle.runtime.native_plans.native_plan import native_place
from rekindle.runtime.plans.first_run import interpreted_place
from rekindle.runtime.plans.plan import plan_of_frame


def running_plan(traceback: TracebackType | None) -> tuple[Code, int, str] | None:
    """Return the code of the plan in which an error was raised, the index of the instruction that raised it, and the
    name of the plan's function; None if no frame of ``traceback`` runs a plan. The frames of the plans are cleared, so
    that they keep no value alive.

    A plan at a bailout has been replaced by the rest of the program: the error comes from that. If a node runs an
    outlined part of the function, the error comes from the plan of that subgraph.
    """
    found: tuple[Code, int, str] | None = None
    while traceback is not None:
        place = _place(traceback.tb_frame, traceback.tb_lineno)
        if place is not None:
            traceback.tb_frame.clear()
            code, index = place
            instruction = code.instructions[index]
            if instruction.opcode is not Opcode.BAILOUT:
                found = code, index, found[2] if found is not None else code.basename
                if instruction.node.kind not in INLINE_SUBGRAPH_KINDS:
                    return found
        traceback = traceback.tb_next
    return found


def _place(frame: FrameType, line: int) -> tuple[Code, int] | None:
    """Return the code that a frame runs, and the index of its current instruction; None for other frames."""
    plan = plan_of_frame(frame)
    if plan is not None:
        return plan.code, plan.instruction_at(line)
    return native_place(frame, line) or interpreted_place(frame)
