"""Layouts and dtypes of the results of elementwise operators, as PyTorch defines them.

A result has the memory format of its operands; if they differ, that of the first operand that is not broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a tensor: sizes, strides in elements, and dtype."""

    sizes: Ints
    strides: Ints
    dtype: torch.dtype

    @property
    def rank(self) -> int:
        return len(self.sizes)


class NoBroadcast(Exception):
    """Raised if sizes do not broadcast. The caller runs the operator, whose error message is better."""


def are_equal(a: Ints, b: Ints) -> bool:
    """Return whether sizes are equal. Different ranks are compared first: Python compares the first elements of
    tuples before their lengths, and a kernel would then depend on a comparison of sizes."""
    return len(a) == len(b) and a == b


def contiguous_strides(sizes: Ints) -> Ints:
    """Return the strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def broadcast_sizes(shapes: Sequence[Ints]) -> Ints:
    """Return the sizes that all ``shapes`` broadcast to.

    Raises:
        NoBroadcast: the shapes do not broadcast to common sizes.
    """
    first = shapes[0]
    if all(are_equal(shape, first) for shape in shapes):
        return first
    rank = max(map(len, shapes))
    found = [1] * rank
    for shape in shapes:
        for at, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if found[at] not in (1, size):
                    raise NoBroadcast
                found[at] = size
    return tuple(found)


def elementwise_strides(sizes: Ints, operands: Sequence[Layout]) -> Ints:
    """Return the strides of the result of an operator on ``operands``, which broadcast to ``sizes``."""
    if all(are_equal(operand.sizes, sizes) for operand in operands):
        same = _common_format(sizes, operands)
        if same is not None:
            return same
    order = _order(sizes, operands)
    if order == list(range(len(sizes) - 1, -1, -1)):
        return contiguous_strides(sizes)
    strides, step = [0] * len(sizes), 1
    for dim in order:
        strides[dim] = step
        step *= sizes[dim]
    return tuple(strides)


def _common_format(sizes: Ints, operands: Sequence[Layout]) -> Ints | None:
    """Return the strides of the result if all operands are contiguous, all are channels-last, or all have the same
    strides without gaps; else None."""
    if all(_is_dense(sizes, operand.strides, range(len(sizes) - 1, -1, -1)) for operand in operands):
        return contiguous_strides(sizes)
    last = channels_last_strides(sizes)
    if last is not None and all(_is_channels_last(sizes, operand.strides) for operand in operands):
        return last
    strides = operands[0].strides
    if all(are_equal(operand.strides, strides) for operand in operands):
        by_stride = sorted(range(len(sizes)), key=lambda dim: (sizes[dim] >= 2, strides[dim]))
        if _is_dense(sizes, strides, by_stride):
            return strides
    return None


def channels_last_strides(sizes: Ints) -> Ints | None:
    """Return the strides of images in the channels-last format; None for other ranks."""
    if len(sizes) != 4:
        return None
    channels, height, width = sizes[1:]
    return (height * width * channels, 1, width * channels, channels)


def suggests_channels_last(layout: Layout) -> bool:
    """Return whether PyTorch derives the channels-last format from the strides of a tensor, as
    ``suggest_memory_format`` does. The tensor may be a slice with gaps. An image of one channel is ambiguous: its
    channels' stride decides."""
    if layout.rank != 4 or 0 in layout.sizes:
        return False
    least = 0
    for dim in (1, 3, 2, 0):
        size, stride = layout.sizes[dim], layout.strides[dim]
        if stride < least or (dim == 0 and least == layout.strides[1]) or (dim == 1 and stride == 0):
            return False
        least = stride * size
    return True


def is_contiguous(layout: Layout) -> bool:
    """Return whether the elements follow one another without a gap, the last dimension fastest."""
    return _is_dense(layout.sizes, layout.strides, range(layout.rank - 1, -1, -1))


def is_dense(layout: Layout) -> bool:
    """Return whether a layout is contiguous, or that of a channels-last image."""
    return is_contiguous(layout) or (layout.rank == 4 and _is_channels_last(layout.sizes, layout.strides))


def _is_dense(sizes: Ints, strides: Ints, order: Sequence[int]) -> bool:
    """Return whether the dimensions, the innermost first, follow one another without a gap."""
    if 0 in sizes:
        return True
    expected = 1
    for dim in order:
        if sizes[dim] != 1:
            if strides[dim] != expected:
                return False
            expected *= sizes[dim]
    return True


def _is_channels_last(sizes: Ints, strides: Ints) -> bool:
    expected = 1
    for dim in (1, 3, 2, 0):
        if sizes[dim] != 1:
            if strides[dim] != expected:
                return False
            expected *= sizes[dim]
    return True


def with_trailing_dims(layout: Layout, count: int) -> Layout:
    """Return the layout after ``Tensor.reshape`` to ``count`` more trailing dimensions of size 1. Dimensions of size 1
    get new strides, by which elementwise operators order them."""
    sizes = (*layout.sizes, *(1,) * count)
    if not layout.rank:
        return Layout(sizes, (1,) * count, layout.dtype)
    strides = [0] * len(sizes)
    base, step, at = layout.strides[-1], 1, len(sizes) - 1
    for dim in range(layout.rank - 1, -1, -1):
        while at >= dim:
            strides[at] = step * base
            step *= sizes[at]
            at -= 1
        outer = dim - 1
        if dim and layout.sizes[outer] != 1 and layout.strides[outer] != step * base:
            base, step = layout.strides[outer], 1
    return Layout(sizes, tuple(strides), layout.dtype)


def _order(sizes: Ints, operands: Sequence[Layout]) -> list[int]:
    """Return the dimensions in the order of the result's memory, the innermost first."""
    rank = len(sizes)
    strides = [_broadcast_strides(operand, sizes) for operand in operands]

    def compare(a: int, b: int) -> int:
        for each in strides:
            if each[a] == 0 or each[b] == 0:
                continue
            if each[a] != each[b]:
                return -1 if each[a] < each[b] else 1
            if sizes[a] > sizes[b]:
                return 1
        return 0

    order = list(range(rank - 1, -1, -1))
    for start in range(1, rank):
        at = start
        for other in range(start - 1, -1, -1):
            found = compare(order[other], order[at])
            if found > 0:
                order[other], order[at] = order[at], order[other]
                at = other
            elif found < 0:
                break
    return order


def _broadcast_strides(layout: Layout, sizes: Ints) -> Ints:
    missing = len(sizes) - layout.rank
    own = zip(layout.sizes, layout.strides, sizes[missing:], strict=True)
    return (0,) * missing + tuple(0 if size == 1 and wanted != 1 else stride for size, stride, wanted in own)


# ------------------------------------------------------------------------------------------------------------- dtypes


def result_dtype(operands: Sequence[Layout | type]) -> torch.dtype:
    """Return the dtype to which PyTorch promotes ``operands``, tensors and the classes of Python numbers, under the
    present default dtype."""
    return _result_dtype(
        tuple(each if isinstance(each, type) else (each.dtype, each.rank > 0) for each in operands),
        torch.get_default_dtype(),
    )


@cache
def _result_dtype(operands: tuple[tuple[torch.dtype, bool] | type, ...], default: torch.dtype) -> torch.dtype:
    """Return ``torch.result_type`` of several operands: tensors with dimensions precede those without, numbers are
    last."""
    groups: list[torch.dtype | None] = [None, None, None]
    for each in operands:
        if isinstance(each, type):
            dtype = default if each is float else torch.int64 if each is int else torch.bool
            rank = 2
        else:
            dtype, rank = each[0], 0 if each[1] else 1
        known = groups[rank]
        groups[rank] = dtype if known is None else torch.promote_types(known, dtype)
    return _combine(_combine(groups[0], groups[1]), groups[2])  # type: ignore[return-value]


def _combine(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    if higher is None or lower is None:
        return lower if higher is None else higher
    if _category(lower) > _category(higher):
        return torch.promote_types(higher, lower)
    return higher


def _category(dtype: torch.dtype) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype is torch.bool else 1
