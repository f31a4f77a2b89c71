"""Gradients for each example of a batch: ``vmap`` of ``grad``, beside torch.func."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import rekindle


def regression(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return F.mse_loss((x @ w).tanh(), y)


def mlp(w1: Tensor, b1: Tensor, w2: Tensor, x: Tensor, y: Tensor) -> Tensor:
    hidden = F.linear(x, w1, b1).relu()
    return F.cross_entropy(F.linear(hidden, w2), y)


def cnn(k: Tensor, b: Tensor, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    hidden = F.conv2d(x, k, b, stride=2, padding=1).relu()
    return F.cross_entropy((hidden.flatten() @ w).unsqueeze(0), y.unsqueeze(0))


CASES = {
    "regression": (regression, 1, [(3, 2)], (3,), (2,)),
    "mlp": (mlp, 3, [(6, 4), (6,), (5, 6)], (4,), None),
    "cnn": (cnn, 3, [(3, 2, 3, 3), (3,), (3 * 3 * 3, 5)], (2, 6, 6), None),
}


@pytest.mark.parametrize("name", CASES)
def test_they_are_those_of_torch_func_and_by_rules_alone(name: str) -> None:
    function, count, shapes, example, target = CASES[name]
    torch.manual_seed(0)
    weights = [torch.randn(shape) for shape in shapes]
    x = torch.randn(7, *example)
    y = torch.randint(0, 5, (7,)) if target is None else torch.randn(7, *target)
    wanted = tuple(range(count)) if count > 1 else 0
    dims = (*(None for _ in weights), 0, 0)
    per_example = rekindle.vmap(rekindle.grad(function, wanted), dims)
    expected = torch.func.vmap(torch.func.grad(function, wanted), dims)(*weights, x, y)
    torch.testing.assert_close(per_example(*weights, x, y), expected)
    assert per_example.report.whole_loop is None
    assert not per_example.report.looped, str(per_example.report)


def test_the_gradient_of_a_batched_function() -> None:
    def total(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return rekindle_batched(w, x, y).sum()

    rekindle_batched = rekindle.vmap(regression, (None, 0, 0))
    torch.manual_seed(0)
    w, x, y = torch.randn(3, 2), torch.randn(7, 3), torch.randn(7, 2)
    expected = torch.func.grad(lambda w: torch.func.vmap(regression, (None, 0, 0))(w, x, y).sum())(w)
    torch.testing.assert_close(rekindle.grad(total)(w, x, y), expected)
