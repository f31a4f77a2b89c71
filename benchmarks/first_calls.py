"""Time of the first call with compilation and empty caches, compared with ``torch.jit`` and Inductor.

Each measurement is a process of its own with empty caches on disk. It loads the compiler by a small program, creates
the workload, and times compilation and first call by the wall clock, since Inductor compiles in other processes.
rekindle compiles kernels after several calls, so the time of the first :data:`CALLS` is reported too. A second process
of rekindle uses the cache that the first has written.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

import rekindle
from benchmarks.kernels import strategy
from benchmarks.peers import PEERS, Unavailable
from benchmarks.workloads import KERNELS, Case, Workload
from benchmarks.workloads.kernels import CELL, CHAINS, COLLATZ, LARGE_BLOCK, LOOP, NORMS, SMALL_BLOCK, SOFTMAXES

ROOT: Final = Path(__file__).parent.parent
MAX_SECONDS: Final = 600
"""Seconds that a process may take."""
CALLS: Final = 5
"""After so many calls, everything has been compiled."""
WORKLOADS: Final = (CELL, LOOP, CHAINS["10 thousand"], SOFTMAXES[1], NORMS[1], SMALL_BLOCK, LARGE_BLOCK, COLLATZ)


@dataclass(slots=True)
class FirstCall:
    """Milliseconds to compile and call a workload, by peer, and to compile and call it :data:`CALLS` times
    (``settled``). ``from_disk`` is the latter for rekindle, where an earlier process had compiled it. ``pieces`` are
    the times to compile each function of machine code, ``loaded`` those to load them from disk."""

    what: str
    peers: dict[str, float] = field(default_factory=dict)
    settled: dict[str, float] = field(default_factory=dict)
    from_disk: float = 0.0
    pieces: list[float] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The time of the slowest peer's first call divided by the time until all of rekindle is compiled."""
        return max(self.settled.values()) / self.settled["rekindle"]


def run(peers: Sequence[str], workloads: Iterable[Workload] = WORKLOADS) -> Iterator[FirstCall]:
    """Yield a measurement of each workload."""
    for workload in workloads:
        found = FirstCall(workload.name)
        for peer in peers:
            if peer == "eager":
                continue
            with tempfile.TemporaryDirectory() as caches, suppress(Unavailable):
                told = _process(workload, peer, caches)
                found.peers[peer], found.settled[peer] = told["first"], told["settled"]
                if peer == "rekindle":
                    found.pieces = told["pieces"]
                    again = _process(workload, peer, caches)
                    found.from_disk, found.loaded = again["settled"], again["pieces"]
        yield found


def _process(workload: Workload, peer: str, caches: str) -> dict[str, Any]:
    environment = {**os.environ, "REKINDLE_CACHE_DIR": caches, "TORCHINDUCTOR_CACHE_DIR": caches}
    command = [sys.executable, "-m", "benchmarks.first_calls", workload.name, peer]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=MAX_SECONDS, check=False, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"takes longer than {MAX_SECONDS} seconds") from None
    if done.returncode == 2:
        raise Unavailable(done.stderr.strip().splitlines()[-1])
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def table(rows: Sequence[FirstCall]) -> list[list[Any]]:
    """Return milliseconds by peer, and the number and times of rekindle's compiled functions."""
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    head = ["workload", *(f"{name}, ms" for name in names), *(f"{name}, {CALLS} calls" for name in names)]
    head += ["from disk", "pieces", "median, ms", "longest, ms"]
    head += ["longest from disk, ms", "times sooner"]
    body = [
        [
            row.what,
            *(f"{row.peers[name]:,.0f}" if name in row.peers else "–" for name in names),
            *(f"{row.settled[name]:,.0f}" if name in row.settled else "–" for name in names),
            f"{row.from_disk:.0f}",
            str(len(row.pieces)),
            f"{statistics.median(row.pieces):.1f}" if row.pieces else "–",
            f"{max(row.pieces):.1f}" if row.pieces else "–",
            f"{max(row.loaded):.1f}" if row.loaded else "–",
            f"{row.ratio:.1f}",
        ]
        for row in rows
    ]
    return [head, *body]


# ---------------------------------------------------------------------------------------------------- in the process


def _main(name: str, peer: str) -> int:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    case = next(workload for workload in KERNELS if workload.name == name).make()
    with torch.no_grad(), strategy():
        with suppress(Unavailable):
            warm = PEERS[peer](Case(_bent, (torch.ones(3),)))
            for _ in range(CALLS):
                warm(torch.ones(3))
        start = time.perf_counter()
        try:
            call = PEERS[peer](case)
        except Unavailable as why:
            print(why, file=sys.stderr)
            return 2
        call(*case.arguments)
        first = time.perf_counter() - start
        for _ in range(CALLS - 1):
            call(*case.arguments)
        settled = time.perf_counter() - start
        machines = rekindle.report(call).machines if peer == "rekindle" else ()
    pieces = [machine.seconds * 1e3 for machine in machines if machine.origin != "memory"]
    print(json.dumps({"first": first * 1e3, "settled": settled * 1e3, "pieces": pieces}))
    return 0


def _bent(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * x


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
