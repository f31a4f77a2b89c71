"""Optimization of a graph before it is compiled to a plan."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from rekindle.errors.debug_settings import settings
from rekindle.errors.gc_pause import gc_paused
from rekindle.ir.graph import Graph
from rekindle.passes import Pass, PassManager
from rekindle.passes.pass_manager import Observer
from rekindle.rewriting.changes import ChangeCounter


@cache
def process_changes() -> ChangeCounter:
    """Return the counter of the changes to all graphs that this process has optimized. Its limits are those that
    ``PYTORCH_JIT_OPT_LIMIT`` specified when the first graph was optimized."""
    return ChangeCounter(settings().limits)


def optimize(
    graph: Graph,
    passes: Iterable[Pass],
    *,
    changes: ChangeCounter | None = None,
    observe: Observer | None = None,
) -> bool:
    """Run ``passes`` on ``graph``; return whether it changed. Changes are counted for the process, unless ``changes``
    is given."""
    log = process_changes() if changes is None else changes
    with gc_paused():
        return PassManager(changes=log, observe=observe).run(graph, passes)
