"""``rekindle.measure``: how long each node of a program takes."""

from __future__ import annotations

import copy
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from rekindle.api.drop_in.entry_points import EntryPoint, entry_point_of
from rekindle.api.reports.outcomes import as_leaf
from rekindle.api.reports.report import operator_of
from rekindle.api.reports.report_data import OperatorReport
from rekindle.api.show import page_of
from rekindle.ir.graph import Node
from rekindle.runtime.executor import execute, prepare
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.futures import block_until_done
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.viz import Page

WARM_UP: Final = 4
"""Number of calls before the measured ones: kernels are generated in the third call."""
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class NodeTime:
    """The time of one node: ``seconds`` in one call of the function, during which it runs ``runs`` times."""

    operator: OperatorReport
    text: str
    runs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of the nodes, the slowest first, as medians of ``rounds`` calls; ``str()`` is a readable table."""

    name: str
    rounds: int
    nodes: tuple[NodeTime, ...]
    _subject: EntryPoint = field(repr=False, compare=False)
    _arguments: Sequence[Any] = field(repr=False, compare=False)
    _seconds: Mapping[Node, float] = field(repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """The sum over all nodes, in seconds."""
        return sum(each.seconds for each in self.nodes)

    def show(self) -> Page:
        """Return the page of :func:`rekindle.show`, with the times in the boxes of the graphs that calls run."""
        return page_of(self._subject, self._arguments, self._seconds)

    def __str__(self) -> str:
        total = self.seconds
        lines = [f"{self.name}: {_time(total)} in {len(self.nodes)} nodes, medians of {self.rounds} calls"]
        for each in self.nodes[:_SHOWN]:
            runs = "" if each.runs == 1 else f", {each.runs} runs"
            place = f"  {Path(each.operator.file).name}:{each.operator.line}" if each.operator.file else ""
            share = 100 * each.seconds / total if total else 0.0
            lines.append(f"  {_time(each.seconds):>9} {share:3.0f} %  {each.operator.kind}{runs}{place}")
        if len(self.nodes) > _SHOWN:
            rest = sum(each.seconds for each in self.nodes[_SHOWN:])
            lines.append(f"  {_time(rest):>9} {100 * rest / total:3.0f} %  {len(self.nodes) - _SHOWN} others")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


def measure(f: Any, /, *args: Any, **kwargs: Any) -> Measurement:
    """Measure how long each node takes in a call of ``f`` with these arguments.

    ``f`` is called 24 times with copies of the arguments: first as usual, until there are kernels, then node by node in
    the interpreter, which adds about a microsecond to each node. A call within the program counts as one node. Modules
    are not copied: the calls change buffers that the program writes to.

    Args:
        f: a function, a method or a module, compiled or not.

    Returns:
        Times in seconds, medians of 20 calls, the slowest node first.

    Raises:
        ArgumentError: the arguments do not fit.
        CompileError, NotScriptableError: ``f`` cannot be compiled.
        TypeError: ``f`` is an overloaded function, or a class.
        Exception: whatever the program raises.

    Example:
        >>> measurement = rekindle.measure(lambda x: torch.sort(x @ x)[0], torch.randn(64, 64))
        >>> sorted(node.operator.kind for node in measurement.nodes)
        ['aten::sort', 'prim::FusionGroup']
    """
    return _measured(entry_point_of(f), args, kwargs, rounds=20)


def _measured(subject: EntryPoint, args: Sequence[Any], kwargs: Mapping[str, Any], rounds: int) -> Measurement:
    arguments = subject.bind(args, kwargs)
    for _ in range(WARM_UP):
        execute(subject.record, _copies(arguments))
    code = prepare(subject.record, _copies(arguments)).code
    spent: dict[Node, list[float]] = defaultdict(list)
    runs: dict[Node, int] = {}
    for _ in range(rounds):
        for node, (count, seconds) in _one_round(code, _copies(arguments)).items():
            spent[node].append(seconds)
            runs[node] = count
    medians = {node: statistics.median([*times, *[0.0] * (rounds - len(times))]) for node, times in spent.items()}
    nodes = [
        NodeTime(operator_of(node), str(node).splitlines()[0].partition(" # ")[0].strip(), runs[node], seconds)
        for node, seconds in sorted(medians.items(), key=lambda item: -item[1])
        if node.kind not in ("prim::Constant", "prim::Return", "prim::Param")
    ]
    return Measurement(subject.record.basename, rounds, tuple(nodes), subject, arguments, medians)


def _copies(arguments: Sequence[Any]) -> list[Any]:
    """Return deep copies of the arguments, as a call may write to them; modules are not copied."""
    return [value if isinstance(value, torch.nn.Module) else copy.deepcopy(as_leaf(value)) for value in arguments]


def _one_round(code: Code, arguments: Sequence[Any]) -> dict[Node, tuple[int, float]]:
    """Run one call node by node. Return for each node its number of runs, and the seconds that these took together."""
    found: dict[Node, tuple[int, float]] = {}
    state = InterpreterState(code)
    state.start(arguments)
    node = None
    clock = time.perf_counter
    while not state.is_finished:
        if state.depth == 0:
            instruction = state.code.instructions[state.position]
            is_new, node = True, instruction.node
        else:
            is_new = False
        before = clock()
        state.step()
        if state.awaited is not None:
            block_until_done(state.awaited)
        seconds = clock() - before
        assert node is not None
        count, so_far = found.get(node, (0, 0.0))
        found[node] = (count + is_new, so_far + seconds)
    return found


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
