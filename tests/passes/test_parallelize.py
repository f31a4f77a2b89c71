"""Parts that run beside each other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.ir.graph import Graph
from rekindle.ir.types import TensorType
from rekindle.passes import Parallelize, PassManager
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState


def towers(x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    u = torch.relu(torch.relu(x.mm(a)).mm(a))
    v = torch.tanh(torch.tanh(x.mm(b)).mm(b))
    return u * v, u.mm(a) - v.mm(b)


def joined(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.tanh(x.mm(a).mm(a)) - torch.relu(x.mm(b))


def graph_of(function: Any, *inputs: Tensor, least: int) -> Graph:
    graph = rekindle.script(function).graph.copy()
    for value, tensor in zip(graph.inputs, inputs, strict=True):
        value.set_type(TensorType.of(tensor))
    refine_types(graph, propagate_types(graph, [value.type for value in graph.inputs]))
    PassManager().run(graph, [Parallelize(least)])
    return graph


def run(graph: Graph, *inputs: Tensor) -> Any:
    return InterpreterState(Code(graph, "f")).run(inputs)


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(8, 16), torch.randn(16, 16), torch.randn(16, 16)


@pytest.mark.parametrize("function", [towers, joined])
def test_answers(function: Any, inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    graph = graph_of(function, *inputs, least=1)
    assert graph.find_nodes("prim::fork")
    for _ in range(3):
        torch.testing.assert_close(run(graph, *inputs), function(*inputs))


def test_gradients(inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    inputs = tuple(each.requires_grad_() for each in inputs)  # type: ignore[assignment]
    graph = graph_of(joined, *inputs, least=1)
    found = torch.autograd.grad(run(graph, *inputs).sum(), inputs)
    torch.testing.assert_close(found, torch.autograd.grad(joined(*inputs).sum(), inputs))


def test_an_error_comes_through(inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    graph = graph_of(joined, *inputs, least=1)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        run(graph, inputs[0], inputs[1], torch.randn(3, 3))


@pytest.mark.parametrize(("least", "forks"), [(1, 1), (2 * 8 * 16 * 16, 1), (2 * 8 * 16 * 16 + 1, 0)])
def test_only_what_is_heavy_enough(least: int, forks: int, inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    """The lighter of the two parts is one product of 8 by 16 and 16 by 16 numbers."""
    assert len(graph_of(joined, *inputs, least=least).find_nodes("prim::fork")) == forks


def test_products_whose_storage_is_addressed_are_not_joined() -> None:
    def reads(x: list[Tensor], w: Tensor) -> Tensor:
        a, b, c, d = x[0].mm(w), x[1].mm(w), x[2].mm(w), x[3].mm(w)
        return torch.as_strided_copy(b, [4], [1], 0) + (a + b + c + d).sum()

    x, w = [torch.full((2, 256), float(n)) for n in range(4)], torch.ones(256, 8)
    run = rekindle.script(reads)
    for _ in range(3):
        torch.testing.assert_close(run(x, w), reads(x, w))
