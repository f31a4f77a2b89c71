"""Output of programs: prints, warnings, files, statistics."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from typing import Final

import torch

from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import AliasAnalysisKind, Operation
from rekindle.ops.registration.declare import declare, implements, implements_for_node

declare(print, "prim::Print(...) -> ()", side_effects=True)

_warned: Final[dict[str, dict[object, object]]] = {}
"""By file, what ``warnings`` remembers of the warnings already given there, so that its filters hold for programs
too."""


@implements_for_node("aten::warn(str message, int stacklevel=2) -> ()", side_effects=True)
def warn_at(node: Node) -> Operation:
    """Return the operation that issues a ``UserWarning`` at the line of the program that warns, whatever the stack
    level. If the line is unknown, the operation calls ``warnings.warn``."""
    range = node.range.original
    if not range.is_known or range.source.filename is None:
        return _warn_here
    filename, line = range.source.filename, range.line
    registry = _warned.setdefault(filename, {})

    def warn(message: str, stacklevel: int = 2) -> None:
        warnings.warn_explicit(message, UserWarning, filename, line, registry=registry)  # type: ignore[arg-type]

    return warn


def _warn_here(message: str, stacklevel: int = 2) -> None:
    warnings.warn(message, UserWarning, stacklevel=stacklevel)


@implements("aten::save(t item, str filename) -> ()", side_effects=True)
def save(item: object, filename: str) -> None:
    """Write ``item`` to a file that ``torch.load`` reads."""
    torch.save(item, filename)


STATISTICS: Final[Counter[str]] = Counter()
"""Counters of ``prim::AddStatValue``."""


@implements("prim::AddStatValue(str key, int val) -> ()", side_effects=True)
def add_statistic(key: str, val: int) -> None:
    """Add ``val`` to the counter ``key`` of :data:`STATISTICS`."""
    STATISTICS[key] += val


declare(
    time.perf_counter_ns,
    "prim::TimePoint() -> int",
    effects=AliasAnalysisKind.PURE,
    side_effects=True,
    nondeterministic=True,
)
