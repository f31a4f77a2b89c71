"""Backward of operators that rearrange elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rekindle.autodiff.backward_operators.sizes import Sizes, negated, sum_to
from rekindle.ops.registration.declare import implements


@implements("autodiff::turned(Tensor(a) self, int rank) -> Tensor(a)")
def turned(self: Tensor, rank: int) -> Tensor:
    """Return ``self``, of this ``rank``, with its last two dimensions exchanged; a vector unchanged."""
    return self.mT if rank >= 2 else self


@implements("autodiff::cat_back(Tensor grad, int[][] sizes, int dim) -> Tensor[]")
def cat_back(grad: Tensor, sizes: Sequence[Sizes], dim: int) -> list[Tensor]:
    """Return the gradients of the concatenated tensors; vectors without elements do not contribute to the result."""
    lengths = [0 if list(size) == [0] else size[dim] for size in sizes]
    parts = grad.split_with_sizes(lengths, dim)
    return [grad.new_zeros([0]) if list(size) == [0] else part for size, part in zip(sizes, parts, strict=True)]


def _parts(gradients: Sequence[Tensor | None], parts: Sequence[Tensor]) -> list[Tensor]:
    pairs = zip(gradients, parts, strict=True)
    return [torch.zeros_like(part) if gradient is None else gradient for gradient, part in pairs]


@implements("autodiff::rejoined(Tensor?[] gradients, Tensor[] parts, int dim) -> Tensor")
def rejoined(gradients: Sequence[Tensor | None], parts: Sequence[Tensor], dim: int) -> Tensor:
    """Concatenate ``gradients`` along ``dim``. A missing gradient is zeros of the size of its part in ``parts``."""
    return torch.cat(_parts(gradients, parts), dim)


@implements("autodiff::restacked(Tensor?[] gradients, Tensor[] parts, int dim) -> Tensor")
def restacked(gradients: Sequence[Tensor | None], parts: Sequence[Tensor], dim: int) -> Tensor:
    """Stack ``gradients`` along ``dim``. A missing gradient is zeros of the size of its part in ``parts``."""
    return torch.stack(_parts(gradients, parts), dim)


@implements("autodiff::repeat_back(Tensor grad, int[] size, int[] repeats) -> Tensor")
def repeat_back(grad: Tensor, size: Sizes, repeats: Sizes) -> Tensor:
    """Return the sum over all copies that ``repeat`` made."""
    padded = [1] * (len(repeats) - len(size)) + list(size)
    if 0 in repeats:
        return grad.new_zeros(size)
    if not repeats:
        return grad
    shape = [length for pair in zip(repeats, padded, strict=True) for length in pair]
    return grad.reshape(shape).sum(list(range(0, len(shape), 2))).reshape(size)


@implements("autodiff::interleave_back(Tensor grad, int[] size, int repeats, int? dim) -> Tensor")
def interleave_back(grad: Tensor, size: Sizes, repeats: int, dim: int | None) -> Tensor:
    """Return the sum over the copies of each element that ``repeat_interleave`` made."""
    if dim is None:
        return grad.reshape(-1, repeats).sum(1).reshape(size) if repeats else grad.new_zeros(size)
    if not size:
        return grad.sum().reshape(size)
    axis = dim % len(size)
    return grad.reshape(*size[: axis + 1], repeats, *size[axis + 1 :]).sum(axis + 1)


@implements("autodiff::diagonal_back(Tensor grad, int[] size, int offset, int dim1, int dim2) -> Tensor")
def diagonal_back(grad: Tensor, size: Sizes, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return the gradient of a diagonal of something of ``size``."""
    found: Tensor = torch.ops.aten.diagonal_backward(grad, size, offset, dim1, dim2)
    return found


@implements("autodiff::diag_back(Tensor grad, int[] size, int diagonal) -> Tensor")
def diag_back(grad: Tensor, size: Sizes, diagonal: int) -> Tensor:
    """Return the gradient of ``diag``."""
    return grad.diagonal(diagonal) if len(size) == 1 else diagonal_back(grad, size, diagonal, 0, 1)


@implements("autodiff::pad_back(Tensor grad, int[] size, int[] pad, str mode) -> Tensor")
def pad_back(grad: Tensor, size: Sizes, pad: Sizes, mode: str) -> Tensor:
    """Return the gradient of the tensor that was padded, which has ``size``: each element goes back to the one that it
    was copied from."""
    if mode == "constant":
        return torch.constant_pad_nd(grad, negated(pad))
    rank = len(pad) // 2
    places = list(size[len(size) - rank :])
    count = math.prod(places)
    numbers = torch.arange(count, dtype=torch.float64, device=grad.device).reshape(1, 1, *places)
    index = torch.nn.functional.pad(numbers, list(pad), mode).reshape(-1).long()
    rows = grad.reshape(-1, index.numel())
    return rows.new_zeros(rows.shape[0], count).index_add(1, index, rows).reshape(size)


@implements("autodiff::meshgrid_back(Tensor?[] gradients, Tensor[] tensors, str indexing) -> Tensor[]")
def meshgrid_back(gradients: Sequence[Tensor | None], tensors: Sequence[Tensor], indexing: str) -> list[Tensor]:
    """Return the gradients of the coordinates of a grid."""
    found = []
    for place, (gradient, tensor) in enumerate(zip(gradients, tensors, strict=True)):
        if gradient is None:
            found.append(torch.zeros_like(tensor))
            continue
        own = 1 - place if indexing == "xy" and place < 2 and len(tensors) > 1 else place
        others = [axis for axis in range(gradient.dim()) if axis != own]
        found.append((gradient.sum(others) if others else gradient).reshape(tensor.shape))
    return found


@implements("autodiff::sums_to(Tensor?[] gradients, Tensor[] tensors) -> Tensor[]")
def sums_to(gradients: Sequence[Tensor | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return each gradient summed to the size of its tensor, which was broadcast."""
    pairs = zip(gradients, tensors, strict=True)
    return [torch.zeros_like(tensor) if grad is None else sum_to(grad, tensor.shape) for grad, tensor in pairs]


@implements("autodiff::interleave_by(Tensor grad, Tensor self, Tensor repeats, int? dim) -> Tensor")
def interleave_by(grad: Tensor, self: Tensor, repeats: Tensor, dim: int | None) -> Tensor:
    """Return the sum over the copies of each element that ``repeat_interleave`` made, as given by ``repeats``."""
    flat = self.reshape(-1) if dim is None else self
    axis = 0 if dim is None else dim
    numbers = torch.arange(flat.shape[axis], device=self.device)
    index = numbers.repeat_interleave(repeats.expand(flat.shape[axis]))
    return torch.zeros_like(flat).index_add(axis, index, grad).reshape(self.shape)


_JOINED_ALONG = {"h": 0, "v": 0, "d": 2, "column": 1}


@implements("autodiff::side_by_side_back(Tensor grad, int[][] sizes, str how) -> Tensor[]")
def side_by_side_back(grad: Tensor, sizes: Sequence[Sizes], how: str) -> list[Tensor]:
    """Return the gradients of the parts of ``hstack``, ``vstack``, ``dstack`` and ``column_stack``."""
    dim = _JOINED_ALONG[how]
    if how == "h" and len(sizes[0]) > 1:
        dim = 1
    widths = [size[dim] if len(size) > dim and (how != "v" or len(size) > 1) else 1 for size in sizes]
    parts = grad.split(widths, dim)
    return [part.reshape(size) for part, size in zip(parts, sizes, strict=True)]


@implements("autodiff::block_diag_back(Tensor grad, int[][] sizes) -> Tensor[]")
def block_diag_back(grad: Tensor, sizes: Sequence[Sizes]) -> list[Tensor]:
    """Return the gradients of the blocks of ``block_diag``."""
    found = []
    row = column = 0
    for size in sizes:
        height, width = [1, 1, *size][-2:]
        found.append(grad[row : row + height, column : column + width].reshape(size))
        row, column = row + height, column + width
    return found


@implements(
    "autodiff::diff_back(Tensor grad, Tensor self, int n, int dim, Tensor? prepend, Tensor? append)"
    " -> (Tensor, Tensor?, Tensor?)"
)
def diff_back(
    grad: Tensor, self: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the gradients of the tensors that ``diff`` concatenates."""
    widths = [0 if part is None else part.shape[dim] for part in (prepend, self, append)]
    back = grad.movedim(dim, -1)
    if n > sum(widths):
        back = back.new_zeros((*back.shape[:-1], sum(widths)))
    else:
        for _ in range(n):
            back = -torch.constant_pad_nd(back, [1, 1]).diff()
    before, own, after = back.movedim(-1, dim).split(widths, dim)
    return own, None if prepend is None else before, None if append is None else after
