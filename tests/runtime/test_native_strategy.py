"""Groups of operators as machine code, and graphs with a backward of their own, in the calls of a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import rekindle
from rekindle.codegen.fusion_executor import FusionExecutor, group_of
from rekindle.ir.graph import Graph


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    before = rekindle.set_execution_strategy("native")
    yield
    rekindle.set_execution_strategy(before)


def cell(x, h, c, w, u, b):
    i, f, o, n = (x @ w + h @ u + b).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * n.tanh()
    return o.sigmoid() * c.tanh(), c


def arguments(hidden: int = 8, *, seed: int = 0, requires_grad: bool = False) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [*[(2, hidden)] * 3, *[(hidden, 4 * hidden)] * 2, (4 * hidden,)]
    return [torch.randn(shape, generator=generator).requires_grad_(requires_grad) for shape in shapes]


def chain(x):
    return (x * 2.0 + 1.0).relu() - x


def chain_in_a_loop(x, times: int):
    for _ in range(times):
        x = (x * 0.5 + 1.0).relu() - x
    return x


def groups_of(graph: Graph) -> list[FusionExecutor]:
    found = [group_of(node.get_graph("Subgraph")) for node in graph.all_nodes() if node.kind == "prim::FusionGroup"]
    assert all(group is not None for group in found)
    return found  # type: ignore[return-value]


def kinds(graph: Graph) -> set[str]:
    return {node.kind for node in graph.all_nodes()}


def gradients(function: Any, given: list[torch.Tensor]) -> list[torch.Tensor]:
    h, c = function(*given)
    return list(torch.autograd.grad(h.sum() + (c * c).sum(), given))


def test_pointwise_operators_run_as_one_group() -> None:
    function = rekindle.script(cell)
    with torch.no_grad():
        assert kinds(function.graph_for(*arguments())) == {"prim::FusionGroup", "prim::TupleConstruct"}
        for seed in range(4):
            given = arguments(seed=seed)
            torch.testing.assert_close(function(*given), cell(*given))


def test_calls_that_record_gradients_have_versions_of_their_own() -> None:
    function = rekindle.script(cell)
    given = arguments(requires_grad=True)
    assert "prim::DifferentiableGraph" in kinds(function.graph_for(*given))
    with torch.no_grad():
        assert "prim::DifferentiableGraph" not in kinds(function.graph_for(*given))
        torch.testing.assert_close(function(*given), cell(*given))
    for seed in range(4):
        given = arguments(seed=seed, requires_grad=True)
        torch.testing.assert_close(function(*given), cell(*given))
        torch.testing.assert_close(gradients(function, given), gradients(cell, given))


def test_second_derivatives() -> None:
    function = rekindle.script(cell)

    def curvature(f: Any) -> list[torch.Tensor]:
        given = arguments(4, requires_grad=True)
        h, _ = f(*given)
        first = torch.autograd.grad(h.sum(), given, create_graph=True)
        return list(torch.autograd.grad(sum((each * each).sum() for each in first), given))

    torch.testing.assert_close(curvature(function), curvature(cell))


def test_other_sizes_dtypes_and_strides() -> None:
    function = rekindle.script(cell)
    for change in (
        lambda each: each.double(),
        lambda each: each.bfloat16(),
        lambda each: each.t().contiguous().t(),
        lambda each: each[:0] if each.dim() == 2 and len(each) == 2 else each,
    ):
        for hidden in (4, 16):
            given = [change(each) for each in arguments(hidden)]
            with torch.no_grad():
                found, expected = function(*given), cell(*given)
            torch.testing.assert_close(found, expected)
            assert [each.stride() for each in found] == [each.stride() for each in expected]


@torch.no_grad()
def test_kernels_are_made_when_they_pay() -> None:
    """In the third call, or at once where there is much to do; within a loop, when much has been done."""

    def small(x):
        return (x - 2.0).relu() * x

    function, x, made = rekindle.script(small), torch.randn(100), []
    for _ in range(4):
        torch.testing.assert_close(function(x), small(x))
        (group,) = groups_of(function.graph_for(x))
        made.append((len(group.recipes), group.is_waiting))
    assert made == [(0, True), (0, True), (1, False), (1, False)]

    large = rekindle.script(chain)
    x = torch.randn(3_000_000)
    torch.testing.assert_close(large(x), chain(x))
    assert [len(group.recipes) for group in groups_of(large.graph_for(x))] == [1]

    loop = rekindle.script(chain_in_a_loop)
    x, made = torch.randn(100), []
    for times in (3, 100, 1000):
        loop(x, times)
        made += [len(group.recipes) for group in groups_of(loop.graph_for(x, times))]
    assert made == [0, 0, 1]


@torch.no_grad()
def test_sizes_that_shrink() -> None:
    def halve(x):
        total = torch.zeros(())
        while x.numel() > 0:
            total = total + (x * 2.0 + 1.0).abs().sum()
            x = x[1:]
        return total

    function = rekindle.script(halve)
    x = torch.randn(300)
    for _ in range(5):
        torch.testing.assert_close(function(x), halve(x))
    assert all(len(group.recipes) <= 3 for group in groups_of(function.graph_for(x)))


def test_short_graphs_are_left_to_autograd() -> None:
    """What is not worth a backward graph of its own runs operator by operator where gradients are recorded."""

    def short(x, w):
        return (x @ w).relu() * 2.0

    function = rekindle.script(short)
    x, w = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3)
    assert kinds(function.graph_for(x, w)) == {"prim::FusionGroup"}
    (group,) = groups_of(function.graph_for(x, w))
    for _ in range(50):
        torch.testing.assert_close(
            torch.autograd.grad(function(x, w).sum(), x), torch.autograd.grad(short(x, w).sum(), x)
        )
    assert group.has_given_up
    assert sum(group.fallbacks.values()) < 50  # the operators have taken the place of the group
    assert not function(x.detach(), w).requires_grad


def test_calls_without_gradients_share_versions() -> None:
    """There is nothing to differentiate in a loop over numbers, nor for tensors that require no gradient."""

    def total(n: int) -> int:
        found = 0
        for i in range(n):
            found += i
        return found

    function = rekindle.script(total)
    with torch.no_grad():
        assert function(10) == 45
    assert function(10) == 45
    assert len(function.get_debug_state().execution_plans) == 1
    function = rekindle.script(chain)
    with torch.no_grad():
        without = function.graph_for(torch.ones(3))
    assert function.graph_for(torch.ones(3)) is without
    assert function.graph_for(torch.ones(3, requires_grad=True)) is not without


def _first(tensors: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(tensors[0] * 2.0 + 1.0) * x


def test_what_holds_tensors_may_hold_some_that_require_grad() -> None:
    compiled, x = rekindle.script(_first), torch.randn(3)
    held = torch.randn(3, requires_grad=True)
    for given in ([held], [x], [held]):
        result = compiled(given, x)
        assert result.requires_grad == given[0].requires_grad
        torch.testing.assert_close(result, _first(given, x))
        with torch.no_grad():
            assert not compiled(given, x).requires_grad
    (gradient,) = torch.autograd.grad(compiled([held], x).sum(), held)
    (expected,) = torch.autograd.grad(_first([held], x).sum(), held)
    torch.testing.assert_close(gradient, expected)
