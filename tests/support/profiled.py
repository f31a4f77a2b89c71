"""Calls under the execution strategy ``profiling``, with guards that can be made to fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rekindle.ir.graph_function import GraphFunction
from rekindle.runtime import executor
from rekindle.runtime.strategies.profiling_strategy import ProfilingStrategy


class Profiled:
    """Within :meth:`calls`, functions are run by a :class:`ProfilingStrategy` each, made with ``options``."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.strategies: list[ProfilingStrategy] = []

    def _make(self, record: GraphFunction) -> ProfilingStrategy:
        self.strategies.append(ProfilingStrategy(record, **self.options))
        return self.strategies[-1]

    @property
    def strategy(self) -> ProfilingStrategy:
        """The only one."""
        (found,) = self.strategies
        return found

    @property
    def taken(self) -> int:
        """How often guards have failed, in the versions that there still are."""
        found = 0
        for strategy in self.strategies:
            at = strategy.newest
            while at is not None:
                found += sum(bailout.taken for bailout in at.bailouts)
                at = at.older
        return found

    @contextmanager
    def calls(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(executor.STRATEGIES, "profiling", self._make)
            before = executor.set_execution_strategy("profiling")
            try:
                yield
            finally:
                executor.set_execution_strategy(before)
