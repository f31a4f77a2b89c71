"""Index addition: add slices of a tensor to slices of another one (``index_add``)."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Address, Array, Float32, Int32, c, float_of, native, offset
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import Context, ErrorCode, Tensor, fail, fail_number
from rekindle.building.runtime.tensors import (
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    clone,
    element_bytes,
    int_at,
    is_floating,
    numel,
    sizes_of,
    strides_of,
)
from rekindle.building.runtime.views import dimension, select


@native
def index_add(
    context: Context, tensor: Tensor, dim: int, index: Tensor, source: Tensor, is_float: bool, factor: int
) -> Tensor | None:
    """Return a copy of a tensor in which the slices of ``factor * source`` are added to those at ``index`` along a
    dimension. None is returned after an error. ``factor`` is a 64-bit word: the bits of a float if ``is_float``,
    else an int."""
    result = clone(context, tensor)
    if result is not None and not index_add_into(context, result, dim, index, source, is_float, factor):
        release(result)
        return None
    return result


@native
def index_add_into(
    context: Context, tensor: Tensor, dim: int, index: Tensor, source: Tensor, is_float: bool, factor: int
) -> bool:
    """Add slices of ``factor * source`` to slices of a tensor in place; return False after an error."""
    at = dimension(context, dim, tensor.rank)
    if at < 0 or not may_be_added(context, tensor, at, index, source, is_float):
        return False
    count = numel(index)
    if tensor.rank > 0:
        for i in range(count):
            add_slice(context, tensor, source, at, index_at(index, i), i, is_float, factor)
    elif count > 0:
        add_scaled(tensor, source, 0, tensor.data, source.data, is_float, factor)
    return True


@native
def may_be_added(context: Context, tensor: Tensor, dim: int, index: Tensor, source: Tensor, is_float: bool) -> bool:
    """Return whether the operator accepts the dtypes, the sizes and the indices; set an error if not."""
    dtype = tensor.dtype
    if index.dtype != INT64 and index.dtype != INT32:
        fail(context, ErrorCode.RUNTIME_ERROR, c("index_add_(): Expected dtype int32/int64 for index"))
    elif index.rank > 1:
        fail_number(
            context,
            ErrorCode.INDEX_ERROR,
            c("index_add_(): Index is supposed to be a vector, but got dim: %lld"),
            index.rank,
        )
    elif dtype != source.dtype:
        fail(context, ErrorCode.RUNTIME_ERROR, c("index_add_(): self and source must have the same scalar type"))
    elif (dtype != FLOAT and dtype != DOUBLE and dtype != INT64 and dtype != INT32) or (
        is_float and not is_floating(dtype)
    ):
        fail(context, ErrorCode.NOT_BUILT, c("'index_add' of a dtype other than int64, int32, float32 and float64"))
    elif tensor.storage is source.storage or tensor.storage is index.storage:
        fail(context, ErrorCode.NOT_BUILT, c("'index_add_' of tensors that share memory"))
    elif tensor.rank != source.rank:
        fail(context, ErrorCode.RUNTIME_ERROR, c("source tensor must have as many dimensions as self tensor"))
    elif tensor.rank > 0 and sizes_of(source)[dim] != numel(index):
        fail_number(
            context,
            ErrorCode.RUNTIME_ERROR,
            c("index_add_(): Number of indices (%lld) should be equal to source.size(dim)"),
            numel(index),
        )
    elif tensor.rank == 0 and numel(index) != 1:
        fail(context, ErrorCode.RUNTIME_ERROR, c("index_add_(): Number of indices should be equal to source.numel()"))
    else:
        return have_same_sizes(context, tensor, dim, source) and are_in_range(context, tensor, dim, index)
    return False


@native
def have_same_sizes(context: Context, tensor: Tensor, dim: int, source: Tensor) -> bool:
    for i in range(tensor.rank):
        if i != dim and sizes_of(tensor)[i] != sizes_of(source)[i]:
            fail(
                context,
                ErrorCode.RUNTIME_ERROR,
                c("source tensor shape must match self tensor shape, excluding the specified dimension"),
            )
            return False
    return True


@native
def are_in_range(context: Context, tensor: Tensor, dim: int, index: Tensor) -> bool:
    size = 1 if tensor.rank == 0 else sizes_of(tensor)[dim]
    for i in range(numel(index)):
        each = index_at(index, i)
        if each < 0 or each >= size:
            code = ErrorCode.INDEX_ERROR if tensor.rank < 2 else ErrorCode.RUNTIME_ERROR
            fail_number(context, code, c("index %lld is out of range in self"), each)
            return False
    return True


@native
def index_at(index: Tensor, i: int) -> int:
    step = 0 if index.rank == 0 else strides_of(index)[0]
    return int_at(index.dtype, offset(index.data, i * step * element_bytes(index.dtype)))


@native
def add_slice(
    context: Context, tensor: Tensor, source: Tensor, dim: int, to: int, at: int, is_float: bool, factor: int
) -> None:
    """Add slice ``at`` of ``factor * source`` to slice ``to`` of a tensor."""
    target = select(context, tensor, dim, to)
    addend = select(context, source, dim, at)
    if target is not None and addend is not None:
        add_scaled(target, addend, 0, target.data, addend.data, is_float, factor)
    release(target)
    release(addend)


@native
def add_scaled(tensor: Tensor, source: Tensor, dim: int, to: Address, at: Address, is_float: bool, factor: int) -> None:
    """Add the elements of ``factor * source`` from address ``at`` on to those of a tensor of the same sizes from
    address ``to`` on, along the dimensions from ``dim`` on."""
    if dim == tensor.rank:
        add_element(tensor.dtype, to, at, is_float, factor)
        return
    bytes = element_bytes(tensor.dtype)
    step = strides_of(tensor)[dim] * bytes
    source_step = strides_of(source)[dim] * bytes
    for i in range(sizes_of(tensor)[dim]):
        add_scaled(tensor, source, dim + 1, offset(to, i * step), offset(at, i * source_step), is_float, factor)


@native
def add_element(dtype: int, to: Address, at: Address, is_float: bool, factor: int) -> None:
    scale = float_of(factor) if is_float else float(factor)
    if dtype == FLOAT:
        singles = cast("Array[Float32]", to)
        singles[0] = singles[0] + scale * cast("Array[Float32]", at)[0]
    elif dtype == DOUBLE:
        doubles = cast("Array[float]", to)
        doubles[0] = doubles[0] + scale * cast("Array[float]", at)[0]
    elif dtype == INT64:
        words = cast("Array[int]", to)
        words[0] = words[0] + factor * cast("Array[int]", at)[0]
    else:
        ints = cast("Array[Int32]", to)
        ints[0] = ints[0] + factor * cast("Array[Int32]", at)[0]
