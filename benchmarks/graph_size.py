"""Time to compile programs of growing size, which should grow linearly.

Three families of programs: operators in sequence, branches and loops in sequence, and layers of modules. All stages are
timed: source to graph, passes, instructions, the plan as Python source, and Python's compiler. A time is the shortest
of several by the clock of the thread, each for a program whose text is new.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.runtime.plans.plan import ExecutionPlan

SIZES: Final = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
"""Nodes of the graph that is optimized, about."""
STAGES: Final = ("source to graph", "passes", "instructions", "plan")


def straight(size: int, seed: int) -> GraphFunction:
    """Compile about ``size`` nodes of operators on two tensors, in a straight line. ``seed`` is part of the function's
    name."""
    lines = [f"def f{seed}(x, y):"]
    for index in range(size // 4):
        lines.append(f"    x = torch.tanh(x * y + {index}.5) - y")
    return _compiled([*lines, "    return x"], f"f{seed}")


def branching(size: int, seed: int) -> GraphFunction:
    """Compile about ``size`` nodes of branches that differ from each other, and of short loops. ``seed`` is part of the
    function's name."""
    lines = [f"def f{seed}(x, n: int):", "    k = n"]
    for index in range(size // 11):
        lines += [
            f"    if k > {index}:",
            f"        x = x * {index}.5",
            "    else:",
            "        x = x + k",
            "        k = k + 1",
            "    for i in range(n):",
            "        k = k - i",
            "        x = x + i",
        ]
    return _compiled([*lines, "    return x"], f"f{seed}")


def _compiled(lines: list[str], name: str) -> GraphFunction:
    record: GraphFunction = getattr(rekindle.CompilationUnit("\n".join(lines)), name)._record
    record.ensure_defined()
    return record


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) * self.scale + x


class _Stack(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer() for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def modules(size: int, seed: int) -> GraphFunction:
    """Compile about ``size`` nodes of layers with parameters, each inlined."""
    return rekindle.script(_Stack(size // 9)).forward._record  # type: ignore[no-any-return]


FAMILIES: Final[dict[str, Callable[[int, int], GraphFunction]]] = {
    "straight line": straight,
    "branches and loops": branching,
    "modules": modules,
}


@dataclass(slots=True)
class Row:
    """The number of nodes of a program's graph before optimization, calls not counted, and the seconds of each
    stage."""

    what: str
    nodes: int
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @property
    def ratio(self) -> float:
        """Microseconds for each node."""
        return self.total / self.nodes * 1e6


def run(rounds: int = 3, sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """Measure all programs, which takes a minute."""
    compile_all(straight(100, 0))  # loads what compiling needs
    return [_measure(name, make, size, rounds) for name, make in FAMILIES.items() for size in sizes]


def _measure(name: str, make: Callable[[int, int], GraphFunction], size: int, rounds: int) -> Row:
    best: dict[str, float] = {}
    for number in range(rounds):
        gc.collect()
        start = time.thread_time()
        record = make(size, number)
        found = {STAGES[0]: time.thread_time() - start, **compile_all(record)}
        best = {stage: min(seconds, best.get(stage, seconds)) for stage, seconds in found.items()}
    graph = record.graph.copy()
    inlined = optimize(graph, OPTIMIZATION[:1])
    return Row(name, count_nodes(graph) if inlined else count_nodes(record.graph), best)


def compile_all(record: GraphFunction) -> dict[str, float]:
    """Return the seconds of each stage after the first."""
    marks = [time.thread_time()]
    graph = record.graph.copy()
    optimize(graph, OPTIMIZATION)
    marks.append(time.thread_time())
    code = Code(graph, record.name)
    marks.append(time.thread_time())
    ExecutionPlan(code)
    marks.append(time.thread_time())
    return {stage: end - start for stage, start, end in zip(STAGES[1:], marks, marks[1:])}


def count_nodes(graph: Graph) -> int:
    return sum(1 for _ in graph.all_nodes())


def table(rows: list[Row]) -> list[list[Any]]:
    """Return the rows as text, after a row of column names."""
    head = ["program", "nodes", *(f"{stage}, ms" for stage in STAGES), "all, ms", "a node, µs"]
    body = [
        [
            row.what,
            f"{row.nodes:,}",
            *(f"{row.seconds[stage] * 1e3:.0f}" for stage in STAGES),
            f"{row.total * 1e3:.0f}",
            f"{row.ratio:.0f}",
        ]
        for row in rows
    ]
    return [head, *body]
