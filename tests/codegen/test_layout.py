"""Results of fused operators are laid out as PyTorch lays them out."""

from __future__ import annotations

import torch
from hypothesis import given, strategies as st
from torch import Tensor

from rekindle.codegen.layout import Layout, broadcast_sizes, elementwise_strides, result_dtype, suggests_channels_last

SIZES = st.lists(st.sampled_from([1, 1, 2, 3, 0]), max_size=5)


@st.composite
def tensors(draw: st.DrawFn) -> list[Tensor]:
    """Tensors that broadcast with one another, in all kinds of layout."""
    sizes = draw(SIZES)
    return [draw(_tensor(sizes)) for _ in range(draw(st.integers(1, 3)))]


@st.composite
def _tensor(draw: st.DrawFn, sizes: list[int]) -> Tensor:
    own = [1 if draw(st.integers(0, 4)) == 0 else size for size in sizes]
    own = own[draw(st.integers(0, len(own))) if draw(st.booleans()) else 0 :]
    order = draw(st.permutations(range(len(own))))
    laid_out = torch.empty([own[dim] for dim in order]).permute([order.index(dim) for dim in range(len(own))])
    kind = draw(st.integers(0, 5))
    if kind == 0:
        wider = torch.empty([2 * size for size in own])
        return wider[tuple(slice(None, None, 2) for _ in own)]
    if kind == 1:
        return torch.empty(own)
    if kind == 2 and len(own) == 4:
        return torch.empty(own).contiguous(memory_format=torch.channels_last)
    if kind == 3 and own:
        return torch.empty([1] * len(own)).expand(own)
    return laid_out


@given(tensors())
def test_strides(operands: list[Tensor]) -> None:
    if len(operands) == 1:
        expected = torch.neg(operands[0])
    elif len(operands) == 2:
        expected = torch.maximum(*operands)
    else:
        expected = torch.where(operands[0] > 0, operands[1], operands[2])
        operands = [torch.empty_strided(each.shape, each.stride()) for each in operands]
        operands[0] = operands[0] > 0
    layouts = [Layout(tuple(each.shape), each.stride(), each.dtype) for each in operands]
    sizes = broadcast_sizes([each.sizes for each in layouts])
    assert sizes == tuple(expected.shape)
    assert elementwise_strides(sizes, layouts) == expected.stride()


@st.composite
def images(draw: st.DrawFn) -> Tensor:
    """An image in any order in memory, with gaps between the elements or without."""
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=4, max_size=4))
    order = draw(st.sampled_from([(0, 1, 2, 3), (0, 2, 3, 1)]) | st.permutations(range(4)))
    wider = torch.empty([sizes[dim] + draw(st.sampled_from([0, 0, 1])) for dim in order])
    image = wider.permute([order.index(dim) for dim in range(4)])
    image = image[tuple(slice(size) for size in sizes)]
    return image.expand(draw(st.sampled_from([1, 2])), -1, -1, -1) if sizes[0] == 1 else image


@given(images())
def test_memory_formats_that_strides_suggest(image: Tensor) -> None:
    layout = Layout(tuple(image.shape), image.stride(), image.dtype)
    both = torch.cat([image, image], 1)  # in the format that its parts suggest
    is_last = both.stride() == (both[0].numel(), 1, both.shape[3] * both.shape[1], both.shape[1])
    assert suggests_channels_last(layout) == is_last


DTYPES = (
    *(torch.bool, torch.uint8, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)
OPERANDS = st.lists(st.tuples(st.sampled_from(DTYPES), st.booleans()), min_size=1, max_size=2)


@given(OPERANDS, st.sampled_from([2, 2.5, True]))
def test_dtypes(operands: list[tuple[torch.dtype, bool]], number: float) -> None:
    tensors = [torch.empty((1,) if has_dimensions else (), dtype=dtype) for dtype, has_dimensions in operands]
    layouts = [Layout(tuple(each.shape), each.stride(), each.dtype) for each in tensors]
    other = tensors[1] if len(tensors) > 1 else number
    given_ = [*layouts, type(number)] if len(tensors) == 1 else layouts
    assert result_dtype(given_) == torch.result_type(tensors[0], other)
