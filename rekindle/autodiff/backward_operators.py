"""Operators that formulas call as ``own.NAME``: what is awkward to say in TorchScript, or would cost many nodes.

They are made of PyTorch's differentiable operators, so that gradients of gradients go back through them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rekindle.ops.declare import implements

Sizes = Sequence[int]

# -------------------------------------------------------------------------------------------------------------- sizes


@implements("autodiff::size_unless_equal(Tensor self, Tensor other) -> int[]?")
def size_unless_equal(self: Tensor, other: Tensor) -> list[int] | None:
    """The size of ``self``, None where ``other`` has the same."""
    size = self.shape
    return None if size == other.shape else list(size)


@implements("autodiff::sizes_of(Tensor[] tensors) -> int[][]")
def sizes_of(tensors: Sequence[Tensor]) -> list[list[int]]:
    """The size of each of ``tensors``."""
    return [list(tensor.shape) for tensor in tensors]


@implements("autodiff::ratio(int a, int b) -> int")
def ratio(a: int, b: int) -> int:
    """``a // b``, which goes without a rest; 0 for ``b`` of 0."""
    return a // b if b else 0


@implements("autodiff::negated(int[] numbers) -> int[]")
def negated(numbers: Sizes) -> list[int]:
    """``numbers`` with the other sign."""
    return [-number for number in numbers]


@implements("autodiff::inverse_order(int[] dims) -> int[]")
def inverse_order(dims: Sizes) -> list[int]:
    """The permutation that undoes ``dims``."""
    found = [0] * len(dims)
    for place, dim in enumerate(dims):
        found[dim % len(dims)] = place
    return found


@implements("autodiff::padded_repeats(int rank, int[] repeats) -> int[]")
def padded_repeats(rank: int, repeats: Sizes) -> list[int]:
    """``repeats`` with a 1 for each leading dimension that it does not name."""
    return [1] * max(0, rank - len(repeats)) + list(repeats)


@implements("autodiff::as_row(int[] numbers, int first) -> int[]")
def as_row(numbers: Sizes, first: int) -> list[int]:
    """An option of a layer of one dimension, for one of two with a row; the empty list stays empty."""
    return [first, numbers[0]] if numbers else []


@implements("autodiff::last_two(int[] sizes) -> int[]")
def last_two(sizes: Sizes) -> list[int]:
    """The last two of ``sizes``."""
    return list(sizes[-2:])


@implements("autodiff::sum_to(Tensor(a) self, int[] size) -> Tensor(a)")
def sum_to(self: Tensor, size: Sizes) -> Tensor:
    """A gradient summed to ``size``, which it was broadcast from."""
    return self if list(self.shape) == list(size) else self.sum_to_size(size)


# ----------------------------------------------------------------------------------------------------------- products


@implements("autodiff::matmul_self(Tensor grad, int[] size, Tensor other) -> Tensor")
def matmul_self(grad: Tensor, size: Sizes, other: Tensor) -> Tensor:
    """The gradient of the first factor of ``torch.matmul``, which has the ``size`` given."""
    if other.dim() == 1:
        return grad.unsqueeze(-1) * other if len(size) > 1 else grad * other
    if len(size) == 1:
        return (grad.unsqueeze(-2) @ other.mT).squeeze(-2).sum_to_size(size)
    if other.dim() == 2:
        return grad @ other.t()
    return sum_to(grad @ other.mT, size)


@implements("autodiff::matmul_other(Tensor grad, Tensor self, int[] size) -> Tensor")
def matmul_other(grad: Tensor, self: Tensor, size: Sizes) -> Tensor:
    """The gradient of the second factor of ``torch.matmul``, which has the ``size`` given."""
    if self.dim() == 1:
        return grad * self if len(size) == 1 else (self.unsqueeze(-1) * grad.unsqueeze(-2)).sum_to_size(size)
    if len(size) == 1:
        return self.reshape(-1, self.shape[-1]).t().mv(grad.reshape(-1))
    if len(size) == 2:
        return self.reshape(-1, self.shape[-1]).t() @ grad.reshape(-1, grad.shape[-1])
    return sum_to(self.mT @ grad, size)


@implements("autodiff::linear_input(Tensor grad, int[] size, Tensor weight) -> Tensor")
def linear_input(grad: Tensor, size: Sizes, weight: Tensor) -> Tensor:
    """The gradient of the input of ``torch.nn.functional.linear``."""
    if weight.dim() == 1:
        return grad.unsqueeze(-1) * weight
    return grad @ weight


@implements("autodiff::linear_weight(Tensor grad, Tensor input, int[] size) -> Tensor")
def linear_weight(grad: Tensor, input: Tensor, size: Sizes) -> Tensor:
    """The gradient of the weight of ``torch.nn.functional.linear``."""
    if len(size) == 1:
        return input.reshape(-1, input.shape[-1]).t().mv(grad.reshape(-1))
    return grad.reshape(-1, grad.shape[-1]).t() @ input.reshape(-1, input.shape[-1])


@implements(
    "autodiff::convolution_back(Tensor grad, Tensor input, Tensor weight, bool has_bias, int[] stride, int[] padding,"
    " int[] dilation, bool transposed, int[] output_padding, int groups, bool[] needed) -> (Tensor, Tensor, Tensor)"
)
def convolution_back(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    has_bias: bool,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    needed: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The gradients of a convolution, with a batch or without."""
    rank = weight.dim() - 2
    alone = input.dim() == rank + 1
    if alone:
        grad, input = grad.unsqueeze(0), input.unsqueeze(0)
    sizes = [weight.shape[1] * groups if transposed else weight.shape[0]] if has_bias else None
    options = [
        list(option) * rank if len(option) == 1 else list(option)
        for option in (stride, padding, dilation, output_padding)
    ]
    mask = [needed[0], needed[1], needed[2] and has_bias]
    found = torch.ops.aten.convolution_backward(
        grad, input, weight, sizes, options[0], options[1], options[2], transposed, options[3], groups, mask
    )
    return found[0].squeeze(0) if alone and found[0] is not None else found[0], found[1], found[2]


@implements(
    "autodiff::padded_convolution_back(Tensor grad, Tensor input, Tensor weight, bool has_bias, int[] stride,"
    " str padding, int[] dilation, int groups, bool[] needed) -> (Tensor, Tensor, Tensor)"
)
def padded_convolution_back(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    has_bias: bool,
    stride: Sizes,
    padding: str,
    dilation: Sizes,
    groups: int,
    needed: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The gradients of a convolution of which the padding is named; an odd one goes behind."""
    rank = weight.dim() - 2
    spread = list(dilation) * rank if len(dilation) == 1 else list(dilation)
    kernel = weight.shape[2:]
    totals = [0 if padding == "valid" else d * (k - 1) for d, k in zip(spread, kernel, strict=True)]
    extra = [total % 2 for total in totals]
    pad = [number for odd in reversed(extra) for number in (0, odd)]
    wide = torch.constant_pad_nd(input, pad) if any(extra) else input
    halves = [total // 2 for total in totals]
    found = convolution_back(grad, wide, weight, has_bias, stride, halves, dilation, False, [0], groups, needed)
    back = found[0]
    return torch.constant_pad_nd(back, negated(pad)) if any(extra) and back is not None else back, *found[1:]


@implements(
    "autodiff::upsample_back(str kind, Tensor grad, int[] size, bool? align_corners, float[]? scales) -> Tensor"
)
def upsample_back(
    kind: str, grad: Tensor, size: Sizes, align_corners: bool | None, scales: Sequence[float] | None
) -> Tensor:
    """The gradient of an interpolation, of the operator ``kind``."""
    backward = getattr(torch.ops.aten, f"{kind}_backward").default
    options = [] if align_corners is None else [align_corners]
    factors = [None] * (len(size) - 2) if scales is None else list(scales)
    found: Tensor = backward(grad, list(grad.shape[2:]), list(size), *options, *factors)
    return found


@implements(
    "autodiff::grid_back(Tensor grad, Tensor input, Tensor grid, int interpolation, int padding, bool align_corners,"
    " bool[] needed) -> (Tensor, Tensor)"
)
def grid_back(
    grad: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation: int,
    padding: int,
    align_corners: bool,
    needed: Sequence[bool],
) -> Any:
    """The gradients of ``grid_sample``."""
    aten = torch.ops.aten
    backward = aten.grid_sampler_2d_backward if input.dim() == 4 else aten.grid_sampler_3d_backward
    return backward(grad, input, grid, interpolation, padding, align_corners, list(needed))


@implements(
    "autodiff::group_norm_back(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int n, int c,"
    " int area, int groups, bool[] needed) -> (Tensor, Tensor, Tensor)"
)
def group_norm_back(
    grad: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    n: int,
    c: int,
    area: int,
    groups: int,
    needed: Sequence[bool],
) -> Any:
    """The gradients of ``group_norm``; in steps that have gradients themselves where these may be wanted."""
    if not torch.is_grad_enabled():
        return torch.ops.aten.native_group_norm_backward(
            grad.contiguous(), input.contiguous(), mean, rstd, weight, n, c, area, groups, list(needed)
        )
    count = ratio(c, groups) * area
    rows = input.reshape(n, groups, count)
    variance, centre = torch.var_mean(rows, 2, correction=0, keepdim=True)
    eps = (rstd.reshape(n, groups, 1).pow(-2) - variance).detach()
    scale = (variance + eps).rsqrt()
    normal = (rows - centre) * scale
    flat = grad.reshape(n, c, area)
    given = flat if weight is None else flat * weight.reshape(1, c, 1)
    given = given.reshape(n, groups, count)
    back = scale * (given - given.mean(2, True) - normal * (given * normal).mean(2, True))
    of_weight = (flat * normal.reshape(n, c, area)).sum([0, 2])
    return back.reshape(input.shape), of_weight, flat.sum([0, 2])


# --------------------------------------------------------------------------------------------------------- reductions


def _axes(rank: int, dim: int | Sizes | None) -> list[int]:
    """The dimensions of a reduction; none given means all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(rank))
    named = [dim] if isinstance(dim, int) else dim
    return [] if rank == 0 else [axis % rank for axis in named]


@implements(
    "autodiff::unreduced(Tensor(a) grad, int[] size, int[]? dim, bool keepdim) -> Tensor(a)",
)
def unreduced(grad: Tensor, size: Sizes, dim: Sizes | None, keepdim: bool) -> Tensor:
    """What a reduction over ``dim`` gave, or its gradient, expanded to the ``size`` that went in."""
    if not keepdim:
        for axis in sorted(_axes(len(size), dim)):
            grad = grad.unsqueeze(axis)
    return grad.expand(size)


@implements("autodiff::summed(Tensor self, int[]? dim) -> Tensor")
def summed(self: Tensor, dim: Sizes | None) -> Tensor:
    """The sum over ``dim``, which stays with length 1."""
    return self.sum(_axes(self.dim(), dim), keepdim=True)


@implements("autodiff::mean_over(Tensor self, int[]? dim) -> Tensor")
def mean_over(self: Tensor, dim: Sizes | None) -> Tensor:
    """The mean over ``dim``, which stays with length 1."""
    return self.mean(_axes(self.dim(), dim), keepdim=True)


@implements("autodiff::variance_factor(Tensor self, int[]? dim, Scalar? correction) -> float")
def variance_factor(self: Tensor, dim: Sizes | None, correction: float | None) -> float:
    """2 by what the sum of squares was divided by."""
    count = math.prod(self.shape[axis] for axis in _axes(self.dim(), dim))
    freedom = count - (1 if correction is None else correction)
    return 2 / freedom if freedom > 0 else math.nan if freedom == 0 else math.inf


@implements("autodiff::first_equal(Tensor grad, Tensor self, Tensor result) -> Tensor")
def first_equal(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """The gradient of a median: it goes to elements that are equal to it, shared among them."""
    equal = self.isnan() if bool(result.isnan()) else self == result
    return grad * equal / equal.sum()


@implements("autodiff::product_back(Tensor grad, Tensor self, int? dim, bool keepdim) -> Tensor")
def product_back(grad: Tensor, self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """The gradient of a product: that of all other factors, which goes without a division."""
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
    """The gradient of the norm of vectors; where there is none, one of least norm."""
    order = 2.0 if p is None else float(p)
    back = unreduced(grad, self.shape, dim, keepdim)
    norm = unreduced(result, self.shape, dim, keepdim)
    if order == 0:
        return torch.zeros_like(self)
    if order == 1:
        return back * self.sgn()
    if order == 2:
        return back * (self / norm).masked_fill(norm == 0, 0)
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
    """The gradient of ``aminmax``, shared among equals."""
    found = torch.zeros_like(self)
    axes = None if dim is None else [dim]
    for gradient, value in ((least, min), (greatest, max)):
        if gradient is not None:
            equal = self == unreduced(value, self.shape, axes, keepdim)
            found = found + unreduced(gradient, self.shape, axes, keepdim) * equal / summed(equal, axes)
    return found


@implements(
    "autodiff::rms_norm_back(Tensor grad, Tensor input, int[] shape, Tensor? weight, float? eps) -> (Tensor, Tensor)"
)
def rms_norm_back(grad: Tensor, input: Tensor, shape: Sizes, weight: Tensor | None, eps: float | None) -> Any:
    """The gradients of ``rms_norm``."""
    axes = list(range(input.dim() - len(shape), input.dim()))
    least = torch.finfo(input.dtype).eps if eps is None else eps
    scale = (input.square().mean(axes, keepdim=True) + least).rsqrt()
    normal = input * scale
    given = grad if weight is None else grad * weight
    back = scale * (given - normal * (given * normal).mean(axes, keepdim=True))
    return back, (grad * normal).sum_to_size(shape)


@implements("autodiff::logcumsumexp_back(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor")
def logcumsumexp_back(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """The gradient of ``logcumsumexp``, without overflow: positive and negative parts by themselves."""
    if self.dim() == 0:
        return grad

    least = torch.finfo(grad.dtype).min
    logs = grad.abs().log()

    def part(own: Tensor) -> Tensor:
        rest = torch.where(own, logs, torch.full_like(logs, least)) - result
        return (rest.flip([dim]).logcumsumexp(dim).flip([dim]) + self).exp()

    return part(grad > 0) - part(grad < 0)


# ------------------------------------------------------------------------------------------------------------- shapes


@implements("autodiff::turned(Tensor(a) self, int rank) -> Tensor(a)")
def turned(self: Tensor, rank: int) -> Tensor:
    """``self`` with its last two dimensions exchanged."""
    return self.mT if rank >= 2 else self


@implements("autodiff::cat_back(Tensor grad, int[][] sizes, int dim) -> Tensor[]")
def cat_back(grad: Tensor, sizes: Sequence[Sizes], dim: int) -> list[Tensor]:
    """The gradients of what was concatenated; vectors without elements were left out."""
    lengths = [0 if list(size) == [0] else size[dim] for size in sizes]
    parts = grad.split_with_sizes(lengths, dim)
    return [grad.new_zeros([0]) if list(size) == [0] else part for size, part in zip(sizes, parts, strict=True)]


def _parts(gradients: Sequence[Tensor | None], parts: Sequence[Tensor]) -> list[Tensor]:
    pairs = zip(gradients, parts, strict=True)
    return [torch.zeros_like(part) if gradient is None else gradient for gradient, part in pairs]


@implements("autodiff::rejoined(Tensor?[] gradients, Tensor[] parts, int dim) -> Tensor")
def rejoined(gradients: Sequence[Tensor | None], parts: Sequence[Tensor], dim: int) -> Tensor:
    """``gradients`` joined along ``dim``, with zeros for those that do not exist, of the size of their part."""
    return torch.cat(_parts(gradients, parts), dim)


@implements("autodiff::restacked(Tensor?[] gradients, Tensor[] parts, int dim) -> Tensor")
def restacked(gradients: Sequence[Tensor | None], parts: Sequence[Tensor], dim: int) -> Tensor:
    """``gradients`` stacked along ``dim``, with zeros for those that do not exist, of the size of their part."""
    return torch.stack(_parts(gradients, parts), dim)


@implements("autodiff::repeat_back(Tensor grad, int[] size, int[] repeats) -> Tensor")
def repeat_back(grad: Tensor, size: Sizes, repeats: Sizes) -> Tensor:
    """The sum over all copies that ``repeat`` made."""
    padded = [1] * (len(repeats) - len(size)) + list(size)
    if 0 in repeats:
        return grad.new_zeros(size)
    if not repeats:
        return grad
    shape = [length for pair in zip(repeats, padded, strict=True) for length in pair]
    return grad.reshape(shape).sum(list(range(0, len(shape), 2))).reshape(size)


@implements("autodiff::interleave_back(Tensor grad, int[] size, int repeats, int? dim) -> Tensor")
def interleave_back(grad: Tensor, size: Sizes, repeats: int, dim: int | None) -> Tensor:
    """The sum over the copies of each element that ``repeat_interleave`` made."""
    if dim is None:
        return grad.reshape(-1, repeats).sum(1).reshape(size) if repeats else grad.new_zeros(size)
    if not size:
        return grad.sum().reshape(size)
    axis = dim % len(size)
    return grad.reshape(*size[: axis + 1], repeats, *size[axis + 1 :]).sum(axis + 1)


@implements("autodiff::diagonal_back(Tensor grad, int[] size, int offset, int dim1, int dim2) -> Tensor")
def diagonal_back(grad: Tensor, size: Sizes, offset: int, dim1: int, dim2: int) -> Tensor:
    """The gradient of a diagonal of something of ``size``."""
    found: Tensor = torch.ops.aten.diagonal_backward(grad, size, offset, dim1, dim2)
    return found


@implements("autodiff::diag_back(Tensor grad, int[] size, int diagonal) -> Tensor")
def diag_back(grad: Tensor, size: Sizes, diagonal: int) -> Tensor:
    """The gradient of ``diag``."""
    return grad.diagonal(diagonal) if len(size) == 1 else diagonal_back(grad, size, diagonal, 0, 1)


@implements("autodiff::pad_back(Tensor grad, Tensor self, int[] pad, str mode) -> Tensor")
def pad_back(grad: Tensor, self: Tensor, pad: Sizes, mode: str) -> Tensor:
    """The gradient of a padding: each element goes back to the one that it was copied from."""
    if mode == "constant":
        return torch.constant_pad_nd(grad, negated(pad))
    rank = len(pad) // 2
    places = self.shape[self.dim() - rank :]
    count = math.prod(places)
    numbers = torch.arange(count, dtype=torch.float64, device=self.device).reshape(1, 1, *places)
    index = torch.nn.functional.pad(numbers, list(pad), mode).reshape(-1).long()
    rows = grad.reshape(-1, index.numel())
    return rows.new_zeros(rows.shape[0], count).index_add(1, index, rows).reshape(self.shape)


@implements("autodiff::meshgrid_back(Tensor?[] gradients, Tensor[] tensors, str indexing) -> Tensor[]")
def meshgrid_back(gradients: Sequence[Tensor | None], tensors: Sequence[Tensor], indexing: str) -> list[Tensor]:
    """The gradients of the coordinates of a grid."""
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
    """Each gradient summed to the size of its tensor, which was broadcast."""
    pairs = zip(gradients, tensors, strict=True)
    return [torch.zeros_like(tensor) if grad is None else sum_to(grad, tensor.shape) for grad, tensor in pairs]


@implements("autodiff::interleave_by(Tensor grad, Tensor self, Tensor repeats, int? dim) -> Tensor")
def interleave_by(grad: Tensor, self: Tensor, repeats: Tensor, dim: int | None) -> Tensor:
    """The sum over the copies of each element that ``repeat_interleave`` made, as many as ``repeats`` says."""
    flat = self.reshape(-1) if dim is None else self
    axis = 0 if dim is None else dim
    numbers = torch.arange(flat.shape[axis], device=self.device)
    index = numbers.repeat_interleave(repeats.expand(flat.shape[axis]))
    return torch.zeros_like(flat).index_add(axis, index, grad).reshape(self.shape)


# ----------------------------------------------------------------------------------------------------------- indexing


@implements("autodiff::slice_back(Tensor grad, int[] size, int dim, int? start, int? end, int step) -> Tensor")
def slice_back(grad: Tensor, size: Sizes, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """The gradient of a slice of something of ``size``."""
    last = 2**63 - 1 if end is None else end
    found: Tensor = torch.ops.aten.slice_backward(grad, size, dim, 0 if start is None else start, last, step)
    return found


@implements("autodiff::narrow_back(Tensor grad, int[] size, int dim, int start, int length) -> Tensor")
def narrow_back(grad: Tensor, size: Sizes, dim: int, start: int, length: int) -> Tensor:
    """The gradient of a narrowed tensor of ``size``."""
    first = start if start >= 0 else start + size[dim]
    found: Tensor = torch.ops.aten.slice_backward(grad, size, dim, first, first + length, 1)
    return found


Indices = Sequence["Tensor | None"]


@implements("autodiff::index_back(Tensor grad, Tensor self, Tensor?[] indices) -> Tensor")
def index_back(grad: Tensor, self: Tensor, indices: Indices) -> Tensor:
    """The gradient of ``self[indices]``."""
    found: Tensor = torch.ops.aten.index_put(torch.zeros_like(self), list(indices), grad, True)
    return found


@implements("autodiff::put_zero(Tensor grad, Tensor?[] indices) -> Tensor")
def put_zero(grad: Tensor, indices: Indices) -> Tensor:
    """``grad`` with zeros at ``indices``."""
    found: Tensor = torch.ops.aten.index_put(grad, list(indices), grad.new_zeros([]), False)
    return found


@implements("autodiff::indexed(Tensor grad, Tensor?[] indices) -> Tensor")
def indexed(grad: Tensor, indices: Indices) -> Tensor:
    """``grad[indices]``."""
    found: Tensor = torch.ops.aten.index(grad, list(indices))
    return found


@implements("autodiff::taken(Tensor grad, int dim, Tensor index, Tensor source) -> Tensor")
def taken(grad: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """The gradient of what was put or added at ``index``."""
    if source.dim() == 0:
        return grad.index_select(dim, index.reshape(-1)).sum() if grad.dim() else grad
    return grad.index_select(dim, index).expand_as(source) if grad.dim() else grad.expand_as(source)


@implements("autodiff::masked_back(Tensor grad, Tensor self, Tensor mask) -> Tensor")
def masked_back(grad: Tensor, self: Tensor, mask: Tensor) -> Tensor:
    """The gradient of ``masked_select``."""
    size = torch.broadcast_shapes(self.shape, mask.shape)
    return sum_to(grad.new_zeros(size).masked_scatter(mask.expand(size), grad), self.shape)


@implements("autodiff::masked_sum(Tensor grad, Tensor mask) -> Tensor")
def masked_sum(grad: Tensor, mask: Tensor) -> Tensor:
    """The sum of ``grad`` where ``mask`` is true."""
    return torch.where(mask, grad, torch.zeros_like(grad)).sum()


@implements("autodiff::take_back(Tensor grad, Tensor self, Tensor index) -> Tensor")
def take_back(grad: Tensor, self: Tensor, index: Tensor) -> Tensor:
    """The gradient of ``take``."""
    return torch.zeros_like(self).put(index, grad, True)


# --------------------------------------------------------------------------------------------------- chance and losses


@implements("autodiff::dropout(Tensor input, float p, bool train) -> (Tensor, Tensor?)", nondeterministic=True)
def dropout(input: Tensor, p: float, train: bool) -> tuple[Tensor, Tensor | None]:
    """``torch.dropout``, by the numbers that eager draws, and what it multiplied with; None where it did nothing."""
    if p == 0 or not train or input.numel() == 0:
        return input.clone(), None
    if p == 1:
        return input * torch.zeros_like(input), torch.zeros_like(input)
    noise = torch.empty_like(input).bernoulli_(1 - p).div_(1 - p)
    return input * noise, noise


@implements("autodiff::unreduced_loss(Tensor(a) grad, Tensor self, int reduction) -> Tensor(a)")
def unreduced_loss(grad: Tensor, self: Tensor, reduction: int) -> Tensor:
    """The gradient of a loss as that of its summands."""
    return grad.expand(self.shape) / max(self.numel(), 1) if reduction == 1 else grad.expand(self.shape)


@implements(
    "autodiff::nll(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor, Tensor)"
)
def nll(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Any:
    """``nll_loss_nd``, and the weight of all."""
    if self.dim() <= 2:
        return torch.ops.aten.nll_loss_forward(self, target, weight, reduction, ignore_index)
    planes, targets = _planes(self, target)
    result, total = torch.ops.aten.nll_loss2d_forward(planes, targets, weight, reduction, ignore_index)
    return result.reshape(target.shape) if reduction == 0 else result, total


@implements(
    "autodiff::nll_back(Tensor grad, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index,"
    " Tensor total_weight) -> Tensor"
)
def nll_back(
    grad: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """The gradient of ``nll_loss_nd``."""
    aten = torch.ops.aten
    found: Tensor
    if self.dim() <= 2:
        found = aten.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight)
        return found
    planes, targets = _planes(self, target)
    if reduction == 0:
        grad = grad.reshape(targets.shape)
    found = aten.nll_loss2d_backward(grad, planes, targets, weight, reduction, ignore_index, total_weight)
    return found.reshape(self.shape)


def _planes(self: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Predictions with two dimensions behind the classes."""
    if self.dim() == 4:
        return self, target
    batch, classes = self.shape[:2]
    return self.reshape(batch, classes, 1, -1), target.reshape(batch, 1, -1)


@implements(
    "autodiff::cross_entropy_back(Tensor grad, Tensor self, Tensor target, Tensor? weight, int reduction,"
    " int ignore_index, float label_smoothing) -> Tensor"
)
def cross_entropy_back(
    grad: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    """The gradient of the logits of ``cross_entropy``, by way of that of their ``log_softmax``, in which it is
    linear."""
    axis = 0 if self.dim() == 1 else 1
    classes = self.shape[axis]
    shaped = None if weight is None else weight.reshape([-1] + [1] * (self.dim() - 1 - axis))
    even = label_smoothing / classes
    if target.is_floating_point():
        parts = target * (1 - label_smoothing) + even
        total: Tensor | float = max(self.numel() // max(classes, 1), 1)
    else:
        kept = target != ignore_index
        chosen = torch.where(kept, target, torch.zeros_like(target)).unsqueeze(axis)
        parts = torch.full_like(self, even).scatter_add(
            axis, chosen, torch.full_like(chosen, 1, dtype=self.dtype) * (1 - label_smoothing)
        )
        parts = parts * kept.unsqueeze(axis)
        total = kept.sum() if weight is None else (weight[chosen.squeeze(axis)] * kept).sum()
    if shaped is not None:
        parts = parts * shaped
    back = grad.unsqueeze(axis) if reduction == 0 else grad / total if reduction == 1 else grad
    logs = -(back * parts)
    return logs - self.softmax(axis) * logs.sum(axis, keepdim=True)


@implements(
    "autodiff::cross_entropy_target(Tensor grad, Tensor self, Tensor? weight, int reduction, float label_smoothing)"
    " -> Tensor"
)
def cross_entropy_target(
    grad: Tensor, self: Tensor, weight: Tensor | None, reduction: int, label_smoothing: float
) -> Tensor:
    """The gradient of the targets of ``cross_entropy``, where they are probabilities."""
    axis = 0 if self.dim() == 1 else 1
    classes = self.shape[axis]
    logs = self.log_softmax(axis) * (label_smoothing - 1)
    if weight is not None:
        logs = logs * weight.reshape([-1] + [1] * (self.dim() - 1 - axis))
    back = grad.unsqueeze(axis) if reduction == 0 else grad
    return back * logs / max(self.numel() // max(classes, 1), 1) if reduction == 1 else back * logs
