"""Views of tensors: operators that change sizes and strides but no elements."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Array, c, native, offset, stack
from rekindle.building.runtime.c_library import memcpy
from rekindle.building.runtime.lists import append, bound, list_get, list_of
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import Context, ErrorCode, List, Tensor, fail, fail_number, word_of
from rekindle.building.runtime.tensors import (
    MAX_RANK,
    another_view,
    contiguous_copy,
    element_bytes,
    is_contiguous,
    numel,
    sizes_of,
    strides_of,
    write_contiguous,
)


@native
def dimension(context: Context, dim: int, rank: int) -> int:
    """Return ``dim`` as a non-negative dimension; -1, with an error, if it is out of range."""
    least = 1 if rank == 0 else rank
    at = dim + least if dim < 0 else dim
    if at < 0 or at >= least:
        fail_number(context, ErrorCode.INDEX_ERROR, c("Dimension out of range (got %lld)"), dim)
        return -1
    return at


@native
def size_at(context: Context, tensor: Tensor, dim: int) -> int:
    """Return a size; -1, with an error, if the dimension does not exist."""
    at = dimension(context, dim, tensor.rank)
    if at < 0:
        return -1
    if tensor.rank == 0:
        fail_number(context, ErrorCode.INDEX_ERROR, c("Dimension specified as %lld but tensor has no dimensions"), dim)
        return -1
    return sizes_of(tensor)[at]


@native
def same_view(tensor: Tensor) -> Tensor:
    view = another_view(tensor, tensor.rank)
    memcpy(sizes_of(view), sizes_of(tensor), 16 * tensor.rank)
    return view


@native
def select(context: Context, tensor: Tensor, dim: int, index: int) -> Tensor | None:
    if tensor.rank == 0:
        fail(context, ErrorCode.INDEX_ERROR, c("select() cannot be applied to a 0-dim tensor."))
        return None
    at = dimension(context, dim, tensor.rank)
    if at < 0:
        return None
    size = sizes_of(tensor)[at]
    place = index + size if index < 0 else index
    if place < 0 or place >= size:
        fail_number(context, ErrorCode.INDEX_ERROR, c("index %lld is out of bounds for a dimension"), index)
        return None
    view = another_view(tensor, tensor.rank - 1)
    view.data = offset(tensor.data, place * strides_of(tensor)[at] * element_bytes(tensor.dtype))
    k = 0
    for i in range(tensor.rank):
        if i != at:
            sizes_of(view)[k] = sizes_of(tensor)[i]
            strides_of(view)[k] = strides_of(tensor)[i]
            k += 1
    return view


@native
def slice_view(context: Context, tensor: Tensor, dim: int, start: int, end: int, step: int) -> Tensor | None:
    if tensor.rank == 0:
        fail(context, ErrorCode.INDEX_ERROR, c("slice() cannot be applied to a 0-dim tensor."))
        return None
    at = dimension(context, dim, tensor.rank)
    if at < 0:
        return None
    if step <= 0:
        fail(context, ErrorCode.RUNTIME_ERROR, c("slice step must be positive"))
        return None
    size = sizes_of(tensor)[at]
    low = bound(start, size, 1)
    high = bound(end, size, 1)
    if high < low:
        high = low
    view = same_view(tensor)
    view.data = offset(tensor.data, low * strides_of(tensor)[at] * element_bytes(tensor.dtype))
    step = min(step, max(1, size))
    sizes_of(view)[at] = (high - low + step - 1) // step
    strides_of(view)[at] = strides_of(tensor)[at] * step
    return view


@native
def transpose(context: Context, tensor: Tensor, first: int, second: int) -> Tensor | None:
    a = dimension(context, first, tensor.rank)
    b = dimension(context, second, tensor.rank)
    if a < 0 or b < 0:
        return None
    view = same_view(tensor)
    if tensor.rank > 0:
        sizes_of(view)[a] = sizes_of(tensor)[b]
        strides_of(view)[a] = strides_of(tensor)[b]
        sizes_of(view)[b] = sizes_of(tensor)[a]
        strides_of(view)[b] = strides_of(tensor)[a]
    return view


@native
def transpose_matrix(context: Context, tensor: Tensor) -> Tensor | None:
    """Return ``tensor.t()``, or None after an error."""
    if tensor.rank > 2:
        fail_number(
            context,
            ErrorCode.RUNTIME_ERROR,
            c("t() expects a tensor with <= 2 dimensions, but self is %lldD"),
            tensor.rank,
        )
        return None
    return transpose(context, tensor, 0, 1) if tensor.rank == 2 else same_view(tensor)


@native
def permute(context: Context, tensor: Tensor, order: List) -> Tensor | None:
    if order.length != tensor.rank:
        fail(context, ErrorCode.RUNTIME_ERROR, c("permute(): the number of dimensions in the tensor does not match"))
        return None
    view = another_view(tensor, tensor.rank)
    seen = 0
    for i in range(tensor.rank):
        at = dimension(context, order.items[i], tensor.rank)
        if at < 0 or (seen & (1 << at)) != 0:
            fail(context, ErrorCode.RUNTIME_ERROR, c("permute(): duplicate or missing dimensions are not allowed"))
            release(view)
            return None
        seen = seen | (1 << at)
        sizes_of(view)[i] = sizes_of(tensor)[at]
        strides_of(view)[i] = strides_of(tensor)[at]
    return view


@native
def unsqueeze(context: Context, tensor: Tensor, dim: int) -> Tensor | None:
    at = dimension(context, dim, tensor.rank + 1)
    if at < 0:
        return None
    view = another_view(tensor, tensor.rank + 1)
    for i in range(tensor.rank):
        k = i if i < at else i + 1
        sizes_of(view)[k] = sizes_of(tensor)[i]
        strides_of(view)[k] = strides_of(tensor)[i]
    sizes_of(view)[at] = 1
    strides_of(view)[at] = sizes_of(tensor)[at] * strides_of(tensor)[at] if at < tensor.rank else 1
    return view


@native
def squeeze_at(context: Context, tensor: Tensor, dim: int) -> Tensor | None:
    at = dimension(context, dim, tensor.rank)
    if at < 0:
        return None
    if tensor.rank == 0 or sizes_of(tensor)[at] != 1:
        return same_view(tensor)
    return select(context, tensor, at, 0)


@native
def squeeze(tensor: Tensor) -> Tensor:
    rank = 0
    for i in range(tensor.rank):
        rank += int(sizes_of(tensor)[i] != 1)
    view = another_view(tensor, rank)
    k = 0
    for j in range(tensor.rank):
        if sizes_of(tensor)[j] != 1:
            sizes_of(view)[k] = sizes_of(tensor)[j]
            strides_of(view)[k] = strides_of(tensor)[j]
            k += 1
    return view


@native
def expand(context: Context, tensor: Tensor, sizes: List) -> Tensor | None:
    extra = sizes.length - tensor.rank
    if extra < 0:
        fail(
            context,
            ErrorCode.RUNTIME_ERROR,
            c("expand: there are fewer sizes than the tensor has dimensions"),
        )
        return None
    view = another_view(tensor, sizes.length)
    for i in range(sizes.length):
        wanted = sizes.items[i]
        given = sizes_of(tensor)[i - extra] if i >= extra else 1
        if wanted == -1 and i >= extra:
            wanted = given
        if wanted < 0 or (given != wanted and given != 1):
            fail_number(context, ErrorCode.RUNTIME_ERROR, c("expand: a dimension cannot be expanded to %lld"), wanted)
            release(view)
            return None
        sizes_of(view)[i] = wanted
        strides_of(view)[i] = 0 if i < extra or given != wanted else strides_of(tensor)[i - extra]
    return view


@native
def write_view_sizes(context: Context, tensor: Tensor, wanted: List, sizes: Array[int]) -> bool:
    """Write the sizes of ``view(wanted)``, in which one may be -1. Return False, with an error, if they do not fit the
    tensor."""
    count = numel(tensor)
    known = 1
    unknown = -1
    for i in range(wanted.length):
        size = wanted.items[i]
        sizes[i] = size
        if size == -1 and unknown < 0:
            unknown = i
        elif size < 0:
            fail_number(context, ErrorCode.RUNTIME_ERROR, c("invalid shape dimension %lld"), size)
            return False
        else:
            known = known * size
    if unknown >= 0 and known > 0 and count % known == 0:
        sizes[unknown] = count // known
        known = count
    if known != count or (unknown >= 0 and known == 0):
        fail_number(context, ErrorCode.RUNTIME_ERROR, c("the shape is invalid for input of size %lld"), count)
        return False
    return True


@native
def write_view_strides(tensor: Tensor, rank: int, sizes: Array[int], strides: Array[int]) -> bool:
    """Write the strides of a view with these sizes; return whether one exists without a copy."""
    if numel(tensor) == 0 or is_contiguous(tensor):
        write_contiguous(rank, sizes, strides)
        return True
    at = rank - 1
    last = tensor.rank - 1
    base = strides_of(tensor)[last]
    of_chunk = 1
    of_view = 1
    dim = last
    while dim >= 0:
        of_chunk = of_chunk * sizes_of(tensor)[dim]
        ends = dim == 0
        if not ends:
            ends = sizes_of(tensor)[dim - 1] != 1 and strides_of(tensor)[dim - 1] != of_chunk * base
        if ends:
            while at >= 0 and (of_view < of_chunk or sizes[at] == 1):
                strides[at] = of_view * base
                of_view = of_view * sizes[at]
                at -= 1
            if of_view != of_chunk:
                return False
            if dim > 0:
                base = strides_of(tensor)[dim - 1]
                of_chunk = 1
                of_view = 1
        dim -= 1
    return at == -1


@native
def view_or_copy(context: Context, tensor: Tensor, wanted: List, copies: bool) -> Tensor | None:
    """Return ``tensor.view(wanted)``, or None after an error. If there is no such view and ``copies`` is set, return a
    copy, as ``reshape`` does."""
    sizes = cast("Array[int]", stack(8 * 64))
    strides = cast("Array[int]", stack(8 * 64))
    if wanted.length > MAX_RANK:
        fail_number(context, ErrorCode.NOT_BUILT, c("a tensor of %lld dimensions"), wanted.length)
        return None
    if not write_view_sizes(context, tensor, wanted, sizes):
        return None
    if write_view_strides(tensor, wanted.length, sizes, strides):
        view = another_view(tensor, wanted.length)
        memcpy(sizes_of(view), sizes, 8 * wanted.length)
        memcpy(strides_of(view), strides, 8 * wanted.length)
        return view
    if not copies:
        fail(
            context,
            ErrorCode.RUNTIME_ERROR,
            c("view: the strides of the tensor do not allow these sizes without a copy; use reshape"),
        )
        return None
    copy = contiguous_copy(context, tensor)
    if copy is None:
        return None
    result = view_or_copy(context, copy, wanted, False)
    release(copy)
    return result


@native
def flatten(context: Context, tensor: Tensor, start: int, end: int) -> Tensor | None:
    first = dimension(context, start, tensor.rank)
    last = dimension(context, end, tensor.rank)
    if first < 0 or last < 0:
        return None
    if first > last:
        fail(context, ErrorCode.RUNTIME_ERROR, c("flatten() has invalid args: start_dim cannot come after end_dim"))
        return None
    wanted = list_of(c("i"), tensor.rank + 1)
    if tensor.rank == 0:
        append(wanted, 1)
    joined = 1
    for i in range(tensor.rank):
        size = sizes_of(tensor)[i]
        joined = joined * size
        if i < first or i >= last:
            append(wanted, joined)
            joined = 1
    result = view_or_copy(context, tensor, wanted, True)
    release(wanted)
    return result


@native
def unflatten(context: Context, tensor: Tensor, dim: int, parts: List) -> Tensor | None:
    """Return a view in which several dimensions replace one; the size of one of them may be -1. None is returned
    after an error."""
    at = dimension(context, dim, tensor.rank)
    if at < 0:
        return None
    size = sizes_of(tensor)[at]
    known = 1
    unknown = -1
    for i in range(parts.length):
        part = parts.items[i]
        if part == -1 and unknown < 0:
            unknown = i
        elif part < 0:
            fail_number(context, ErrorCode.RUNTIME_ERROR, c("invalid shape dimension %lld"), part)
            return None
        else:
            known = known * part
    inferred = 1
    if unknown >= 0 and known > 0:
        inferred = size // known
    if parts.length == 0 or known * inferred != size or (unknown >= 0 and known == 0):
        fail_number(context, ErrorCode.RUNTIME_ERROR, c("unflatten: the sizes do not multiply to %lld"), size)
        return None
    wanted = list_of(c("i"), tensor.rank + parts.length)
    for i in range(tensor.rank):
        if i == at:
            for k in range(parts.length):
                if k == unknown:
                    append(wanted, inferred)
                else:
                    append(wanted, parts.items[k])
        else:
            append(wanted, sizes_of(tensor)[i])
    result = view_or_copy(context, tensor, wanted, False)
    release(wanted)
    return result


@native
def unbind(context: Context, tensor: Tensor, dim: int) -> List | None:
    at = dimension(context, dim, tensor.rank)
    if at < 0:
        return None
    if tensor.rank == 0:
        fail(context, ErrorCode.INDEX_ERROR, c("Dimension specified as 0 but tensor has no dimensions"))
        return None
    count = sizes_of(tensor)[at]
    parts = list_of(c("t"), count)
    for i in range(count):
        part = select(context, tensor, at, i)
        if part is not None:
            append(parts, word_of(part))
    return parts


@native
def split(context: Context, tensor: Tensor, size: int, dim: int) -> List | None:
    """Split a tensor into parts of ``size``, of which the last may be smaller. None is returned after an error."""
    at = dimension(context, dim, tensor.rank)
    if at < 0:
        return None
    if tensor.rank == 0 or size < 0 or (size == 0 and sizes_of(tensor)[at] != 0):
        fail_number(
            context,
            ErrorCode.RUNTIME_ERROR,
            c("split expects a positive split_size and a tensor with at least 1 dimension (got split_size=%lld)"),
            size,
        )
        return None
    total = sizes_of(tensor)[at]
    parts = list_of(c("t"), 4)
    start = 0
    while start < total or start == 0:
        end = min(total, start + size)
        part = slice_view(context, tensor, at, start, end, 1)
        if part is None:
            release(parts)
            return None
        append(parts, word_of(part))
        start = end
        if start == total:
            break
    return parts


@native
def chunk(context: Context, tensor: Tensor, chunks: int, dim: int) -> List | None:
    if chunks <= 0:
        fail_number(
            context, ErrorCode.RUNTIME_ERROR, c("chunk expects `chunks` to be greater than 0, got: %lld"), chunks
        )
        return None
    size = size_at(context, tensor, dim)
    if size < 0:
        return None
    if size == 0:
        fail(context, ErrorCode.NOT_BUILT, c("a dimension of size 0 cannot be cut into chunks here"))
        return None
    return split(context, tensor, (size + chunks - 1) // chunks, dim)


@native
def parts_of_chunk(context: Context, tensor: Tensor, chunks: int, dim: int, out: Array[int], count: int) -> bool:
    """Write the parts that ``chunk`` returns to ``out``. Return False, with an error, if there are not ``count`` of
    them."""
    parts = chunk(context, tensor, chunks, dim)
    if parts is None:
        return False
    if parts.length != count:
        fail_number(context, ErrorCode.RUNTIME_ERROR, c("expected another number of chunks than %lld"), parts.length)
        release(parts)
        return False
    for i in range(count):
        out[i] = list_get(parts, i)
    release(parts)
    return True
