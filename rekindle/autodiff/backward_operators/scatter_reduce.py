"""Backward of scatter reductions: sum, mean, product, extremum."""

from __future__ import annotations

import torch
from torch import Tensor

from rekindle.ops.registration.declare import implements


@implements(
    "autodiff::scatter_reduce_back(Tensor grad, Tensor self, int dim, Tensor index, Tensor src, str reduce,"
    " bool include_self, Tensor result) -> (Tensor, Tensor)"
)
def scatter_reduce_back(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``scatter_reduce``."""
    if src.shape != index.shape:  # what lies beyond the index is not used
        inner = tuple([slice(length) for length in index.shape])
        of_self, of_src = scatter_reduce_back(grad, self, dim, index, src[inner], reduce, include_self, result)
        return of_self, torch.zeros_like(src).index_put(
            torch.meshgrid(*[torch.arange(length) for length in index.shape], indexing="ij"), of_src
        )
    if reduce == "sum":
        of_self, of_src = grad, grad.gather(dim, index)
    elif reduce == "mean":
        count = torch.ones_like(grad) if include_self else torch.zeros_like(grad)
        shared = grad / count.scatter_add(dim, index, torch.ones_like(src)).clamp_min(1)
        of_self, of_src = shared, shared.gather(dim, index)
    elif reduce in ("amax", "amin"):
        own = (self == result).to(grad.dtype)
        theirs = (src == result.gather(dim, index)).to(grad.dtype)
        count = own if include_self else own.scatter(dim, index, 0)
        shared = grad / count.scatter_add(dim, index, theirs)
        of_self, of_src = own * shared, theirs * shared.gather(dim, index)
    else:
        of_self, of_src = _of_product(grad, self, dim, index, src, include_self, result)
    return of_self if include_self else of_self.scatter(dim, index, 0), of_src


def _of_product(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradient of a product by each factor, the product of the others: also if it is the only one that is
    zero."""
    start = self if include_self else torch.ones_like(self).where(_named(self, dim, index), self)
    others = torch.ones_like(self).scatter_reduce(dim, index, src, "prod", include_self=True)
    zero = src == 0
    zeros = torch.zeros_like(grad).scatter_add(dim, index, zero.to(grad.dtype)).gather(dim, index)
    alone = zero & (zeros == 1)
    without = start.scatter_reduce(dim, index, src.masked_fill(alone, 1), "prod", include_self=True)
    of_zero = (grad * without).gather(dim, index)
    of_rest = (grad * result).gather(dim, index) / src.masked_fill(zero, 1)
    return grad * others, torch.where(alone, of_zero, of_rest)


def _named(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return a bool tensor like ``self`` that is true for the elements at ``index``."""
    return torch.zeros_like(self, dtype=torch.bool).scatter(dim, index, True)


@implements(
    "autodiff::index_reduce_back(Tensor grad, Tensor self, int dim, Tensor index, Tensor source, str reduce,"
    " bool include_self, Tensor result) -> (Tensor, Tensor)"
)
def index_reduce_back(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``index_reduce``, which names whole slices."""
    if self.dim() == 0:
        own = [value.reshape(1) for value in (grad, self, index, source, result)]
        grad, flat, index, source_row, result = own
        found = scatter_reduce_back(grad, flat, 0, index, source_row, reduce, include_self, result)
        return found[0].reshape(()), found[1].reshape(source.shape)
    sizes = [1] * self.dim()
    sizes[dim] = -1
    spread = index.reshape(sizes).expand(source.shape)
    return scatter_reduce_back(grad, self, dim, spread, source, reduce, include_self, result)
