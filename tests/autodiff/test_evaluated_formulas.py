"""Formulas with branches are evaluated for the arguments of each node: None, a tensor, or a constant."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

import rekindle


def without_weight(x: Tensor, weight: None, bias: None) -> Tensor:
    return torch.tanh(torch.group_norm(torch.sigmoid(x), 2, weight, bias)) * torch.sigmoid(x)


def with_weight(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.tanh(torch.group_norm(torch.sigmoid(x), 2, weight, bias)) * torch.sigmoid(x)


def assert_like_eager(function: Callable[..., Tensor], *arguments: Tensor | None) -> None:
    compiled = rekindle.script(function)
    given = [value for value in arguments if value is not None]
    for _ in range(3):
        expected, found = function(*arguments), compiled(*arguments)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found.sum(), given), torch.autograd.grad(expected.sum(), given))


def test_a_formula_that_was_evaluated_for_none_is_not_used_for_a_tensor() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5, requires_grad=True)
    weight, bias = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    assert_like_eager(without_weight, x, None, None)
    assert_like_eager(with_weight, x, weight, bias)
    assert_like_eager(without_weight, x, None, None)
