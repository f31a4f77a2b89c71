"""Usage of the drop-in: which programs were compiled through it, and how many."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final


class Usage:
    """Counter of the programs that were compiled or loaded under ``torch.jit``'s names. Threads may add to it
    concurrently."""

    __slots__ = ("_lock", "programs")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.programs: Counter[tuple[str, str]] = Counter()
        """Number of times that each program was compiled or loaded: keys are ``("function", "f")``, ``("module",
        "Net")``, ``("class", "Pair")``, ``("graph", "Net")`` (of ``_get_trace_graph``), ``("archive", "net.pt")``; an
        archive that is not a file is listed by the class of its module."""

    def add(self, kind: str, name: str) -> None:
        with self._lock:
            self.programs[kind, name] += 1

    def count(self, kind: str | None = None) -> int:
        """Return how many times programs of ``kind`` were compiled or loaded; of all kinds if it is None."""
        return sum(number for (of_kind, _), number in self.programs.items() if kind in (None, of_kind))

    def __repr__(self) -> str:
        kinds = Counter[str]()
        for (kind, _), number in self.programs.items():
            kinds[kind] += number
        return f"<Usage: {', '.join(f'{kind} {number}' for kind, number in sorted(kinds.items())) or 'nothing'}>"


observers: Final[list[Usage]] = []
"""The counters of the open ``installed()`` blocks; :mod:`rekindle.api.drop_in.install` adds and removes them."""


def count(kind: str, name: str) -> None:
    """Count a program that was compiled or loaded, in every open ``installed()`` block."""
    for usage in tuple(observers):
        usage.add(kind, name)
