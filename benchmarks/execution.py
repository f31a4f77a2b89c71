"""Time of calls, compared with eager and ``torch.jit``.

Each peer compiles and calls a workload, and its results are compared, before anything is timed. Each round then times
each peer in turn, for a millisecond or more. The time of a call is the median over the rounds; a ratio is the median of
the ratios in each round. Calls run without gradients and with Python's garbage collector disabled. PyTorch runs on one
thread by default, timed by the clock of the thread; with more threads the wall clock is used.

The first call is timed separately, including compilation. Eager runs first and initializes PyTorch. Memory is the peak
of the bytes allocated for tensors during a call, from PyTorch's profiler.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from benchmarks.peers import PEERS, Call, Unavailable
from benchmarks.workloads import WORKLOADS, Case, Workload

OURS: Final = "rekindle"
BASE: Final = "eager"
ROUNDS: Final = 100
SLICE: Final = 0.001
"""Seconds that a peer is timed for in a round, at least."""
MAX_SECONDS: Final = 4.0
"""Seconds that a peer is timed for in all, about: slow workloads have fewer rounds."""
MIN_ROUNDS: Final = 3
"""However slow they are, there are so many, if as many are asked for."""
TOLERANCE: Final = 1.05
"""How many times eager's time a call may take."""


@dataclass(slots=True)
class Timed:
    """Measurements of one peer on one workload: microseconds of a call, milliseconds of compiling with the first call,
    and peak bytes of tensors. ``of_eager`` is the median ratio of its time to eager's, ``ours_of_it`` that of
    rekindle's time to its time. ``unavailable`` is the reason if there are no numbers."""

    call: float = math.nan
    of_eager: float = math.nan
    ours_of_it: float = math.nan
    first_call: float = math.nan
    peak_bytes: int = 0
    unavailable: str = ""


@dataclass(slots=True)
class Row:
    """The measurements of a workload, by peer."""

    what: str
    peers: dict[str, Timed] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Rekindle's time divided by eager's."""
        return self.peers[OURS].of_eager


def run(
    rounds: int = ROUNDS,
    peers: Sequence[str] = ("eager", "rekindle", "torch.jit"),
    workloads: Iterable[Workload] = WORKLOADS,
    *,
    threads: int = 1,
    slice: float = SLICE,
) -> Iterator[Row]:
    """Yield a row for each workload.

    Raises:
        AssertionError: rekindle gives another answer than eager.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    _warm_up(peers)
    try:
        for workload in workloads:
            with torch.no_grad():
                yield _measure(workload, rounds, peers, slice, time.thread_time if threads == 1 else time.perf_counter)
    finally:
        torch.set_num_threads(before)


def _warm_up(peers: Sequence[str]) -> None:
    """Let each peer compile and call a small program, so that loading it is not part of a workload's first call."""
    for name in peers:
        with suppress(Unavailable):
            PEERS[name](Case(_successor, (1,)))(1)


def _successor(n: int) -> int:
    return n + 1


def _measure(workload: Workload, rounds: int, peers: Sequence[str], slice: float, clock: Callable[[], float]) -> Row:
    torch.manual_seed(0)
    case = workload.make()
    expected = case.program(*case.arguments)
    row = Row(workload.name)
    calls: dict[str, Call] = {}
    for name in peers:
        timed = row.peers[name] = Timed()
        try:
            calls[name] = _prepare(name, case, expected, timed)
        except Unavailable as why:
            timed.unavailable = str(why)
    times = interleaved([lambda call=call: call(*case.arguments) for call in calls.values()], rounds, slice, clock)  # type: ignore[misc]
    by_peer = dict(zip(calls, times, strict=True))
    for name, found in by_peer.items():
        timed = row.peers[name]
        timed.call = statistics.median(found) * 1e6
        timed.of_eager = statistics.median(mine / base for mine, base in zip(found, by_peer[BASE], strict=True))
        timed.ours_of_it = statistics.median(ours / its for ours, its in zip(by_peer[OURS], found, strict=True))
    return row


def _prepare(name: str, case: Case, expected: Any, timed: Timed) -> Call:
    start = time.perf_counter()
    call = PEERS[name](case)
    answer = call(*case.arguments)
    timed.first_call = (time.perf_counter() - start) * 1e3
    for _ in range(3):  # torch.jit looks at two calls before it optimizes
        try:
            torch.testing.assert_close(answer, expected, msg=lambda text: f"{name} on {case.program}: {text}")
        except AssertionError as error:
            if name == OURS:
                raise
            raise Unavailable(f"gives another answer: {error}") from error
        answer = call(*case.arguments)
    timed.peak_bytes = peak_memory(lambda: call(*case.arguments))
    return call


def interleaved(
    calls: Sequence[Callable[[], object]], rounds: int, slice: float, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Return the seconds of a call of each of ``calls`` by ``clock``, one number for each round."""
    found_repeats = [_repeats(call, slice, clock) for call in calls]
    repeats = [count for count, _ in found_repeats]
    slowest = max(seconds for _, seconds in found_repeats)
    rounds = max(min(rounds, round(MAX_SECONDS / slowest)), min(rounds, MIN_ROUNDS))
    times: list[list[float]] = [[] for _ in calls]
    with resting_collector():
        for _ in range(rounds):
            for call, count, found in zip(calls, repeats, times, strict=True):
                found.append(_time(call, count, clock))
    return times


def _repeats(call: Callable[[], object], slice: float, clock: Callable[[], float]) -> tuple[int, float]:
    """Return how many calls take about ``slice`` seconds, and the seconds that they take."""
    count = 1
    while True:
        taken = max(_time(call, count, clock) * count, 1e-9)
        if taken >= slice / 4:
            repeats = max(1, round(count * slice / taken))
            return repeats, taken * repeats / count
        count *= 4


def _time(call: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    repeats = range(count)
    start = clock()
    for _ in repeats:
        call()
    return (clock() - start) / count


@contextmanager
def resting_collector() -> Iterator[None]:
    """Collect garbage, then disable Python's garbage collector within the ``with`` block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def peak_memory(call: Callable[[], object]) -> int:
    """Return the peak of the bytes that ``call`` allocates for tensors. Earlier tensors that it frees do not count."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    # Without acc_events, PyTorch 2.12 and earlier warn.
    with torch.profiler.profile(activities=activities, profile_memory=True, acc_events=True) as profile:
        call()
    alive: dict[int, int] = {}
    held = most = 0
    for address, size in _allocations(profile):
        if size > 0:
            alive[address] = size
            held += size
            most = max(most, held)
        else:
            held -= alive.pop(address, 0)
    return most


def _allocations(profile: Any) -> list[tuple[int, int]]:
    """Return the addresses and sizes of allocations in the order of time. Sizes are negative for freed memory."""
    found: list[tuple[int, int, int]] = []
    waiting = list(profile.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        waiting.extend(event.children)
        if event.tag == torch._C._profiler._EventType.Allocation:
            found.append((event.start_time_ns, event.extra_fields.ptr, event.extra_fields.alloc_size))
    return [(address, size) for _, address, size in sorted(found, key=lambda each: each[0])]


# ------------------------------------------------------------------------------------------------------------- reports


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean of numbers above 0."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def speed_table(rows: Sequence[Row]) -> list[list[Any]]:
    """Return microseconds of a call and ratios to eager, a line for each workload."""
    peers = list(rows[0].peers)
    head = ["workload", *(f"{name}, µs" for name in peers), *(f"{name} / {BASE}" for name in peers if name != BASE)]
    body = [
        [
            row.what,
            *(_number(row.peers[name].call) for name in peers),
            *(_ratio(row.peers[name].of_eager) for name in peers if name != BASE),
        ]
        for row in rows
    ]
    means = [_ratio(mean_of_eager(rows, name)) for name in peers if name != BASE]
    return [head, *body, ["geometric mean", *("" for _ in peers), *means]]


def mean_of_eager(rows: Sequence[Row], name: str) -> float:
    """Return the geometric mean of a peer's ratios to eager, over the workloads that it runs."""
    ratios = [row.peers[name].of_eager for row in rows if not row.peers[name].unavailable]
    return geometric_mean(ratios) if ratios else math.nan


def cost_table(rows: Sequence[Row]) -> list[list[Any]]:
    """Return milliseconds of the first call, and peak memory, a line for each workload."""
    peers = list(rows[0].peers)
    compiled = [name for name in peers if name != BASE]
    head = ["workload", *(f"{name}, first call, ms" for name in compiled), *(f"{name}, KiB" for name in peers)]
    body = [
        [
            row.what,
            *(_number(row.peers[name].first_call) for name in compiled),
            *("–" if row.peers[name].unavailable else f"{row.peers[name].peak_bytes / 1024:.0f}" for name in peers),
        ]
        for row in rows
    ]
    return [head, *body]


def remarks(rows: Sequence[Row]) -> list[str]:
    """Return remarks for readers of the tables: peers that do not run a workload, and workloads in which rekindle is
    slower."""
    found = [
        f"{name} on '{row.what}': {timed.unavailable}"
        for row in rows
        for name, timed in row.peers.items()
        if timed.unavailable
    ]
    slow = [f"{row.what} ({row.ratio:.2f})" for row in rows if row.ratio > TOLERANCE]
    if slow:
        found.append(f"slower than eager by more than 5%: {', '.join(slow)}")
    else:
        found.append("slower than eager by more than 5%: nothing")
    return found


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _ratio(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"
