"""Derivatives at values where formulas divide zero by zero: NaN, no elements, results of which only some are used."""

from __future__ import annotations

import math
from typing import Optional

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

import rekindle


def greatest(x: Tensor) -> Tensor:
    return x.max()


def least(x: Tensor) -> Tensor:
    return x.min()


@pytest.mark.parametrize("function", [greatest, least])
@pytest.mark.parametrize("values", [[1.0, math.nan, 2.0, math.nan], [1.0, 2.0, 2.0, 1.0], [math.inf, 0.0]])
def test_extremes_share_the_gradient_among_nans(function, values) -> None:
    x = torch.tensor(values, requires_grad=True)
    assert torch.equal(rekindle.grad(function)(x.detach()), *torch.autograd.grad(function(x), x))


def greatest_of_rows(x: Tensor) -> Tensor:
    return (x.exp() * x).amax([1]).tanh() * 2


def least_of_columns(x: Tensor) -> Tensor:
    return (x.exp() * x).amin(0).tanh() * 2


def largest_magnitude(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x.exp() * x, float("inf")).tanh() * 2


def greatest_of_sines(x: Tensor) -> Tensor:
    return (x.exp().sin() / 3).max().tanh() * 2


def least_of_all(x: Tensor) -> Tensor:
    return (x.exp() * x).aminmax()[0].tanh() * 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "function", [greatest_of_rows, least_of_columns, largest_magnitude, greatest_of_sines, least_of_all]
)
def test_extremes_of_computed_values(function, dtype: torch.dtype) -> None:
    """If the values were computed again, another kernel might round them differently, and none would be the extreme."""
    scripted = rekindle.script(function)
    for call in range(8):
        generator = torch.Generator().manual_seed(call)
        x = torch.randn((33, 17), dtype=dtype, generator=generator).mul_(0.3).requires_grad_()
        found = []
        for each in (scripted, function):
            (first,) = torch.autograd.grad((each(x) ** 2).sum(), x, create_graph=True)
            found.append((first, *torch.autograd.grad((first * first).sum(), x)))
        torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)


def first_of_unbind(x: Tensor) -> Tensor:
    return x.unbind()[0] * 2


def first_of_chunks(x: Tensor) -> Tensor:
    return x.chunk(2)[0] * x.sum()


def last_of_split(x: Tensor) -> Tensor:
    return x.split([1, 2])[1].exp()


def inverse(x: Tensor) -> Tensor:
    return torch.linalg.inv(x)


def product(x: Tensor) -> Tensor:
    return x @ x.t() @ x


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (first_of_unbind, (3,)),
        (first_of_chunks, (3, 2)),
        (last_of_split, (3,)),
        (inverse, (0, 0)),
        (product, (0, 0)),
        (product, (2, 0)),
        (product, (0, 2)),
    ],
)
def test_tangents(function, sizes) -> None:
    x = torch.arange(1.0, 1 + math.prod(sizes)).reshape(sizes)
    tangent = torch.cos(x)
    with forward_ad.dual_level():
        expected = forward_ad.unpack_dual(function(forward_ad.make_dual(x, tangent)))
    value, found = rekindle.jvp(function, (0,))(x, (tangent,))
    assert torch.equal(value, expected.primal)
    assert torch.allclose(found, expected.tangent)
    assert found.shape == expected.tangent.shape


def deviation(x: Tensor) -> Tensor:
    return x.clamp(-1, 1).std()


def angle(x: Tensor) -> Tensor:
    return torch.atan2(x - 2, x - 2).sum()


def power(x: Tensor) -> Tensor:
    return torch.pow(x - 2, x - 2).sum()


@pytest.mark.parametrize("function", [deviation, angle, power])
def test_zero_where_a_quotient_of_zeros_is_left_out(function) -> None:
    x = torch.full((3,), 2.0, requires_grad=True)
    expected = torch.autograd.grad(function(x), x)[0]
    x = x.detach()
    assert torch.equal(expected, torch.zeros(3))
    assert torch.equal(rekindle.grad(function)(x), expected)
    assert torch.equal(rekindle.jvp(function)(x, torch.tensor([1.0, 2.0, 4.0]))[1], torch.tensor(0.0))


@pytest.mark.parametrize(("least", "greatest"), [(0.5, 1.0), (math.nan, None), (None, math.nan), (-math.inf, 1.0)])
def test_nothing_passes_a_limit_that_is_not_a_number(least: Optional[float], greatest: Optional[float]) -> None:
    def limited(x: Tensor) -> Tensor:
        return x.clamp(least, greatest)

    values = torch.tensor([0.1, 1.5, math.nan, math.inf, 1.0])
    x = values.clone().requires_grad_()
    (expected,) = torch.autograd.grad(limited(x).sum(), x)
    assert torch.equal(rekindle.grad(lambda x: limited(x).sum())(values), expected)
    assert torch.equal(rekindle.jvp(limited, (0,))(values, (torch.ones(5),))[1], expected)


def between(x: Tensor, least: Tensor, greatest: Tensor) -> Tensor:
    return x.clamp(least, greatest)


def not_below(x: Tensor, least: Tensor, greatest: Tensor) -> Tensor:
    return x.clamp(min=least) + torch.clamp_min(x, least) * 2


def not_above(x: Tensor, least: Tensor, greatest: Tensor) -> Tensor:
    return x.clamp(max=greatest) + torch.clamp_max(x, greatest) * 2


@pytest.mark.parametrize("function", [between, not_below, not_above])
@pytest.mark.parametrize("least", [0.0, 1.0, math.nan])
@pytest.mark.parametrize("greatest", [0.0, 1.0, math.nan])
def test_gradients_at_limits_that_are_tensors(function, least: float, greatest: float) -> None:
    """Releases of PyTorch differ in how an element and the limit that it equals share the gradient."""
    values = [torch.tensor([-2.0, 0.0, 0.5, 1.0, 3.0, math.nan]), torch.full((6,), least), torch.full((6,), greatest)]
    given = [each.requires_grad_() for each in values]
    expected = torch.autograd.grad(function(*given).sum(), given, allow_unused=True, materialize_grads=True)
    detached = [each.detach() for each in given]
    found = rekindle.vjp(function, argnums=(0, 1, 2))(*detached, torch.ones(6))[1]
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def squares_of_no_floats(x: Tensor, weight: Tensor) -> Tensor:
    return (x.square() + x.square()) * weight


@pytest.mark.parametrize("x", [torch.tensor([True, False]), torch.tensor([3, -2]), torch.tensor([1.5 + 2j])])
def test_squares_beside_what_has_a_gradient(x: Tensor) -> None:
    compiled = rekindle.script(squares_of_no_floats)
    weight = torch.tensor(0.5, requires_grad=True)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, weight), squares_of_no_floats(x, weight))
