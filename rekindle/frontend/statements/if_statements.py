"""Emit ``if`` statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rekindle.errors import SourceRange
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.scopes.frames import EnvironmentFrame
from rekindle.frontend.scopes.merging import merge_branches
from rekindle.frontend.scopes.refinement import CondValue


@dataclass(slots=True, frozen=True)
class BranchBody:
    """The body of a branch: ``emit`` emits it, and ``range`` is its location."""

    emit: Callable[[], object]
    range: SourceRange


def emit_if_else(
    emitter: Emitter, range: SourceRange, condition: CondValue, if_true: BranchBody, if_false: BranchBody
) -> None:
    """Emit an ``if`` with both branches, or only one branch if the condition is known at compile time."""
    refinements = condition.refinements
    if condition.static is not None:
        emitter.refine(refinements.if_true if condition.static else refinements.if_false, range)
        (if_true if condition.static else if_false).emit()
        return
    node = emitter.insert_node("prim::If", range, [condition.value], [])
    true_block, false_block = node.add_block(), node.add_block()
    frames: list[EnvironmentFrame] = []
    for block, types, branch in (
        (true_block, refinements.if_true, if_true),
        (false_block, refinements.if_false, if_false),
    ):
        with emitter.inside(block, types, branch.range) as frame:
            branch.emit()
        frames.append(frame)
    true_exits, false_exits = true_block in emitter.exited, false_block in emitter.exited
    if true_exits and false_exits:
        emitter.mark_exited()
        return
    merge_branches(emitter.environment, emitter.diagnostics, range, frames, (true_exits, false_exits))
