"""Execution strategies compared: ``simple`` and ``profiling``.

Each workload is compiled once and runs with both strategies; they and eager are called in turn. The clock is that of
the thread, which does not count the time of other processes, and PyTorch runs on one thread.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

from benchmarks.peers import ours
from benchmarks.workloads import WORKLOADS, Workload
from rekindle.runtime.executable import executable_of
from rekindle.runtime.executor import STRATEGIES
from rekindle.runtime.strategies.profiling_strategy import ProfilingStrategy

ROUNDS: Final = 21
SLICE: Final = 0.002
MAX_SECONDS: Final = 0.1
"""Workloads whose call takes longer are omitted."""


@dataclass(slots=True)
class Row:
    """Median ratios of a call to eager, by strategy; milliseconds of the first call of each; the number of guards in
    the versions that profiling has created."""

    what: str
    simple: float
    profiling: float
    simple_first: float
    profiling_first: float
    guards: int

    @property
    def ratio(self) -> float:
        """The time of ``profiling`` divided by that of ``simple``."""
        return self.profiling / self.simple


def run(rounds: int = ROUNDS, workloads: Iterable[Workload] = WORKLOADS) -> Iterator[Row]:
    """Yield a row for each workload."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            for workload in workloads:
                row = _measure(workload, rounds)
                if row is not None:
                    yield row
    finally:
        torch.set_num_threads(threads)


def _measure(workload: Workload, rounds: int) -> Row | None:
    torch.manual_seed(0)
    case = workload.make()
    call: Any = ours(case)
    record = call._record if hasattr(call, "_record") else call.script_type.methods["forward"]
    executable = executable_of(record)
    _time(lambda: case.program(*case.arguments), 1)
    once = _time(lambda: case.program(*case.arguments), 1)
    if once > MAX_SECONDS:
        return None
    made: dict[str, Any] = {}
    first: dict[str, float] = {}
    for name in ("simple", "profiling"):
        made[name] = executable.strategy = STRATEGIES[name](record)
        first[name] = _time(lambda: call(*case.arguments), 1) * 1e3
        call(*case.arguments)
    times = max(1, int(SLICE / max(once, 1e-6)))
    ratios: dict[str, list[float]] = {"simple": [], "profiling": []}
    gc.disable()
    try:
        for turn in range(rounds):
            eager = _time(lambda: case.program(*case.arguments), times)
            for name in sorted(made, reverse=bool(turn % 2)):
                executable.strategy = made[name]
                ratios[name].append(_time(lambda: call(*case.arguments), times) / eager)
    finally:
        gc.enable()
        executable.strategy = None
    profiling = made["profiling"]
    assert isinstance(profiling, ProfilingStrategy)
    simple, other = (statistics.median(ratios[name]) for name in ("simple", "profiling"))
    return Row(workload.name, simple, other, first["simple"], first["profiling"], profiling.counters.guards)


def _time(call: Callable[[], object], times: int) -> float:
    start = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - start) / times


def table(rows: list[Row]) -> list[list[str]]:
    """Return a line for each workload, and the geometric means."""
    lines = [["workload", "simple/eager", "profiling/eager", "first call: simple", "profiling", "guards"]]
    for row in rows:
        lines.append(
            [
                row.what,
                f"{row.simple:.3f}",
                f"{row.profiling:.3f}",
                f"{row.simple_first:.0f} ms",
                f"{row.profiling_first:.0f} ms",
                str(row.guards),
            ]
        )
    means = [statistics.geometric_mean(column) for column in ([r.simple for r in rows], [r.profiling for r in rows])]
    return [*lines, ["geometric mean", *(f"{mean:.3f}" for mean in means), "", "", ""]]
