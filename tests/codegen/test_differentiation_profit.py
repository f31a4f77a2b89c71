"""Which operators are given a backward graph of their own: those that are fused, in the graph as calls run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import rekindle
from rekindle.codegen.differentiation_profit import LARGE, launches_saved
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph


def groups(program: Callable[..., Any], *arguments: Any) -> list[list[str]]:
    """The operators of each differentiable graph of a call with these arguments."""
    graph: Graph = rekindle.script(program).graph_for(*arguments)
    found = [node.get_graph("Subgraph") for node in graph.all_nodes() if node.kind == "prim::DifferentiableGraph"]
    hidden = ("prim::Constant", "prim::ListConstruct")
    return [[node.kind.removeprefix("aten::") for node in each.nodes if node.kind not in hidden] for each in found]


def chain(x: Tensor) -> Tensor:
    return torch.tanh(torch.sigmoid(x) * 2.0)


def of_three(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return torch.sigmoid(x * y + z)


class Scaled(nn.Module):
    """As torch_geometric's ``MessageNorm``: what fuses is parted by norms, whose order is no constant."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor, message: Tensor, p: float = 2.0) -> Tensor:
        norm = x.norm(p=p, dim=-1, keepdim=True)
        return F.normalize(message, p=p, dim=-1) * norm * self.scale


def test_few_operators_on_small_tensors() -> None:
    small = torch.randn(8, 4, requires_grad=True)
    assert groups(chain, small) == [["sigmoid", "mul", "tanh"]]
    assert groups(of_three, small, small, small) == []
    assert groups(Scaled(), small, small) == []


def of_three_again(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return torch.sigmoid(x * y + z)


def test_few_operators_on_large_tensors() -> None:
    large = torch.randn(LARGE // 4, 4, requires_grad=True)
    assert groups(of_three_again, large, large, large) == [["mul", "add", "sigmoid"]]


def around(x: Tensor) -> Tensor:
    first = torch.special.i1e(x)
    last = torch.sigmoid(torch.tanh(first * 2.0) + 1.0)
    return torch.special.i1e(last)


def test_what_no_kernel_computes_stays_outside() -> None:
    x = torch.randn(8, 4, requires_grad=True)
    assert groups(around, x) == [["mul", "tanh", "add", "sigmoid"]]


def viewed(x: Tensor) -> Tensor:
    part = torch.special.i1e(x.t())
    return torch.sigmoid(torch.tanh(part * 2.0) + 1.0)


def test_views_of_what_stays_outside_do_too() -> None:
    assert groups(viewed, torch.randn(8, 4, requires_grad=True)) == [["mul", "tanh", "add", "sigmoid"]]


def with_noise(x: Tensor) -> Tensor:
    kept = torch.sigmoid(torch.rand_like(x) * x)
    return torch.tanh(kept * torch.bernoulli(x.sigmoid()) + 1.0)


def energy(x: Tensor) -> Tensor:
    return torch.log10(torch.linalg.vector_norm(x, ord=2, dim=[-1]) ** 2) * 10.0


def test_literal_lists_are_in_the_graph() -> None:
    x = torch.randn(8, 4, requires_grad=True)
    graph = rekindle.script(energy).graph_for(x)
    (node,) = [node for node in graph.all_nodes() if node.kind == "prim::DifferentiableGraph"]
    assert [value.type.annotation for value in node.inputs] == ["Tensor"]


@pytest.mark.parametrize("program", [chain, around, viewed, energy, with_noise])
def test_results_and_gradients(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    count = program.__code__.co_argcount
    for _ in range(3):
        given = [torch.randn(8, 4, requires_grad=True) for _ in range(count)]
        found = []
        for each in (program, compiled):
            torch.manual_seed(0)
            result = each(*given)
            found.append((result, *torch.autograd.grad(result.sum(), given, allow_unused=True)))
        for mine, expected in zip(*found, strict=True):
            assert (mine is None) == (expected is None)
            if mine is not None:
                torch.testing.assert_close(mine, expected)


def test_launches_saved() -> None:
    graph = parse_graph(
        """graph(%x : Tensor, %y : Tensor, %0 : int):
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::tanh(%1)
  %3 : Tensor = aten::special_i1e(%2)
  %4 : Tensor = aten::mul(%3, %y)
  %5 : Tensor = aten::relu(%x)
  %6 : Tensor = aten::sigmoid(%4)
  %7 : Tensor = aten::add(%6, %2, %0)
  return (%7, %5)
"""
    )
    nodes = [node for node in graph.nodes if node.kind != "prim::Constant"]
    assert launches_saved(nodes, set(nodes)) == 4
    assert launches_saved(nodes[:4], set(nodes)) == 1
    assert launches_saved(nodes, set()) == 0
