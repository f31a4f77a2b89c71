"""Layers whose formulas use operators that require more than the layers do, as training under a strategy meets
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from rekindle.autodiff.create_differentiable_graphs import CreateDifferentiableGraphs
from rekindle.autodiff.differentiable_graph import DifferentiableOperation
from tests.autodiff.graphs import graph_of


def groups(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.group_norm(x, 2, weight, bias)


def evaluated(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.batch_norm(x, weight, bias, weight.detach(), weight.detach() + 1, False, 0.1, 1e-5, False)


def trained(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5, False)


def outcome(function: Callable[..., Any], values: list[Tensor]) -> list[Tensor]:
    inputs = [value.detach().requires_grad_() for value in values]
    result = function(*inputs)
    weights = torch.arange(result.numel(), dtype=torch.float32).reshape(result.shape)
    return [result.detach(), *torch.autograd.grad((result * weights).sum(), inputs)]


def test_weights_with_gaps_in_a_group_norm() -> None:
    values = [torch.randn(2, 6, 3), torch.randn(6, 2)[:, 0], torch.randn(12)[::2]]
    torch.testing.assert_close(outcome(DifferentiableOperation(graph_of(groups)), values), outcome(groups, values))


@pytest.mark.parametrize("size", [(2, 4, 5, 3), (2, 4, 5, 3, 2), (2, 4, 1, 1), (2, 4, 3)])
@pytest.mark.parametrize("order", ["contiguous", "channels last", "part of channels last", "transposed"])
def test_group_norm_keeps_the_order_of_memory(size: tuple[int, ...], order: str) -> None:
    """Its result and gradients have the strides of eager's."""
    x = torch.randn(size)
    if order in ("channels last", "part of channels last") and len(size) > 3:
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        x = x.contiguous(memory_format=formats[len(size)])
    if order == "part of channels last":
        x = torch.cat([x, x], 2)[:, :, : size[2]]
    if order == "transposed":
        x = x.transpose(0, -1).contiguous().transpose(0, -1)
    values = [x, torch.randn(4), torch.randn(4)]
    found, expected = (outcome(each, values) for each in (DifferentiableOperation(graph_of(groups)), groups))
    torch.testing.assert_close(found, expected, check_stride=True)


@pytest.mark.parametrize("program", [evaluated, trained])
@pytest.mark.parametrize("size", [(0, 3), (0, 3, 4), (2, 3, 0), (2, 0)])
def test_batch_norm_of_nothing(program: Callable[..., Any], size: tuple[int, ...]) -> None:
    values = [torch.randn(size), torch.rand(3), torch.rand(3)]
    found = outcome(DifferentiableOperation(graph_of(program)), values)
    torch.testing.assert_close(found, outcome(program, values))


DROPOUTS = [torch.dropout, torch.feature_dropout, torch.alpha_dropout, torch.feature_alpha_dropout]


@pytest.mark.parametrize("operator", DROPOUTS, ids=lambda operator: operator.__name__)
def test_a_dropout_that_may_give_its_argument_back_stays_outside(operator: Any) -> None:
    def returned(x: Tensor, p: float, train: bool) -> Tensor:
        return operator(x * x * x, p, train)

    def read(x: Tensor, p: float, train: bool) -> Tensor:
        return operator(x * x * x, p, train) * x

    def drops(x: Tensor, p: float, train: bool) -> Tensor:
        return operator(x * x * x, 0.5, True)

    within = []
    for program in (returned, read, drops):
        graph = graph_of(program)
        assert CreateDifferentiableGraphs(threshold=2).run(graph)
        within.append(all("dropout" not in node.kind for node in graph.nodes))
    assert within == [False, True, True]
