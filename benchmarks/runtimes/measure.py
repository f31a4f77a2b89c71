"""Time of inference, the share of the core's peak rate, and errors compared with float64.

Each round runs each peer for a slice of time in turn. A ratio is the median over the rounds of the ratios in the same
round. Times are CPU times of the process, which include the thread on which OpenVINO computes, and do not include other
processes. All peers run on one thread, in float32, without gradients. Their results are compared with eager's first.
"""

from __future__ import annotations

import copy
import json
import math
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.execution import interleaved
from benchmarks.peers import Unavailable
from benchmarks.runtimes import peak
from benchmarks.runtimes.networks import NETWORKS, Network, prepared
from benchmarks.runtimes.peers import PACKAGES, PEERS, Call, Subject

OURS: Final = "rekindle"
ROUNDS: Final = 30
SLICE: Final = 0.005
"""Seconds that a peer is timed for in a round, at least."""
PATH: Final = Path(__file__).parent.parent / "results" / "runtimes.json"


@dataclass(slots=True)
class Timed:
    """One peer on one network: microseconds a call; the median over the rounds of our time over its; milliseconds to
    prepare the network and run it once; the largest difference from float64 over the largest number of the result.
    ``unavailable`` says why there are no numbers."""

    call: float = math.nan
    ours_of_it: float = math.nan
    first_call: float = math.nan
    error: float = math.nan
    unavailable: str = ""


@dataclass(slots=True)
class Row:
    """A network: the floating-point operations of its products and convolutions, their share of the machine's peak in
    rekindle, and the measurements by peer."""

    network: str
    flops: int = 0
    share_of_peak: float = math.nan
    peers: dict[str, Timed] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Rekindle's time divided by the fastest other peer's."""
        return max(
            (timed.ours_of_it for name, timed in self.peers.items() if name != OURS and not timed.unavailable),
            default=math.nan,
        )


def run(
    rounds: int = ROUNDS, networks: Sequence[Network] = NETWORKS, slice: float = SLICE, threads: int = 1
) -> Iterator[Row]:
    """Measure, a network at a time: processor time on one thread, the time that passes on several.

    Raises:
        AssertionError: rekindle computes something other than eager.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    most = peak.gigaflops() * threads
    try:
        for network in networks:
            with torch.no_grad():
                yield _measure(network, rounds, slice, most)
    finally:
        torch.set_num_threads(before)


def _measure(network: Network, rounds: int, slice: float, most: float) -> Row:
    row = Row(network.name)
    try:
        module, arguments = prepared(network)
    except ImportError as error:
        row.peers[OURS] = Timed(unavailable=str(error))
        return row
    subject = Subject(module, arguments, network.is_traced)
    with FlopCounterMode(display=False) as counter:
        expected = tree_leaves(module(*arguments))
    row.flops = counter.get_total_flops()
    exact = tree_leaves(copy.deepcopy(module).double()(*(_wide(each) for each in arguments)))
    calls: dict[str, Call] = {}
    for name, make in PEERS.items():
        timed = row.peers[name] = Timed()
        try:
            start = time.perf_counter()
            call = make(subject)
            call()
            timed.first_call = (time.perf_counter() - start) * 1e3
            _check(name, call, expected, exact, timed)
            calls[name] = call
        except Unavailable as why:
            timed.unavailable = str(why)
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times = dict(zip(calls, interleaved(list(calls.values()), rounds, slice, clock), strict=True))
    for name, found in times.items():
        timed = row.peers[name]
        timed.call = statistics.median(found) * 1e6
        timed.ours_of_it = statistics.median(mine / its for mine, its in zip(times[OURS], found, strict=True))
    row.share_of_peak = row.flops / (row.peers[OURS].call * 1e-6) / (most * 1e9)
    return row


def _wide(argument: Tensor) -> Tensor:
    return argument.double() if argument.is_floating_point() else argument


def _check(name: str, call: Call, expected: list[Tensor], exact: list[Tensor], timed: Timed) -> None:
    """Compare results of later calls too, since ``torch.jit`` optimizes after two calls."""
    found: list[Tensor] = []
    for _ in range(3):
        found = [torch.as_tensor(each) for each in call()]
        for each, wanted in zip(found, expected, strict=True):
            largest = float(wanted.abs().max())
            try:
                torch.testing.assert_close(each, wanted, rtol=1e-3, atol=1e-3 * largest)
            except AssertionError as error:
                if name == OURS:
                    raise
                raise Unavailable(f"computes something else: {error}") from error
    timed.error = max(
        float((each.double() - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))
        for each, wanted in zip(found, exact, strict=True)
    )


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each network: times in µs, rekindle's time over the fastest other peer's, and its share of the
    peak."""
    lines = [["network", *(f"{name}, µs" for name in PEERS), "rekindle / best other", "share of peak"]]
    for row in rows:
        times = [_number(row.peers.get(name, Timed()).call) for name in PEERS]
        lines.append([row.network, *times, f"{row.ratio:.2f}", f"{row.share_of_peak:.2f}"])
    return lines


def errors_table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each network: the largest error compared with float64, over the largest number, of each
    peer."""
    lines = [["network", *PEERS]]
    for row in rows:
        lines.append([row.network, *(f"{row.peers.get(name, Timed()).error:.1e}" for name in PEERS)])
    return lines


def remarks(rows: Sequence[Row]) -> list[str]:
    """Return why numbers are missing."""
    return [
        f"{row.network}: {name}: {timed.unavailable.splitlines()[0]}"
        for row in rows
        for name, timed in row.peers.items()
        if timed.unavailable
    ]


def _number(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds >= 100 else f"{microseconds:.1f}"


def save(rows: Sequence[Row], machine: dict[str, Any]) -> None:
    """Write the rows with what they depend on: the machine, its peak and load, the versions of the packages."""
    found = {
        "machine": {
            **machine,
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "peak_gigaflops": round(peak.gigaflops(), 1),
        },
        "packages": PACKAGES,
        "rows": [{**asdict(row), "ratio": row.ratio} for row in rows],
    }
    PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
