"""First calls are interpreted where that is faster than a plan: they behave as all later ones."""

from __future__ import annotations

import gc
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.ir import subgraph_execution
from rekindle.runtime.executable import forget_strategies
from rekindle.runtime.executor import prepare
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.plans.first_run import runs_once
from rekindle.runtime.version import Version


@pytest.fixture(autouse=True)
def deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subgraph_execution, "DEFER_FIRST_CALLS", True)


def branches(x: Tensor, n: int) -> tuple[Tensor, int]:
    if n > 3:
        y, m = x.exp(), n // 2
    elif n > 1:
        y, m = x.cumsum(0), n
    else:
        y, m = x, -n
    return y.cumsum(0), m


def several_results(x: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    values, indices = x.sort()
    first, _, last = x.unbind()
    return values * n, indices, first.cumsum(0) + last


def own_lists(x: Tensor, n: int) -> list[int]:
    found = [1, 2, 3]
    found.append(n)
    found[0] += x.dim()
    return found


def nothing(x: Tensor, n: int) -> None:
    x.add_(n)


@pytest.mark.parametrize("function", [branches, several_results, own_lists, nothing])
def test_all_calls_agree(function: Callable[[Tensor, int], Any]) -> None:
    scripted = rekindle.script(function)
    for n in (2, 5, 0, 5, 2, 0, 2):
        ours, theirs = (torch.arange(3.0) for _ in range(2))
        found, expected = scripted(ours, n), function(theirs, n)
        torch.testing.assert_close((found, ours), (expected, theirs))
        assert type(found) is type(expected)


def checks(x: Tensor, n: int) -> Tensor:
    y = x.cumsum(0)
    if n > 1:
        y = y.reshape(n, 2)
    return y.exp()


def divides(x: Tensor, n: int) -> int:
    return 5 // n


def unpacks(x: Tensor, n: int) -> Tensor:
    a, b = x.split(n)
    return a.sum() + b.sum()


@pytest.mark.parametrize(("function", "n"), [(checks, 7), (divides, 0), (unpacks, 1)])
def test_errors_are_those_of_later_calls(function: Callable[[Tensor, int], Any], n: int) -> None:
    """Class, text and traceback."""
    scripted = rekindle.script(function)
    texts = []
    for _ in range(3):
        with pytest.raises((RuntimeError, ValueError, ZeroDivisionError)) as caught:
            scripted(torch.arange(3.0), n)
        texts.append("".join(traceback.format_exception(caught.value)[1:]).replace("^", "").split())
    assert function.__name__ in texts[0]
    assert texts[0] == texts[1] == texts[2]
    scripted(torch.arange(2.0), 1)


def frees(x: Tensor) -> Tensor:
    y = x.cumsum(0)
    z = y.cumsum(0)
    return z.cumsum(0)


def test_tensors_are_freed_at_their_last_use() -> None:
    compiled = rekindle.script(frees)
    version = Version.of(compiled.graph.copy(), "frees", defers=True)
    made: list[weakref.ref[Tensor]] = []
    alive: list[int] = []
    for instruction in version.code.instructions:
        run = instruction.operation
        if run is None or instruction.node.kind != "aten::cumsum":
            continue

        def observed(*inputs: Any, run: Callable[..., Any] = run) -> Any:
            result = run(*inputs)
            del inputs
            alive.append(sum(each() is not None for each in made))
            made.append(weakref.ref(result))
            return result

        instruction.operation = observed
    version.function(torch.ones(3))
    assert alive == [0, 1, 1]


def loops(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = x.cumsum(0)
    return x


def test_loops_are_not_interpreted() -> None:
    assert runs_once(Code(rekindle.script(branches).graph, "branches"))
    assert not runs_once(Code(rekindle.script(loops).graph, "loops"))


def test_the_second_call_writes_the_plan() -> None:
    graph = rekindle.script(branches).graph
    version, planned = (Version.of(graph.copy(), "branches", defers=each) for each in (True, False))
    first = version.function
    for _ in range(2):
        assert version.function is first
        version.function(torch.ones(3), 2)
    assert version.function is not first
    assert type(version.function) is type(planned.function)


@pytest.mark.parametrize("called", [False, True])
def test_versions_are_asked_how_they_run(called: bool) -> None:
    graph = rekindle.script(branches).graph
    version, planned = (Version.of(graph.copy(), "branches", defers=each) for each in (True, False))
    if called:
        version.function(torch.ones(3), 2)
    assert version.runs_as == planned.runs_as
    assert (version.plan is None) == (planned.plan is None)


def test_compile_leaves_nothing_to_the_first_call() -> None:
    scripted = rekindle.script(lambda x: x.cumsum(0).exp())
    scripted.compile(torch.ones(3))
    version = prepare(scripted._record, (torch.ones(3),))
    planned = version.function
    assert type(planned) is type(Version.of(version.graph.copy(), "compiled").function)
    scripted(torch.ones(3))
    assert version.function is planned


def test_programs_that_were_called_once_are_freed() -> None:
    """Without the garbage collector: nothing refers to a version that it refers to."""
    scripted = rekindle.script(lambda x: x.cumsum(0).exp())
    version = Version.of(scripted.graph.copy(), "freed", defers=True)
    version.function(torch.ones(3))
    known = weakref.ref(version)
    gc.disable()
    try:
        del version
        assert known() is None
    finally:
        gc.enable()


def chosen(x: Tensor, n: int) -> Tensor:
    return x.exp() if n > 1 else x


def repeated(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = x.cumsum(0)
    return x


def calls_repeated(x: Tensor, n: int) -> Tensor:
    return repeated(x, n).exp()


def until_large(x: Tensor, n: int) -> Tensor:
    while bool(x.sum() < n):
        x = x + 1
    return x


def collatz(x: Tensor, n: int) -> Tensor:
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return x + steps


def early(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i > 10:
            return x
    return x + 1


@pytest.mark.parametrize(
    ("function", "n", "is_interpreted"),
    [
        (chosen, 2, True),
        (repeated, 2, True),
        (calls_repeated, 2, True),
        (repeated, 20_000, False),
        (until_large, 2, True),
        (early, 2, True),
        (early, 20_000, False),
        (collatz, 2, False),
    ],
)
def test_first_calls_without_long_loops_are_not_optimized(
    function: Callable[..., Any], n: int, is_interpreted: bool
) -> None:
    forget_strategies()
    scripted = rekindle.script(function)
    x = torch.zeros(3)
    scripted(x, n)
    assert (rekindle.last_executed_graph() is scripted.graph) == is_interpreted
    scripted(x, 2)
    assert rekindle.last_executed_graph() is scripted.graph_for(x, 2)


def test_after_compile_the_first_call_is_optimized() -> None:
    def chosen_later(x: Tensor, n: int) -> Tensor:
        return x.exp() if n > 1 else x

    scripted = rekindle.script(chosen_later)
    x = torch.arange(3.0)
    scripted.compile(x, 2)
    scripted(x, 2)
    assert rekindle.last_executed_graph() is scripted.graph_for(x, 2)


def test_kernels_are_compiled_in_the_third_call() -> None:
    scripted = rekindle.script(lambda x: (x * 2 + 1).exp() - x)
    x = torch.arange(5.0)
    kernels = []
    for _ in range(4):
        scripted(x)
        kernels.append(len(rekindle.report(scripted).kernels))
    assert kernels == [0, 0, 1, 1]


def test_after_a_provisional_version_was_prepared_calls_are_optimized() -> None:
    """Kernels of products are measured in the call after: its version is not the one that was prepared."""
    layer = torch.nn.Linear(4, 4)
    scripted = rekindle.script(layer)
    x = torch.ones(2, 4)
    with torch.no_grad(), rekindle.require_fused():
        torch.testing.assert_close(scripted(x), layer(x))
    assert rekindle.last_executed_graph() is not scripted.graph
    trained = rekindle.script(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4)))
    trained.graph_for(x)
    trained(x)
    assert rekindle.last_executed_graph() is not trained.graph
