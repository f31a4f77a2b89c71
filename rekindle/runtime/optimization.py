"""What happens to a graph before a plan is made of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from rekindle.ir.gc_pause import no_collection
from rekindle.ir.graph import Graph
from rekindle.passes import Pass, PassManager
from rekindle.passes.changes import ChangeLog
from rekindle.passes.debug_settings import settings
from rekindle.passes.pass_manager import Observer


@cache
def process_changes() -> ChangeLog:
    """The changes to all graphs that this process has optimised, with the limits that ``PYTORCH_JIT_OPT_LIMIT`` had
    when the first was."""
    return ChangeLog(settings().limits)


def optimize(
    graph: Graph,
    passes: Iterable[Pass],
    *,
    changes: ChangeLog | None = None,
    observe: Observer | None = None,
) -> bool:
    """Run ``passes`` on ``graph``; returns whether anything changed. Changes count for the process, unless they are
    noted in ``changes``."""
    log = process_changes() if changes is None else changes
    with no_collection():
        return PassManager(changes=log, observe=observe).run(graph, passes)
