"""Networks whose weights are rounded to bfloat16 or int8: time, and the difference from eager.

The networks are those of :mod:`benchmarks.runtimes` with large linear maps. They run on one thread, interleaved, timed
by processor time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

import rekindle
from benchmarks.execution import interleaved
from benchmarks.runtimes.networks import NETWORKS, Network, prepared

ROUNDS: Final = 30
SLICE: Final = 0.005
"""Seconds that each is timed for in a round, at least."""
WEIGHTS: Final[dict[str, torch.dtype | None]] = {"float32": None, "bfloat16": torch.bfloat16, "int8": torch.int8}
CHOSEN: Final = ("MLP", "BERT", "GPT-2", "Whisper", "4×128×256")
"""Parts of the names of the networks."""


@dataclass(frozen=True, slots=True)
class Row:
    """A network: microseconds of a call in eager, and by the storage of weights; by the same the norm of the difference
    from eager over the norm of the result."""

    network: str
    eager: float
    call: dict[str, float]
    difference: dict[str, float]

    @property
    def ratio(self) -> float:
        """The time with int8 weights divided by that without rounding."""
        return self.call["int8"] / self.call["float32"]


def run(rounds: int = ROUNDS, only: str = "", slice: float = SLICE) -> Iterator[Row]:
    """Yield a row for each network."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for network in NETWORKS:
            if only in network.name and any(part in network.name for part in CHOSEN):
                with torch.no_grad():
                    yield _measure(network, rounds, slice)
    finally:
        torch.set_num_threads(threads)


def _measure(network: Network, rounds: int, slice: float) -> Row:
    module, arguments = prepared(network)
    compiled: Any = rekindle.trace(module, arguments) if network.is_traced else rekindle.script(module)
    functions: dict[str, Any] = {"eager": module}
    for name, dtype in WEIGHTS.items():
        functions[name] = rekindle.optimize_for_inference(compiled, weights=dtype)
    expected = torch.cat([each.flatten() for each in tree_leaves(module(*arguments))])
    difference = {}
    for name in WEIGHTS:
        for _ in range(4):  # kernels are chosen and compiled
            found = torch.cat([each.flatten() for each in tree_leaves(functions[name](*arguments))])
        difference[name] = float((found - expected).norm() / expected.norm())
    calls = [lambda function=function: function(*arguments) for function in functions.values()]  # type: ignore[misc]
    times = interleaved(calls, rounds, slice, time.process_time)
    eager, *ours = (statistics.median(each) * 1e6 for each in times)
    return Row(network.name, eager, dict(zip(WEIGHTS, ours, strict=True)), difference)


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line of text for each row, after a row of column names."""
    lines = [
        ["network", "eager, µs", *(f"{name}, µs" for name in WEIGHTS), *(f"difference, {name}" for name in WEIGHTS)]
    ]
    for row in rows:
        times = [f"{row.eager:,.0f}", *(f"{row.call[name]:,.0f}" for name in WEIGHTS)]
        lines.append([row.network, *times, *(f"{row.difference[name]:.1e}" for name in WEIGHTS)])
    return lines
