"""Groups of operators as machine code, and graphs with a backward of their own, in the calls of a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import rekindle
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


def kinds(graph: Graph) -> set[str]:
    return {node.kind for node in graph.all_nodes()}


def gradients(function: Any, given: list[torch.Tensor]) -> list[torch.Tensor]:
    h, c = function(*given)
    return list(torch.autograd.grad(h.sum() + (c * c).sum(), given))


def test_pointwise_operators_run_as_one_group() -> None:
    function = rekindle.script(cell)
    with torch.no_grad():
        assert kinds(function.graph_for(*arguments())) == {
            "aten::matmul",
            "prim::FusionGroup",
            "prim::TupleConstruct",
        }
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
