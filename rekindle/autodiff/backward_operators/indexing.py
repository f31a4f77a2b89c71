"""Backward of operators that gather and scatter elements."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rekindle.autodiff.backward_operators.sizes import Sizes, sum_to
from rekindle.ops.registration.declare import implements


@implements("autodiff::slice_back(Tensor grad, int[] size, int dim, int? start, int? end, int step) -> Tensor")
def slice_back(grad: Tensor, size: Sizes, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """Return the gradient of the sliced tensor, which has ``size``: zeros outside of the slice."""
    last = 2**63 - 1 if end is None else end
    found: Tensor = torch.ops.aten.slice_backward(grad, size, dim, 0 if start is None else start, last, step)
    return found


@implements("autodiff::narrow_back(Tensor grad, int[] size, int dim, int start, int length) -> Tensor")
def narrow_back(grad: Tensor, size: Sizes, dim: int, start: int, length: int) -> Tensor:
    """Return the gradient of the tensor that was narrowed, which has ``size``: zeros outside of the part."""
    first = start if start >= 0 else start + size[dim]
    found: Tensor = torch.ops.aten.slice_backward(grad, size, dim, first, first + length, 1)
    return found


Indices = Sequence["Tensor | None"]


@implements("autodiff::index_back(Tensor grad, int[] size, Tensor?[] indices) -> Tensor")
def index_back(grad: Tensor, size: Sizes, indices: Indices) -> Tensor:
    """Return the gradient of a tensor that was indexed, which has ``size``: zeros but at ``indices``."""
    found: Tensor = torch.ops.aten.index_put(grad.new_zeros(size), list(indices), grad, True)
    return found


@implements("autodiff::put_zero(Tensor grad, Tensor?[] indices) -> Tensor")
def put_zero(grad: Tensor, indices: Indices) -> Tensor:
    """Return ``grad`` with zeros at ``indices``."""
    found: Tensor = torch.ops.aten.index_put(grad, list(indices), grad.new_zeros([]), False)
    return found


@implements("autodiff::indexed(Tensor grad, Tensor?[] indices) -> Tensor")
def indexed(grad: Tensor, indices: Indices) -> Tensor:
    """Return ``grad[indices]``."""
    found: Tensor = torch.ops.aten.index(grad, list(indices))
    return found


@implements("autodiff::taken(Tensor grad, int dim, Tensor index, Tensor source) -> Tensor")
def taken(grad: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return the gradient of ``source``, the elements that were written or added at ``index``."""
    if source.dim() == 0:
        return grad.index_select(dim, index.reshape(-1)).sum() if grad.dim() else grad
    return grad.index_select(dim, index).expand_as(source) if grad.dim() else grad.expand_as(source)


@implements("autodiff::masked_back(Tensor grad, Tensor self, Tensor mask) -> Tensor")
def masked_back(grad: Tensor, self: Tensor, mask: Tensor) -> Tensor:
    """Return the gradient of ``masked_select``."""
    size = torch.broadcast_shapes(self.shape, mask.shape)
    return sum_to(grad.new_zeros(size).masked_scatter(mask.expand(size), grad), self.shape)


@implements("autodiff::masked_sum(Tensor grad, Tensor mask) -> Tensor")
def masked_sum(grad: Tensor, mask: Tensor) -> Tensor:
    """Return the sum of ``grad`` where ``mask`` is true."""
    return torch.where(mask, grad, torch.zeros_like(grad)).sum()


@implements("autodiff::take_back(Tensor grad, Tensor self, Tensor index) -> Tensor")
def take_back(grad: Tensor, self: Tensor, index: Tensor) -> Tensor:
    """Return the gradient of ``take``."""
    return torch.zeros_like(self).put(index, grad, True)


@implements("autodiff::take_along_back(Tensor grad, Tensor self, Tensor indices, int? dim) -> Tensor")
def take_along_back(grad: Tensor, self: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    """Return the gradient of ``take_along_dim``."""
    if dim is None:
        found = torch.zeros_like(self).reshape(-1).scatter_add(0, indices.reshape(-1), grad.reshape(-1))
        return found.reshape(self.shape)
    sizes, of_index = list(self.shape), list(grad.shape)
    broadcast = [own if axis == dim % len(sizes) else of_index[axis] for axis, own in enumerate(sizes)]
    found = grad.new_zeros(broadcast).scatter_add(dim, indices.expand(of_index), grad)
    return sum_to(found, sizes)
