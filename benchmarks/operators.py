"""Cost of calling an operator, measured on tensors of 4×4 floats, on which it has almost nothing to compute.

A program calls the operator sixteen times, each on the result of the previous call, so that no call can be omitted. It
runs in eager Python, by ``torch.jit``, by a plan in Python and by a native plan, all without fusion, since fusion would
remove the calls. Rounds are short and interleaved, and the clock is that of the thread.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

import rekindle
from benchmarks.execution import interleaved
from rekindle.runtime.settings import SETTINGS

ROUNDS: Final = 100
SLICE: Final = 0.0005
REPEATED: Final = 16

EXPRESSIONS: Final = {
    "add": "x + y",
    "mul": "x * y",
    "mul by a number": "x * 0.5",
    "relu": "torch.relu(x)",
    "tanh": "torch.tanh(x)",
    "where": "torch.where(x > 0, x, y)",
    "mm": "torch.mm(x, y)",
    "linear": "torch.nn.functional.linear(x, y)",
    "addmm": "torch.addmm(y, x, y)",
    "softmax": "torch.softmax(x, -1)",
    "layer_norm": "torch.layer_norm(x, [4])",
    "sum, one dimension": "torch.sum(x, [1], True)",
    "t": "x.t()",
    "permute": "x.permute([1, 0])",
    "reshape": "x.reshape([4, 4])",
    "view": "x.view(4, 4)",
    "transpose": "x.transpose(0, 1)",
    "select": "x.select(0, 1).expand(4, 4)",
    "cat": "torch.cat([x, y], 0).narrow(0, 0, 4)",
    "chunk": "x.chunk(2, 1)[0].expand(4, 2)",
    "add_": "x.add_(y)",
    "zeros_like": "torch.zeros_like(x)",
}
"""Each makes a tensor of ``x``, and of ``y``, which stays the same."""


@dataclass(slots=True)
class Row:
    """Nanoseconds of a call of an operator, by executor. ``ratio`` is the median ratio of the native plan to eager."""

    what: str
    eager: float
    torch_jit: float
    plan: float
    native_plan: float
    ratio: float


def run(rounds: int = ROUNDS, wanted: str = "") -> list[Row]:
    """Measure every operator whose name has ``wanted`` in it.

    Raises:
        AssertionError: two ways give different answers.
    """
    threads, native = torch.get_num_threads(), SETTINGS.native_plans
    before = rekindle.set_execution_strategy("simple")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            return [_measure(name, text, rounds) for name, text in EXPRESSIONS.items() if wanted in name]
    finally:
        torch.set_num_threads(threads)
        rekindle.set_execution_strategy(before)
        SETTINGS.native_plans = native


def _measure(name: str, expression: str, rounds: int) -> Row:
    lines = [f"    x = {expression}\n"] * REPEATED
    text = f"def f(x: torch.Tensor, y: torch.Tensor):\n{''.join(lines)}    return x\n"
    names: dict[str, Any] = {"torch": torch}
    exec(text, names)
    ways: dict[str, Callable[..., Any]] = {"eager": names["f"], "torch.jit": torch.jit.CompilationUnit(text).f}
    x, y = torch.rand(4, 4), torch.rand(4, 4)
    for way, native in (("plan", False), ("native plan", True)):
        SETTINGS.native_plans = native
        ways[way] = rekindle.CompilationUnit(text).f
        for _ in range(3):
            ways[way](x.clone(), y)
        assert [version.runs_as for version in rekindle.report(ways[way]).versions] == [way], name
    for way in ways.values():
        torch.testing.assert_close(way(x.clone(), y), names["f"](x.clone(), y))
    given = x.clone()
    found = interleaved([lambda way=way: way(given, y) for way in ways.values()], rounds, SLICE, time.thread_time)
    eager, jit, plan, native_plan = (statistics.median(each) * 1e9 / REPEATED for each in found)
    ratio = statistics.median(own / base for own, base in zip(found[3], found[0], strict=True))
    return Row(name, eager, jit, plan, native_plan, ratio)


def table(rows: list[Row]) -> list[list[Any]]:
    """Return the rows as text, after a row of column names; the last row has geometric means."""
    return [["operator", "eager, ns", "torch.jit", "plan in Python", "native plan", "native / eager"], *_body(rows)]


def _body(rows: list[Row]) -> Iterator[list[Any]]:
    for row in rows:
        numbers = (row.eager, row.torch_jit, row.plan, row.native_plan)
        yield [row.what, *(f"{number:.0f}" for number in numbers), f"{row.ratio:.2f}"]
    means = [
        statistics.geometric_mean(getattr(row, field) for row in rows)
        for field in ("eager", "torch_jit", "plan", "native_plan")
    ]
    ratio = statistics.geometric_mean(row.ratio for row in rows)
    yield ["geometric mean", *(f"{mean:.0f}" for mean in means), f"{ratio:.2f}"]
