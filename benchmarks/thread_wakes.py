"""How often another thread of Python wakes up while a plan runs: it waits for 0.1 ms each time.

Programs that hold Python's global lock for long keep other threads waiting. Eager Python lets them run every 5 ms, if
they wait for the lock, and within operators that release it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

import rekindle

SECONDS: Final = 1.0
"""How long a program runs, at the least."""
WAIT: Final = 1e-4


def numbers(n: int) -> int:
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 65_521
    return total


def small_operators(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.relu(x)
    return x


def products(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.mm(x, x).softmax(1)
    return x


PROGRAMS: Final[tuple[tuple[str, Callable[..., Any], tuple[Any, ...]], ...]] = (
    ("numbers alone", numbers, ()),
    ("operators on 4×4 floats", small_operators, (torch.ones(4, 4),)),
    ("products of 256×256", products, (torch.ones(256, 256),)),
)
"""Programs, by what their loop computes, with the arguments before the number of iterations."""


@dataclass(slots=True)
class Wakes:
    """Wakes of the other thread a second, by what runs the program."""

    what: str
    a_second: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """The wakes beside a plan divided by those beside eager."""
        return self.a_second["rekindle"] / self.a_second["eager"]


def run(seconds: float = SECONDS) -> Iterator[Wakes]:
    """Yield a row for each program, with a thread for PyTorch's operators."""
    torch.set_num_threads(1)
    for what, program, arguments in PROGRAMS:
        row = Wakes(what)
        for name, call in (("eager", program), ("rekindle", rekindle.script(program))):
            row.a_second[name] = _beside(partial(call, *arguments), seconds)
        yield row


def _beside(call: Callable[[int], object], seconds: float) -> float:
    """Return the wakes a second of a thread beside a single call that takes at least so many seconds."""
    count = 100
    while (taken := _time(call, count)) < seconds / 4:
        count = int(count * min(10, 0.5 * seconds / max(taken, 1e-6)) + 1)
    count = int(count * seconds / taken)
    done, woken = threading.Event(), 0

    def wake() -> None:
        nonlocal woken
        while not done.wait(WAIT):
            woken += 1

    thread = threading.Thread(target=wake)
    thread.start()
    taken = _time(call, count)
    done.set()
    thread.join()
    return woken / taken


def _time(call: Callable[[int], object], count: int) -> float:
    start = time.perf_counter()
    call(count)
    return time.perf_counter() - start


def table(rows: list[Wakes]) -> list[list[str]]:
    """Return wakes a second, a line for each program."""
    names = ("eager", "rekindle")
    return [["loop", *names], *([row.what, *(f"{row.a_second[name]:,.0f}" for name in names)] for row in rows)]
