"""Programs whose operators fuse, compared with eager, ``torch.jit`` and Inductor, with aims and results.

They are measured as in :mod:`benchmarks.execution`, with the strategy that compiles kernels. :func:`bandwidth` compares
a program that memory bandwidth limits with the highest bandwidth measured for the same reads and writes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch

import rekindle
from benchmarks import execution
from benchmarks.execution import Row, interleaved
from benchmarks.peers import PEERS, Unavailable
from benchmarks.workloads import KERNELS, Workload
from benchmarks.workloads.kernels import (
    CELL,
    CHAINS,
    COLLATZ,
    DISTANCE,
    FROZEN_NET,
    LARGE_BLOCK,
    LOOP,
    NORMS,
    SMALL_BLOCK,
    SOFTMAXES,
    STREAMS,
)

STRATEGY: Final = "native"
NO_SLOWER: Final = 1.03


@dataclass(frozen=True, slots=True)
class Aim:
    """The largest ratio of rekindle's time to a peer's that a workload should have."""

    workload: Workload
    peer: str
    most: float


AIMS: Final = (
    *(Aim(CELL, peer, 1 / times) for peer, times in (("torch.jit", 2.5), ("eager", 3.0), ("inductor", 4.0))),
    Aim(CHAINS["4 million"], "inductor", NO_SLOWER),
    *(Aim(CHAINS["1 thousand"], peer, 1 / 3) for peer in ("eager", "torch.jit")),
    Aim(LOOP, "torch.jit", 1 / 3),
    Aim(LOOP, "inductor", NO_SLOWER),
    *(Aim(SMALL_BLOCK, peer, 1 / 1.5) for peer in ("torch.jit", "inductor")),
    Aim(LARGE_BLOCK, "inductor", NO_SLOWER),
    *(Aim(rows, peer, NO_SLOWER) for rows in (*SOFTMAXES, *NORMS) for peer in ("inductor", "eager")),
    Aim(FROZEN_NET, "inductor", NO_SLOWER),
    *(Aim(loop, peer, 1 / 50) for loop in (COLLATZ, DISTANCE) for peer in ("torch.jit", "eager")),
)
"""What the kernels were built for."""


@contextmanager
def strategy() -> Iterator[None]:
    """Select the strategy :data:`STRATEGY` within the ``with`` block."""
    before = rekindle.set_execution_strategy(STRATEGY)
    try:
        yield
    finally:
        rekindle.set_execution_strategy(before)


def run(
    rounds: int, peers: Sequence[str], workloads: Iterable[Workload] = KERNELS, *, threads: int = 1
) -> Iterator[Row]:
    """Yield a row for each workload."""
    with strategy():
        yield from execution.run(rounds, peers, workloads, threads=threads)


def aims_table(rows: Sequence[Row]) -> list[list[Any]]:
    """Return the aims for these workloads, the measured ratios, and whether the aims are met."""
    by_name = {row.what: row for row in rows}
    table: list[list[Any]] = [["workload", "beside", "aim", "measured", ""]]
    for aim in AIMS:
        timed = by_name[aim.workload.name].peers.get(aim.peer) if aim.workload.name in by_name else None
        if timed is not None and not timed.unavailable:
            found = timed.ours_of_it
            verdict = "met" if found <= aim.most else f"missed: {found / aim.most:.2f} times as long"
            table.append([aim.workload.name, aim.peer, f"{aim.most:.2f}", f"{found:.2f}", verdict])
    return table


# ----------------------------------------------------------------------------------------------------------- bandwidth


@dataclass(slots=True)
class Bandwidth:
    """Gigabytes a second that each reads and writes: 12 bytes an element, from and to the main memory or a cache,
    where ``elements`` fit there. ``machine`` is the addition of two tensors into a third that exists, ``fresh`` that
    into a new one, whose memory the system has to give and to clear first where it is large."""

    elements: int
    machine: float
    fresh: float
    peers: dict[str, float]

    @property
    def ratio(self) -> float:
        """Rekindle's bandwidth divided by the machine's."""
        return self.peers["rekindle"] / self.machine


def bandwidth(rounds: int, peers: Sequence[str], *, threads: int = 1) -> Iterator[Bandwidth]:
    """Yield a measurement for each size."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    try:
        with torch.no_grad(), strategy():
            for elements, workload in STREAMS.items():
                yield _bandwidth(elements, workload, rounds, peers, clock)
    finally:
        torch.set_num_threads(before)


def _bandwidth(elements: int, workload: Workload, rounds: int, peers: Sequence[str], clock: Any) -> Bandwidth:
    torch.manual_seed(0)
    case = workload.make()
    x, y = case.arguments
    into = torch.empty_like(x)
    calls: dict[str, Any] = {"machine": lambda: torch.add(x, y, out=into), "fresh": lambda: torch.add(x, y)}
    for name in peers:
        try:
            call = PEERS[name](case)
        except Unavailable:
            continue
        for _ in range(3):
            call(x, y)
        calls[name] = lambda call=call: call(x, y)
    times = interleaved(list(calls.values()), rounds, execution.SLICE, clock)
    speeds = {name: 12e-9 * elements / statistics.median(found) for name, found in zip(calls, times, strict=True)}
    return Bandwidth(elements, speeds.pop("machine"), speeds.pop("fresh"), speeds)


def bandwidth_table(rows: Sequence[Bandwidth]) -> list[list[Any]]:
    """Return gigabytes per second, a line for each size."""
    speeds = [f"{name}, GB/s" for name in rows[0].peers]
    head = ["elements", "addition into a tensor, GB/s", "into a new one", *speeds, "rekindle / addition"]
    body = []
    for row in rows:
        numbers = [f"{speed:.1f}" for speed in (row.machine, row.fresh, *row.peers.values())]
        body.append([f"{row.elements:,}", *numbers, f"{row.ratio:.2f}"])
    return [head, *body]
