"""Whole training steps: forward, backward, gradients clipped by their norm, and AdamW's update.

The baseline is PyTorch's own loop with its default AdamW. It is compared with the same loop with the fused AdamW, with
loops of a compiled model and the fused AdamW (rekindle, ``torch.jit``), with a loop whose model and update Inductor
compiles, and with ``rekindle.compile_step``. They alternate. A ratio is the median over the rounds of the ratio
to the baseline in the same round, by the clock of the thread, on one thread.
"""

from __future__ import annotations

import copy
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

import rekindle
from benchmarks.execution import interleaved
from benchmarks.training import SUBJECTS, Subject

ROUNDS: Final = 15
MAX_NORM: Final = 1.0
RATE: Final = 1e-4
WARM_CALLS: Final = 5
WAYS: Final = ("eager", "eager, fused", "torch.jit, fused", "rekindle, fused", "compile_step")


@dataclass(slots=True)
class Row:
    """``times`` are ratios to PyTorch's loop; ``first`` has the seconds of the first step, with compilation."""

    what: str
    eager_us: float
    times: dict[str, float]
    first: dict[str, float]

    @property
    def ratio(self) -> float:
        """The time of the compiled step divided by that of PyTorch's loop."""
        return self.times["compile_step"]


def _loop(model: Any, arguments: Sequence[Any], *, fused: bool, compiles: bool = False) -> Callable[[], None]:
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, RATE, fused=fused or None)

    def update() -> None:
        nn.utils.clip_grad_norm_(parameters, MAX_NORM)
        optimizer.step()

    if compiles:
        update = torch.compile(update)

    def step() -> None:
        optimizer.zero_grad()
        model(*arguments).backward()
        update()

    return step


def _made(way: str, original: nn.Module, arguments: tuple[Any, ...]) -> Callable[[], object]:
    model = copy.deepcopy(original)
    match way:
        case "compile_step":
            optimizer = torch.optim.AdamW(model.parameters(), RATE)
            step = rekindle.compile_step(model, None, optimizer, max_norm=MAX_NORM)
            return lambda: step(arguments)
        case "rekindle, fused":
            return _loop(rekindle.script(model), arguments, fused=True)
        case "torch.jit, fused":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _loop(torch.jit.script(model), arguments, fused=True)
        case "inductor":
            return _loop(torch.compile(model), arguments, fused=False, compiles=True)
        case _:
            return _loop(model, arguments, fused=way == "eager, fused")


def row(subject: Subject, ways: Sequence[str], rounds: int) -> Row:
    """Measure one model."""
    torch.manual_seed(3)
    model, arguments = subject.model(), subject.arguments()
    steps: list[Callable[[], object]] = []
    first = {}
    for way in ways:
        started = time.perf_counter()
        steps.append(_made(way, model, arguments))
        steps[-1]()
        first[way] = time.perf_counter() - started
        for _ in range(WARM_CALLS):
            steps[-1]()
    times = interleaved(steps, rounds, 0.02, time.thread_time)
    parts = {
        way: statistics.median([a / b for a, b in zip(found, times[0], strict=True)])
        for way, found in zip(ways, times, strict=True)
    }
    return Row(subject.name, statistics.median(times[0]) * 1e6, parts, first)


def run(rounds: int = ROUNDS, more: Sequence[str] = (), named: str = "") -> list[Row]:
    """Measure the training steps of the models with ``named`` in their names. ``more`` are ways of running a step
    besides :data:`WAYS`, such as Inductor."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [row(subject, [*WAYS, *more], rounds) for subject in SUBJECTS if named in subject.name]
    finally:
        torch.set_num_threads(threads)


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line of text for each row, after a row of column names."""
    ways = list(rows[0].times)[1:]
    lines = [["whole step", "eager", *(f"{way} / eager" for way in ways), *(f"first step, {way}" for way in ways)]]
    for each in rows:
        times = [f"{each.times[way]:.2f}" for way in ways]
        lines.append([each.what, f"{each.eager_us:.0f} µs", *times, *(f"{each.first[way]:.2f} s" for way in ways)])
    return lines
