"""Overhead of a call beyond the operators that it runs.

Each program is measured twice: compiled, and written by hand as straight-line Python that calls the same operators by
the fastest callables, with weights in local variables. Tensors are small, so that an operator takes one or two
microseconds. A compiled function is called as users call it (arguments checked, result converted). A module is called
by its ``forward``, since ``nn.Module.__call__`` adds the same time to eager modules. Programs over numbers are compared
with themselves in Python. Rounds are short and interleaved, and the clock is that of the thread, which does not count
the time of other processes. The strategy is ``simple``: kernels would replace the calls of operators.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import rekindle
from benchmarks.execution import interleaved
from benchmarks.peers import ours
from benchmarks.workloads import Case, networks, pointwise, recurrent, scalars

ROUNDS = 200
SLICE = 0.0005


def _cases() -> Iterator[tuple[str, Case]]:
    yield "pointwise chain, 8 operators", pointwise._chain(16)
    yield "broadcast", Case(pointwise.broadcast, _tensors((2, 8), (8,), (2, 1)), by_hand=pointwise.broadcast_by_hand)
    yield "softmax, written out", Case(pointwise.softmax, _tensors((2, 8)), by_hand=pointwise.softmax_by_hand)
    norm = pointwise.layer_norm_by_hand
    yield "layer norm, written out", Case(pointwise.layer_norm, _tensors((2, 8), (8,), (8,)), by_hand=norm)
    yield (
        "attention, written out",
        Case(networks.attention, _tensors(*[(1, 2, 4, 8)] * 3), by_hand=networks.attention_by_hand),
    )
    yield "LSTM cell", recurrent._cell(1, 16)
    yield "LSTM, 20 steps", recurrent._loop(20, 16)
    yield "MLP", networks._mlp()
    model = networks.GeluMLP(16, 32).eval()
    yield "GELU MLP", Case(model, _tensors((2, 16)), by_hand=networks._gelu_mlp_by_hand(model))
    yield "transformer block", networks._block(1, 4, 16, 2)
    yield "edit distance, 20 letters", Case(scalars.edit_distance, ("abcdefghijabcdefghij", "acbdfeghjiabdcfeghij"))
    yield "Collatz below 50", Case(scalars.collatz, (50,))
    yield "sum of 1,000 squares", Case(scalars.sum_of_squares, (1_000,))
    yield "primes below 300", Case(scalars.primes_below, (300,))
    yield "Mandelbrot 6×6", Case(scalars.mandelbrot, (6, 20))


def _tensors(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(*shape) for shape in shapes)


@dataclass(slots=True)
class Row:
    """Microseconds of a call, by hand and compiled. ``ratio`` is the median ratio of the second to the first."""

    what: str
    by_hand: float
    compiled: float
    ratio: float


def run(rounds: int = ROUNDS) -> list[Row]:
    """Measure every program.

    Raises:
        AssertionError: two versions of a program give different answers.
    """
    threads = torch.get_num_threads()
    before = rekindle.set_execution_strategy("simple")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            return [_measure(what, case, rounds) for what, case in _cases()]
    finally:
        torch.set_num_threads(threads)
        rekindle.set_execution_strategy(before)


def _measure(what: str, case: Case, rounds: int) -> Row:
    by_hand: Callable[..., Any] = case.by_hand or case.program
    compiled: Any = ours(case)
    if isinstance(compiled, nn.Module):
        compiled = compiled.forward
    arguments = case.arguments
    for _ in range(3):
        torch.testing.assert_close(compiled(*arguments), by_hand(*arguments))
    hand, own = interleaved(
        [lambda: by_hand(*arguments), lambda: compiled(*arguments)], rounds, SLICE, time.thread_time
    )
    ratio = statistics.median(mine / base for mine, base in zip(own, hand, strict=True))
    return Row(what, statistics.median(hand) * 1e6, statistics.median(own) * 1e6, ratio)


def table(rows: list[Row]) -> list[list[Any]]:
    """Return the rows as text, after a row of column names; the last rows have the median and the worst."""
    head = ["program", "by hand, µs", "compiled, µs", "overhead"]
    body = [[row.what, f"{row.by_hand:.1f}", f"{row.compiled:.1f}", _percent(row.ratio)] for row in rows]
    ratios = [row.ratio for row in rows]
    return [
        head,
        *body,
        ["median", "", "", _percent(statistics.median(ratios))],
        ["worst", "", "", _percent(max(ratios))],
    ]


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f}%"
