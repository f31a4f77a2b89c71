"""Writes that become functional operators, and those that autograd must see as writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle

CALLS = 4


def under_no_grad(x: Tensor) -> Tensor:
    y = x * 2
    with torch.no_grad():
        y.relu_()
    return y * 3 + x


def by_a_flag(x: Tensor) -> Tensor:
    y = x * 2
    with torch.set_grad_enabled(y.dim() > 3):
        y = F.leaky_relu(y, 0.5, inplace=True)
    return y * 3 + x


def in_a_loop(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for row in [x, x * x]:
        y = row * 2
        with torch.no_grad():
            y.floor_()
        total = total + y
    return total


def with_gradients_alone(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
    with torch.enable_grad():
        y.relu_()
    return y * 3 + x


class Activated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        with torch.no_grad():
            self.activation(y)
        return y * 3 + x


@pytest.mark.parametrize("program", [under_no_grad, by_a_flag, in_a_loop, with_gradients_alone, Activated()])
def test_writes_under_another_mode(program: Callable[[Tensor], Tensor]) -> None:
    """A write under ``no_grad`` leaves the gradient of the tensor as it is; a new tensor would have none."""
    compiled = rekindle.script(program)
    for _ in range(CALLS):
        found = []
        for each in (program, compiled):
            x = torch.tensor([-1.0, 0.3, 2.0], requires_grad=True)
            y = each(x)
            found.append((y, *torch.autograd.grad(y.sum(), x)))
        torch.testing.assert_close(found[1], found[0])


def in_one_mode(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
        y.relu_()
    return y


def test_writes_under_the_same_mode_are_removed() -> None:
    compiled = rekindle.script(in_one_mode)
    for _ in range(CALLS):
        compiled(torch.ones(3))
    kinds = {node.kind for node in rekindle.last_executed_graph().all_nodes_with_subgraphs()}
    assert "aten::relu_" not in kinds
