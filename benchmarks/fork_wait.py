"""Time of ``fork`` and ``wait``, compared with ``torch.jit``.

Measured are two chains of large matrix products with forks and without, with one thread for each product; two frozen
stacks of linear layers, which the pass ``parallelize`` runs in parallel; and a task that does almost nothing.

Each round runs each candidate once; medians over the rounds are reported.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, List

import torch
from torch import Tensor

import rekindle
from rekindle.passes import Parallelize

SIZE = 512
PRODUCTS = 12
WIDTH = 1024
LAYERS = 6
ROWS = 64
TASKS = 1_000


def chain(x: Tensor, n: int) -> Tensor:
    y = x
    for _ in range(n):
        y = torch.mm(y, x)
    return y


def serial(a: Tensor, b: Tensor, n: int) -> Tensor:
    return chain(a, n) + chain(b, n)


def forked(a: Tensor, b: Tensor, n: int) -> Tensor:
    first = torch.jit.fork(chain, a, n)
    second = torch.jit.fork(chain, b, n)
    return torch.jit.wait(first) + torch.jit.wait(second)


class Towers(torch.nn.Module):
    """Two stacks of linear layers on the same input."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (
            torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) + self.second(x)


def number(n: int) -> int:
    return n + 1


def many(n: int) -> int:
    futures: List[torch.jit.Future[int]] = []
    for i in range(n):
        futures.append(torch.jit.fork(number, i))
    total = 0
    for future in futures:
        total += torch.jit.wait(future)
    return total


@dataclass(slots=True)
class Row:
    """Milliseconds in rekindle and in ``torch.jit``; for chains also the time of rekindle without forks."""

    what: str
    rekindle: float
    torch_jit: float
    rekindle_serial: float | None = None
    torch_jit_serial: float | None = None

    @property
    def ratio(self) -> float:
        """The time of rekindle divided by that of ``torch.jit``."""
        return self.rekindle / self.torch_jit

    @property
    def of_serial(self) -> float | None:
        """The time with forks divided by that without, in rekindle. Two cores can reach 0.5."""
        return None if self.rekindle_serial is None else self.rekindle / self.rekindle_serial


def run(rounds: int = 20) -> list[Row]:
    """Measure all programs for ``rounds`` rounds, which takes about ten seconds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            return [_chains(rounds), _towers(rounds), _tasks(rounds)]
    finally:
        torch.set_num_threads(threads)


def _chains(rounds: int) -> Row:
    torch.manual_seed(0)
    a, b = (torch.randn(SIZE, SIZE) / SIZE**0.5 for _ in range(2))
    candidates = [script(program) for program in (forked, serial) for script in (rekindle.script, _torch_script)]
    expected = serial(a, b, PRODUCTS)
    for candidate in candidates:
        torch.testing.assert_close(candidate(a, b, PRODUCTS), expected)
    times = _medians([lambda c=c: c(a, b, PRODUCTS) for c in candidates], rounds)
    return Row(f"two chains of {PRODUCTS} products of {SIZE} x {SIZE}", *times)


def _towers(rounds: int) -> Row:
    torch.manual_seed(0)
    towers = Towers().eval()
    x = torch.randn(ROWS, WIDTH)
    parallel, serial = (rekindle.freeze(rekindle.script(towers)) for _ in range(2))
    assert Parallelize().run(parallel.graph)
    parallel.graph.note_change()
    assert any(node.kind == "prim::fork" for node in parallel.graph_for(x).all_nodes())
    expected = towers(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs = torch.jit.freeze(torch.jit.script(towers))
    candidates = [parallel, theirs, serial]
    for candidate in candidates:
        torch.testing.assert_close(candidate(x), expected)
    times = _medians([lambda c=c: c(x) for c in candidates], rounds)
    return Row(f"two towers of {LAYERS} layers of {WIDTH}, {ROWS} rows, by the pass", *times)


def _tasks(rounds: int) -> Row:
    candidates = [script(many) for script in (rekindle.script, _torch_script)]
    times = _medians([lambda c=c: c(TASKS) for c in candidates], rounds)
    return Row(f"{TASKS} tasks that add two numbers", *times)


def _torch_script(function: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(function)


def _medians(candidates: list[Callable[[], object]], rounds: int) -> list[float]:
    """Return the median milliseconds of each candidate."""
    times: list[list[float]] = [[] for _ in candidates]
    for round in range(rounds + 2):
        for candidate, found in zip(candidates, times):
            start = time.perf_counter()
            candidate()
            if round >= 2:  # the first rounds compile and warm up
                found.append(time.perf_counter() - start)
    return [statistics.median(found) * 1e3 for found in times]


def table(rows: list[Row]) -> list[list[Any]]:
    """Return the rows as text, after a row of column names."""
    head = ["program", "rekindle, ms", "torch.jit, ms", "ratio", "without forks, ms", "of that"]
    body = [
        [
            row.what,
            f"{row.rekindle:.1f}",
            f"{row.torch_jit:.1f}",
            f"{row.ratio:.2f}",
            "" if row.rekindle_serial is None else f"{row.rekindle_serial:.1f}",
            "" if row.of_serial is None else f"{row.of_serial:.2f}",
        ]
        for row in rows
    ]
    return [head, *body]
