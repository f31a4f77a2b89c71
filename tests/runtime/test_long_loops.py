"""Long loops of interpreted first calls are compiled when they are entered: they behave as in all later calls."""

from __future__ import annotations

import collections
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.analysis.work_estimate import WorkEstimate
from rekindle.ir import subgraph_execution
from rekindle.ir.graph import Graph
from rekindle.runtime.executable import forget_strategies
from rekindle.runtime.executor import optimized_execution
from rekindle.runtime.interpreter import long_loops
from rekindle.runtime.strategies import simple_strategy


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """First calls are interpreted, and every loop is long; the lines of the loops that were compiled."""
    lines: list[str] = []
    compile_loop = simple_strategy.SpecializingStrategy._compiled_loop

    def recorded(self: Any, graph: Graph, name: str) -> Callable[..., Any]:
        lines.append(graph.find_nodes("prim::Loop")[0].range.text.partition("\n")[0])
        return compile_loop(self, graph, name)

    forget_strategies()  # the next call of each function is its first one
    monkeypatch.setattr(subgraph_execution, "DEFER_FIRST_CALLS", True)
    monkeypatch.setattr(long_loops, "LONG", 0)
    monkeypatch.setattr(simple_strategy.SpecializingStrategy, "_compiled_loop", recorded)
    return lines


def carries_tensors(x: Tensor, n: int) -> tuple[Tensor, list[Tensor]]:
    found: list[Tensor] = []
    w = x.tanh()
    for i in range(n):
        x = x * w + i
        found.append(x)
    return x, found


def has_variables_without_use(x: Tensor, n: int) -> Tensor:
    last = torch.ones(3)
    for i in range(n):
        last = x + i
        y = last * 2
        if i > 0:
            x = y
    return x


def breaks(x: Tensor, n: int) -> tuple[Tensor, int]:
    i = -1
    for i in range(n):
        x = x + 1
        if i == 2:
            break
    return x, i


def loops_in_loops(x: Tensor, n: int) -> int:
    total = 0
    for i in range(n):
        for j in range(i + x.dim()):
            total += i * j
        for k in [1, 2, 3]:
            total -= k
    return total


def swaps(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    y = x * 2
    for _ in range(n):
        x, y = y, x
    return x, y


def writes_to_lists(x: Tensor, n: int) -> list[int]:
    values = [1, 2]
    for i in range(n):
        values[0] += i
        values.append(values[0])
    return values


def after_a_condition(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i == n - 1:
            continue
        x = x.relu() if bool(x.sum() > 1) else x + 1
    return x


def until_large(x: Tensor, n: int) -> tuple[Tensor, int]:
    count = 0
    while bool(x.sum() < 3 * n):
        x = x + 1
        count += 1
    return x, count


def returns(x: Tensor, n: int) -> Tensor:
    y = x
    for i in range(n):
        y = y * 2
        if bool(y.sum() > 20):
            return y - i
    return x


PROGRAMS = [
    *(carries_tensors, has_variables_without_use, breaks, loops_in_loops),
    *(swaps, writes_to_lists, after_a_condition, until_large, returns),
]

ENDED_BY_A_CONDITION = (breaks, after_a_condition, until_large, returns)
"""The number of iterations of their loops is not known: they are compiled after the first iteration."""


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("function", PROGRAMS)
def test_all_calls_agree(function: Callable[[Tensor, int], Any], n: int, compiled: list[str]) -> None:
    scripted = rekindle.script(function)
    for _ in range(3):
        found, expected = scripted(torch.arange(3.0), n), function(torch.arange(3.0), n)
        torch.testing.assert_close(found, expected)
    assert bool(compiled) == (n > (1 if function in ENDED_BY_A_CONDITION else 0))


@rekindle.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Doubles(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Shifts(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Chooses(nn.Module):
    first: Step
    second: Step

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Doubles(), Shifts()

    def forward(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            step = self.first if i % 2 == 0 else self.second
            x = step.forward(x)
        return x


def test_loops_that_only_the_interpreter_can_run(compiled: list[str]) -> None:
    """Which method is called is known when the loop runs."""
    net = Chooses()
    scripted = rekindle.script(net)
    for _ in range(3):
        assert torch.equal(scripted(torch.ones(2), 3), net(torch.ones(2), 3))
    assert len(compiled) == 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.calls = 0
        self.register_buffer("total", torch.zeros(3))

    def step(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = self.linear(x).relu() + x
            self.total += x.detach()
            self.calls += 1
        return x

    def forward(self, x: Tensor, n: int) -> Tensor:
        return self.step(x, n) * self.step(x, 1)


def test_loops_of_methods_train_modules_and_change_them(compiled: list[str]) -> None:
    torch.manual_seed(0)
    net = Net()
    scripted = rekindle.script(net)
    net.linear.load_state_dict(scripted.linear.state_dict())
    for _ in range(3):
        results = []
        for each in (net, scripted):
            each.zero_grad()
            y = each(torch.ones(3), 4)
            y.sum().backward()
            results.append((y, each.linear.weight.grad, each.total, each.calls))
            each.total = torch.zeros(3)
        torch.testing.assert_close(*results)
    assert compiled == ["for _ in range(n):"]


def reads_beyond(xs: list[int], n: int) -> int:
    total = 0
    for i in range(n):
        total += xs[i]
    return total


def calls_reads_beyond(xs: list[int], n: int) -> int:
    return reads_beyond(xs, n) + 1


@pytest.mark.parametrize("function", [reads_beyond, calls_reads_beyond])
def test_errors_are_those_of_later_calls(function: Callable[[list[int], int], int], compiled: list[str]) -> None:
    """Class, text and traceback."""
    scripted = rekindle.script(function)
    texts = []
    for _ in range(3):
        with pytest.raises(IndexError, match="list index out of range") as caught:
            scripted([1, 2], 3)
        texts.append("".join(traceback.format_exception(caught.value)[1:]).replace("^", "").replace("~", "").split())
    assert texts[0] == texts[1] == texts[2]
    assert "total += xs[i]" in " ".join(texts[0])
    assert len(compiled) == 1


def raises_without_gradients(x: Tensor, n: int) -> Tensor:
    with torch.no_grad():
        for i in range(n):
            x = x * 2
            if i == 2:
                raise ValueError("third")
    return x


def test_an_error_leaves_the_with_statements_around_the_loop(compiled: list[str]) -> None:
    scripted = rekindle.script(raises_without_gradients)
    for _ in range(3):
        with pytest.raises(ValueError, match="third"):
            scripted(torch.ones(2), 3)
        assert torch.is_grad_enabled()
    assert len(compiled) == 1


def test_loops_within_calls_without_optimization_are_interpreted(compiled: list[str]) -> None:
    scripted = rekindle.script(loops_in_loops)
    with optimized_execution(False):
        assert scripted(torch.ones(3), 4) == loops_in_loops(torch.ones(3), 4)
    assert not compiled


def forks(x: Tensor, n: int) -> Tensor:
    future = torch.jit.fork(carries_tensors, x, n)
    return torch.jit.wait(future)[0]


def test_functions_with_tasks_and_loops_are_optimized_at_once(compiled: list[str]) -> None:
    scripted = rekindle.script(forks)
    torch.testing.assert_close(scripted(torch.ones(3), 4), carries_tensors(torch.ones(3), 4)[0])
    assert rekindle.last_executed_graph() is not scripted.graph
    assert not compiled


def test_loops_that_are_entered_often_are_compiled(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_loops, "LONG", 700)
    scripted = rekindle.script(entered_often)
    assert scripted(2, torch.tensor(100)) == entered_often(2, torch.tensor(100))
    assert not compiled
    forget_strategies()
    assert scripted(4, torch.tensor(100)) == entered_often(4, torch.tensor(100))
    assert compiled == ["for _ in range(int(x)):"]


def entered_often(n: int, x: Tensor) -> int:
    total = 0
    for i in range(n):
        total += short(i, x)
    return total


def short(i: int, x: Tensor) -> int:
    total = 0
    for _ in range(int(x)):
        total += i * i
    return total


def permutations(xs: list[int], n: int) -> int:
    total = 1
    for i in range(min(n, 3)):
        total += permutations(xs, n - 1 - i)
    return total


def test_loops_that_call_their_own_function(compiled: list[str]) -> None:
    scripted = rekindle.script(permutations)
    assert scripted([1], 5) == permutations([1], 5)
    assert compiled


def raises_in_order(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if x.dim() > 3:
            raise ValueError("too many")
        if i == 2:
            x = torch.cat([x, x])
        x = x + torch.ones(3)
    return x


def test_an_operator_that_fails_beside_a_raise(compiled: list[str]) -> None:
    scripted = rekindle.script(raises_in_order)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="The size of tensor a"):
            scripted(torch.ones(3), 4)
    assert len(compiled) == 1


def test_nothing_is_compiled_in_a_call_where_the_background_compiles(compiled: list[str]) -> None:
    before = rekindle.set_background_compilation(True)
    try:
        scripted = rekindle.script(swaps)
        torch.testing.assert_close(scripted(torch.ones(3), 4), swaps(torch.ones(3), 4))
    finally:
        rekindle.set_background_compilation(before)
    assert not compiled


def if_it_is_there(counts: dict[str, int], x: Tensor) -> Tensor:
    if "n" in counts:
        for i in range(counts["n"]):
            x = x + i
    return x


def if_it_is_small(x: Tensor, n: int) -> Tensor:
    if n < 1000:
        for value in [1] * n:
            x = x + value
    return x


@pytest.mark.usefixtures("compiled")
def test_the_estimate_changes_and_computes_nothing() -> None:
    counts: dict[str, int] = collections.defaultdict(int)
    rekindle.script(if_it_is_there)(counts, torch.ones(1))
    assert not counts
    scripted = rekindle.script(if_it_is_small)
    estimate = WorkEstimate.of_call(scripted.graph, (torch.ones(1), 1 << 60), 1)  # the list would not fit into memory
    assert estimate.nodes(scripted.graph.nodes) < 20


def test_iterations_without_nodes_count() -> None:
    def last(n: int) -> int:
        found = 0
        for i in range(n):
            found = i
        return found

    graph = rekindle.script(last).graph
    assert WorkEstimate.of_call(graph, (1000,), 1).nodes(graph.nodes) > 1000
