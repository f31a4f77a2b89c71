"""Detect leaks: memory that grows with each repetition, as opposed to memory that is taken once.

What is counted: objects that Python's collector tracks (tensors among them), blocks that Python's allocator has handed
out, and pages of the process, where the system reports them. Each is read after every round, with the garbage
collected. After a warm-up, growth is the least of the second half less the most of the first half: a leak grows, noise
does not.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_STATM = Path("/proc/self/statm")


@dataclass(slots=True, frozen=True)
class Growth:
    """How much more there was in the second half of the rounds; ``objects`` and ``blocks`` in numbers, ``pages`` as a
    part of what there was."""

    objects: int
    blocks: float
    pages: float


def growth(step: Callable[[int], object], *, steps: int, warm_up: int, rounds: int = 8) -> Growth:
    """Call ``step`` with 0, 1, … ``warm_up`` times, then ``steps`` times in so many rounds."""
    for number in range(warm_up):
        step(number)
    found: list[tuple[int, int, int]] = []
    for turn in range(rounds):
        for number in range(turn * steps // rounds, (turn + 1) * steps // rounds):
            step(warm_up + number)
        found.append(_now())
    gained: list[float] = []
    for counts in zip(*found, strict=True):
        gained.append(max(0, min(counts[rounds // 2 :]) - max(counts[: rounds // 2])))
    objects, blocks, pages = gained
    _, all_blocks, all_pages = found[0]
    return Growth(int(objects), blocks / all_blocks, pages / max(1, all_pages))


def _now() -> tuple[int, int, int]:
    gc.collect()
    pages = int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") if _STATM.exists() else 0
    return len(gc.get_objects()), sys.getallocatedblocks(), pages
