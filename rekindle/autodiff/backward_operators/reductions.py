"""Backward of reductions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rekindle.autodiff.backward_operators.sizes import Sizes
from rekindle.ops.registration.declare import implements


def _axes(rank: int, dim: int | Sizes | None) -> list[int]:
    """Return the dimensions of a reduction as non-negative ints; all dimensions if ``dim`` is None or empty."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(rank))
    named = [dim] if isinstance(dim, int) else dim
    return [] if rank == 0 else [axis % rank for axis in named]


@implements(
    "autodiff::unreduced(Tensor(a) grad, int[] size, int[]? dim, bool keepdim) -> Tensor(a)",
)
def unreduced(grad: Tensor, size: Sizes, dim: Sizes | None, keepdim: bool) -> Tensor:
    """Return the result of a reduction over ``dim``, or its gradient, expanded to the ``size`` of the input."""
    if not keepdim:
        for axis in sorted(_axes(len(size), dim)):
            grad = grad.unsqueeze(axis)
    return grad.expand(size)


@implements("autodiff::summed(Tensor self, int[]? dim) -> Tensor")
def summed(self: Tensor, dim: Sizes | None) -> Tensor:
    """Return the sum over ``dim``, which remains as a dimension of length 1."""
    return self.sum(_axes(self.dim(), dim), keepdim=True)


@implements("autodiff::mean_over(Tensor self, int[]? dim) -> Tensor")
def mean_over(self: Tensor, dim: Sizes | None) -> Tensor:
    """Return the mean over ``dim``, which remains as a dimension of length 1."""
    return self.mean(_axes(self.dim(), dim), keepdim=True)


@implements("autodiff::variance_factor(Tensor self, int[]? dim, Scalar? correction) -> float")
def variance_factor(self: Tensor, dim: Sizes | None, correction: float | None) -> float:
    """Return the factor in the gradient of a variance: 2 divided by the number of degrees of freedom; NaN if there are
    none, and infinity for a negative number."""
    count = math.prod(self.shape[axis] for axis in _axes(self.dim(), dim))
    freedom = count - (1 if correction is None else correction)
    return 2 / freedom if freedom > 0 else math.nan if freedom == 0 else math.inf


@implements("autodiff::first_equal(Tensor grad, Tensor self, Tensor result) -> Tensor")
def first_equal(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """Return the gradient of a median: shared among all elements that are equal to it, or all that are NaN if it is."""
    equal = self.isnan() if bool(result.isnan()) else self == result
    return grad * equal / equal.sum()


@implements("autodiff::product_back(Tensor grad, Tensor self, int? dim, bool keepdim) -> Tensor")
def product_back(grad: Tensor, self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """Return the gradient of a product by each factor: the product of the other factors, computed without a
    division."""
    if self.dim() == 0:
        return grad
    flat = self.reshape(-1) if dim is None else self
    axis = 0 if dim is None else dim
    if dim is not None and not keepdim:
        grad = grad.unsqueeze(axis)
    length = flat.shape[axis]
    if length == 0:
        return torch.zeros_like(self)
    ones = torch.ones_like(flat.narrow(axis, 0, 1))
    before = torch.cat([ones, flat.narrow(axis, 0, length - 1)], axis).cumprod(axis)
    behind = torch.cat([ones, flat.flip([axis]).narrow(axis, 0, length - 1)], axis).cumprod(axis).flip([axis])
    return (grad * (before * behind)).reshape(self.shape)


@implements(
    "autodiff::norm_back(Tensor grad, Tensor self, Scalar? p, Tensor result, int[]? dim, bool keepdim) -> Tensor"
)
def norm_back(grad: Tensor, self: Tensor, p: float | None, result: Tensor, dim: Sizes | None, keepdim: bool) -> Tensor:
    """Return the gradient of a norm of vectors. If the norm is not differentiable, it is the subgradient of the least
    norm."""
    order = 2.0 if p is None else float(p)
    back = unreduced(grad, self.shape, dim, keepdim)
    norm = unreduced(result, self.shape, dim, keepdim)
    if order == 0:
        return torch.zeros_like(self)
    if order == 1:
        return back * self.sgn()
    if order == 2:
        return back * (self / norm).masked_fill_(norm == 0, 0)
    if math.isinf(order):
        equal = torch.logical_or(self.abs() == norm, self.isnan())
        return back * self.sgn() * equal / equal.sum(_axes(self.dim(), dim), keepdim=True)
    if order < 1:
        powered = (self.sgn() * self.abs().pow(order - 1)).masked_fill(self == 0, 0)
        return back * powered * norm.pow(1 - order)
    if order < 2:
        powered = self.sgn() * self.abs().pow(order - 1)
        return back * powered * norm.pow(1 - order).masked_fill(norm == 0, 0)
    powered = self * self.abs().pow(order - 2)
    return back * powered * norm.pow(1 - order).masked_fill(norm == 0, 0)


@implements(
    "autodiff::extremes_back(Tensor? least, Tensor? greatest, Tensor self, int? dim, bool keepdim, Tensor min,"
    " Tensor max) -> Tensor"
)
def extremes_back(
    least: Tensor | None,
    greatest: Tensor | None,
    self: Tensor,
    dim: int | None,
    keepdim: bool,
    min: Tensor,
    max: Tensor,
) -> Tensor:
    """Return the gradient of ``aminmax``, divided equally among the elements that equal the minimum or the maximum."""
    found = torch.zeros_like(self)
    axes = None if dim is None else [dim]
    for gradient, value in ((least, min), (greatest, max)):
        if gradient is not None:
            equal = self == unreduced(value, self.shape, axes, keepdim)
            found = found + unreduced(gradient, self.shape, axes, keepdim) * equal / summed(equal, axes)
    return found


@implements("autodiff::logcumsumexp_back(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor")
def logcumsumexp_back(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the gradient of ``logcumsumexp``. It is computed separately for positive and negative parts, so that
    nothing overflows."""
    if self.dim() == 0:
        return grad

    least = torch.finfo(grad.dtype).min
    logs = grad.abs().log()

    def part(own: Tensor) -> Tensor:
        rest = torch.where(own, logs, torch.full_like(logs, least)) - result
        return (rest.flip([dim]).logcumsumexp(dim).flip([dim]) + self).exp()

    return part(grad > 0) - part(grad < 0)
