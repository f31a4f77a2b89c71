"""Differences that docs/differences.md tells, and how a program that shows one is recognised.

The list is strict: each entry names the row by its beginning, and a test fails where the row is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rekindle.passes import dead_code_elimination

UNUSED: Final = "an operator on Tensors whose result nobody uses"

ROWS: Final = (UNUSED,)


@contextmanager
def without_dead_code_elimination() -> Iterator[None]:
    """Have every node stay, whether anybody uses its result or not."""
    elimination = dead_code_elimination._Elimination
    before = elimination._is_needed
    elimination._is_needed = lambda self, node: True  # type: ignore[method-assign]
    try:
        yield
    finally:
        elimination._is_needed = before  # type: ignore[method-assign]


def row_of(failure: str, agrees: Callable[[], bool]) -> str:
    """The row that tells of a failure, or nothing; ``agrees`` executes the program again and compares."""
    if failure in ("missing error", "other error", "other text", "wrong state", "wrong arguments"):
        with without_dead_code_elimination():
            if agrees():
                return UNUSED
    return ""
