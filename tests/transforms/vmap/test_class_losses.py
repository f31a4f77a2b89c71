"""The loss of classes, and its gradient, for each example: with ignored classes, weights and every reduction."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import rekindle

IGNORED = -100


def forward(x: Tensor, target: Tensor, weight: Tensor, reduction: int):
    return torch.ops.aten.nll_loss_forward(x, target, weight, reduction, -100)


def backward(grad: Tensor, x: Tensor, target: Tensor, weight: Tensor, reduction: int, total: Tensor):
    return torch.ops.aten.nll_loss_backward(grad, x, target, weight, reduction, -100, total)


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("sizes", [(3, 4, 5), (3, 5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_those_of_each_example(reduction: int, sizes: tuple[int, ...], weighted: bool) -> None:
    torch.manual_seed(0)
    weight = torch.rand(5) if weighted else torch.ones(5)
    x, target = torch.randn(sizes).log_softmax(-1), torch.randint(0, 5, sizes[:-1])
    target[1] = IGNORED  # an example of which all are ignored
    if len(sizes) == 3:
        target[0, 0] = IGNORED
    pairs = list(zip(x, target, strict=True))
    expected = [torch.ops.aten.nll_loss_forward(a, b, weight, reduction, IGNORED) for a, b in pairs]
    loss, total = rekindle.vmap(forward, in_dims=(0, 0, None, None))(x, target, weight, reduction)
    torch.testing.assert_close(loss, torch.stack([each[0] for each in expected]), equal_nan=True)
    if reduction:
        torch.testing.assert_close(total, torch.stack([each[1] for each in expected]))
    grad = torch.randn_like(loss)
    found = rekindle.vmap(backward, in_dims=(0, 0, 0, None, None, 0))(grad, x, target, weight, reduction, total)
    wanted = [
        torch.ops.aten.nll_loss_backward(g, a, b, weight, reduction, IGNORED, each[1])
        for g, (a, b), each in zip(grad, pairs, expected, strict=True)
    ]
    torch.testing.assert_close(found, torch.stack(wanted), equal_nan=True)
