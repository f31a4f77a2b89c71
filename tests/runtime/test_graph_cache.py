"""Optimized graphs on disk: a graph is read as it was written, under a key of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.ir import subgraph_execution
from rekindle.ir.bitcode.digest import describe
from rekindle.ir.graph import Graph
from rekindle.runtime.executable import forget_strategies
from rekindle.runtime.optimization import optimize
from rekindle.runtime.strategies import call_facts, graph_cache, native_strategy, simple_strategy
from rekindle.runtime.strategies.graph_cache import GraphCache

Optimized = list[int]


@pytest.fixture
def optimized(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Optimized:
    """The number of times that graphs were optimized, with an empty cache that keeps small programs too."""
    counted: Optimized = []

    def counting(*arguments: Any, **keywords: Any) -> bool:
        counted.append(1)
        return optimize(*arguments, **keywords)

    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(graph_cache, "are_passes_watched", lambda: False)
    monkeypatch.setattr(graph_cache, "MIN_NODES", 0)
    monkeypatch.setattr(subgraph_execution, "DEFER_FIRST_CALLS", False)
    monkeypatch.setattr(simple_strategy, "optimize", counting)
    monkeypatch.setattr(native_strategy, "optimize", counting)
    forget_strategies()  # modules of one class share what other tests have made of it
    return counted


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.dropout = torch.nn.Dropout(0.5)
        self.scale = 2.0

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        y = self.dropout(self.linear(x)) * self.scale
        if mask is not None:
            y = y * mask
        return torch.tanh(y) + x.dim()


def test_the_next_process_optimizes_nothing(optimized: Optimized) -> None:
    scripted, x = rekindle.script(Net().eval()), torch.randn(3, 4)
    with torch.no_grad():
        expected = scripted(x)
        text = str(scripted.graph_for(x))
        assert optimized
        optimized.clear()
        forget_strategies()
        assert torch.equal(scripted(x), expected)
    assert not optimized
    with torch.no_grad():
        assert str(scripted.graph_for(x)) == text


@pytest.mark.usefixtures("optimized")
def test_the_next_process_does_not_look_for_writes_to_types(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted, x = rekindle.script(Net().eval()), torch.randn(3, 4)
    with torch.no_grad():
        expected = scripted(x)
        forget_strategies()
        monkeypatch.delattr(call_facts, "keeps_types")
        assert torch.equal(scripted(x), expected)


def test_every_kind_of_call_has_its_graph(optimized: Optimized) -> None:
    scripted, x = rekindle.script(Net().eval()), torch.randn(3, 4)
    calls = [(x,), (x, torch.ones(4)), (torch.randn(2, 3, 4),), (x.requires_grad_(),)]
    expected = [scripted(*arguments) for arguments in calls]
    expected[-1].sum().backward()
    gradient, x.grad = x.grad, None
    assert gradient is not None
    forget_strategies()
    optimized.clear()
    found = [scripted(*arguments) for arguments in calls]
    found[-1].sum().backward()
    assert not optimized
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
    assert x.grad is not None
    assert torch.equal(x.grad, gradient)


@pytest.mark.parametrize("change", [lambda net: setattr(net, "scale", 3.0), lambda net: net.train()])
def test_other_attributes_need_other_graphs(optimized: Optimized, change: Callable[[Net], object]) -> None:
    net, x = Net().eval(), torch.randn(3, 4)
    scripted = rekindle.script(net)
    first = scripted(x)
    forget_strategies()
    optimized.clear()
    change(scripted)
    torch.manual_seed(0)
    changed = scripted(x)
    assert optimized
    assert not torch.equal(first, changed)
    forget_strategies()
    optimized.clear()
    torch.manual_seed(0)
    assert torch.equal(scripted(x), changed)  # both are kept
    scripted.eval()
    scripted.scale = 2.0
    forget_strategies()
    assert torch.equal(scripted(x), first)
    assert not optimized


def test_other_modes_of_the_process_need_other_graphs(optimized: Optimized) -> None:
    f = rekindle.CompilationUnit("def f(x):\n    return (x.sum() + torch.tensor([1.0, 2.0])).dtype, x + 1\n").f
    x = torch.ones(2, dtype=torch.int64)
    assert f(x)[0] is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        forget_strategies()
        optimized.clear()
        assert f(x)[0] is torch.float64
        assert optimized
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_damaged_file_is_not_used(optimized: Optimized, tmp_path: Path) -> None:
    f, x = rekindle.CompilationUnit("def f(x):\n    return x.relu() + x.dim()\n").f, torch.randn(3)
    expected = f(x)
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:-3])
    forget_strategies()
    optimized.clear()
    assert torch.equal(f(x), expected)
    assert optimized


def test_reasons_against_fusion_are_kept(optimized: Optimized) -> None:
    f = rekindle.CompilationUnit("def f(x):\n    y = torch.sort(x)[0]\n    return y.relu() * 2 + x.dim()\n").f
    x = torch.randn(3)
    f(x)
    reported = str(rekindle.report(f))
    assert "sort" in reported
    forget_strategies()
    optimized.clear()
    f(x)
    assert not optimized
    assert without_times(str(rekindle.report(f))) == without_times(reported)


def without_times(text: str) -> list[str]:
    return [line for line in text.splitlines() if " ms" not in line]


def test_what_calls_python_is_not_kept(optimized: Optimized, tmp_path: Path) -> None:
    @rekindle.script
    def f(x: torch.Tensor) -> torch.Tensor:
        return called(x) + 1

    x = torch.ones(2)
    assert f(x).tolist() == [3.0, 3.0]
    forget_strategies()
    optimized.clear()
    assert f(x).tolist() == [3.0, 3.0]
    assert optimized


@torch.jit.ignore
def called(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_passes_that_are_watched_run(optimized: Optimized, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    f, x = rekindle.CompilationUnit("def f(x):\n    return x.relu() + x.dim()\n").f, torch.randn(3)
    assert graph_cache.are_passes_watched()  # the tests verify graphs after each pass
    f(x)
    monkeypatch.setattr(graph_cache, "settings", lambda: rekindle.errors.debug_settings.read_settings({}))
    assert not graph_cache.are_passes_watched()
    with rekindle.add_pass("dead_code_elimination"):
        assert graph_cache.are_passes_watched()


def test_errors_have_the_same_places(optimized: Optimized) -> None:
    f = rekindle.CompilationUnit("def f(x, y):\n    z = x.relu()\n    return z @ y + x.dim()\n").f
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    told = []
    for _ in range(2):
        with pytest.raises(RuntimeError) as raised:
            f(x, y)
        told.append((str(raised.value), [(each.path, each.lineno, each.name) for each in raised.traceback]))
        forget_strategies()
    assert told[0] == told[1]


def test_another_process_reads_what_one_wrote(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import sys, torch, rekindle
from rekindle.runtime.strategies import native_strategy, simple_strategy
from rekindle.runtime.optimization import optimize
count = []
def counting(*arguments, **keywords):
    count.append(1)
    return optimize(*arguments, **keywords)
simple_strategy.optimize = native_strategy.optimize = counting
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(8, 2, 16).eval()
x = torch.randn(3, 2, 8, requires_grad=True)
scripted = rekindle.script(layer)
scripted(x)
y = scripted(x)
y.sum().backward()
torch.testing.assert_close(y, layer(x))
print(len(count), y.sum().item(), x.grad.sum().item())
""")
    environment = {**os.environ, "REKINDLE_CACHE_DIR": str(tmp_path / "cache"), "REKINDLE_VERIFY": "0"}

    def run() -> list[str]:
        command = [sys.executable, str(program)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return ran.stdout.split()

    first, second = run(), run()
    assert int(first[0]) > 0
    assert second == ["0", *first[1:]]


def small(x: torch.Tensor) -> torch.Tensor:
    return _halved(x) + _halved(x)


def _halved(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5


def of_many_calls(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = _eighth(x) + _eighth(x) + _eighth(x) + _eighth(x) + _eighth(x) + _eighth(x) + _eighth(x) + _eighth(x)
    return x


def _eighth(x: torch.Tensor) -> torch.Tensor:
    return _halved(_halved(_halved(x))) + _halved(_halved(_halved(x)))


def test_small_programs_are_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What counts is how large a program is with the functions that it calls, each as often as it is called."""
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(graph_cache, "are_passes_watched", lambda: False)
    graphs = [rekindle.script(program).graph for program in (small, of_many_calls)]
    found = [graph_cache.GraphCache.of(graph, ()) is not None for graph in graphs]
    assert found == [False, True]


class InMemory(dict[bytes, bytes]):
    """A storage in memory."""

    def load(self, key: bytes) -> bytes | None:
        return self.get(key)

    def store(self, key: bytes, payload: bytes) -> bool:
        self[key] = payload
        return True


@dataclass
class Decided:
    """Decisions that are provisional unless they measure."""

    measures: bool
    is_provisional: bool = False


@pytest.mark.parametrize("is_none", [False, True])
def test_graphs_of_provisional_decisions_are_not_taken_for_others(is_none: bool) -> None:
    program = rekindle.script(lambda x: x.exp() + 1).graph
    derived = GraphCache(InMemory(), describe(program), ()).derived()
    built: list[bool] = []

    def find(decisions: Decided) -> None:
        def build() -> Graph | None:
            built.append(decisions.measures)
            decisions.is_provisional = not decisions.measures
            return None if is_none else program.copy()

        found = derived.find(("graph",), build, decisions)
        kinds = None if found is None else [node.kind for node in found.all_nodes()]
        assert kinds == (None if is_none else [node.kind for node in program.all_nodes()])

    for measures, is_provisional, expected in (
        (False, True, [False]),
        (False, True, [False]),
        (True, False, [False, True]),
        (True, False, [False, True]),
        (False, False, [False, True]),
    ):
        decisions = Decided(measures)
        find(decisions)
        assert (decisions.is_provisional, built) == (is_provisional, expected)
