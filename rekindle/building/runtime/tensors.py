"""Tensors: strided views of storages."""

from __future__ import annotations

from typing import Final, cast

from rekindle.building.lowlevel import (
    NULL,
    Address,
    Array,
    Byte,
    Float32,
    Int8,
    Int16,
    Int32,
    bits_of,
    c,
    float_of,
    native,
    offset,
    size_of,
    stack,
    view,
)
from rekindle.building.runtime.c_library import aligned_alloc, memcpy, memset
from rekindle.building.runtime.complexes import new_complex
from rekindle.building.runtime.lists import append, list_of, list_of_words
from rekindle.building.runtime.memory import Owner, release
from rekindle.building.runtime.objects import (
    Complex,
    Context,
    ErrorCode,
    Kind,
    List,
    Object,
    Storage,
    Tensor,
    allocate,
    fail,
    fail_number,
    new_box,
    retain,
    word_of,
)
from rekindle.ops.releases.v2_15 import TRUNCATES_BEFORE_CHECK

UINT8, INT8, INT16, INT32, INT64, HALF, FLOAT, DOUBLE = 0, 1, 2, 3, 4, 5, 6, 7
COMPLEX64, COMPLEX128, BOOL, BFLOAT16 = 9, 10, 11, 15
"""The numbers of PyTorch's dtypes (``c10::ScalarType``)."""


MAX_RANK: Final = 64
"""Maximum number of dimensions of a tensor."""


@native
def element_bytes(dtype: int) -> int:
    """Return the size of an element in bytes; 0 for a dtype that the library does not know."""
    if dtype == FLOAT or dtype == INT32:
        return 4
    if dtype == INT64 or dtype == DOUBLE or dtype == COMPLEX64:
        return 8
    if dtype == UINT8 or dtype == INT8 or dtype == BOOL:
        return 1
    if dtype == HALF or dtype == BFLOAT16 or dtype == INT16:
        return 2
    return 16 if dtype == COMPLEX128 else 0


@native
def sizes_of(tensor: Tensor) -> Array[int]:
    return cast("Array[int]", offset(tensor, size_of(Tensor)))


@native
def strides_of(tensor: Tensor) -> Array[int]:
    return cast("Array[int]", offset(tensor, size_of(Tensor) + 8 * tensor.rank))


@native
def new_storage(address: Address, bytes: int, owner: int, handle: Address) -> Storage:
    storage = cast("Storage", allocate(size_of(Storage)))
    storage.refs = 1
    storage.kind = Kind.STORAGE
    storage.address = address
    storage.bytes = bytes
    storage.owner = owner
    storage.handle = handle
    return storage


@native
def new_view(storage: Storage, data: Address, dtype: int, rank: int) -> Tensor:
    """Return a tensor whose sizes and strides the caller must write. It takes ownership of the reference to the
    storage."""
    tensor = cast("Tensor", allocate(size_of(Tensor) + 16 * rank))
    tensor.refs = 1
    tensor.kind = Kind.TENSOR
    tensor.data = data
    tensor.storage = storage
    tensor.dtype = dtype
    tensor.rank = rank
    tensor.handle = NULL
    return tensor


@native
def another_view(tensor: Tensor, rank: int) -> Tensor:
    """Return a view of the storage of a tensor, whose sizes and strides the caller must write."""
    retain(tensor.storage)
    return new_view(tensor.storage, tensor.data, tensor.dtype, rank)


@native
def element_count(rank: int, sizes: Array[int]) -> int:
    count = 1
    for i in range(rank):
        count = count * sizes[i]
    return count


@native
def numel(tensor: Tensor) -> int:
    return element_count(tensor.rank, sizes_of(tensor))


@native
def extent(rank: int, sizes: Array[int], strides: Array[int]) -> int:
    """Return the number of elements of memory that a tensor spans."""
    last = 0
    for i in range(rank):
        if sizes[i] == 0:
            return 0
        last += (sizes[i] - 1) * strides[i]
    return last + 1


@native
def empty_strided(context: Context, dtype: int, rank: int, sizes: Array[int], strides: Array[int]) -> Tensor | None:
    """Return an uninitialized tensor in new memory, aligned to 64 bytes; None after an error."""
    if rank > MAX_RANK:
        fail_number(context, ErrorCode.NOT_BUILT, c("a tensor of %lld dimensions"), rank)
        return None
    count = 1.0
    for i in range(rank):
        if sizes[i] < 0:
            fail_number(context, ErrorCode.RUNTIME_ERROR, c("a tensor cannot have the size %lld"), sizes[i])
            return None
        count = count * float(sizes[i])
    if count > 1e15:
        fail(context, ErrorCode.RUNTIME_ERROR, c("Storage size calculation overflowed"))
        return None
    bytes = extent(rank, sizes, strides) * element_bytes(dtype)
    memory = aligned_alloc(64, ((bytes + 63) // 64) * 64 + 64)
    if memory is None:
        fail_number(context, ErrorCode.MEMORY_ERROR, c("there is no memory for a tensor of %lld bytes"), bytes)
        return None
    tensor = new_view(new_storage(memory, bytes, Owner.LIBRARY, NULL), memory, dtype, rank)
    memcpy(sizes_of(tensor), sizes, 8 * rank)
    memcpy(strides_of(tensor), strides, 8 * rank)
    return tensor


@native
def write_contiguous(rank: int, sizes: Array[int], strides: Array[int]) -> None:
    """Write the strides of a contiguous tensor."""
    step = 1
    i = rank - 1
    while i >= 0:
        strides[i] = step
        if sizes[i] > 1:
            step = step * sizes[i]
        i -= 1


@native
def empty(context: Context, dtype: int, rank: int, sizes: Array[int]) -> Tensor | None:
    strides = cast("Array[int]", stack(8 * 64))
    if rank > MAX_RANK:
        fail_number(context, ErrorCode.NOT_BUILT, c("a tensor of %lld dimensions"), rank)
        return None
    write_contiguous(rank, sizes, strides)
    return empty_strided(context, dtype, rank, sizes, strides)


@native
def is_contiguous(tensor: Tensor) -> bool:
    step = 1
    i = tensor.rank - 1
    while i >= 0:
        size = sizes_of(tensor)[i]
        if size == 0:
            return True
        if size != 1 and strides_of(tensor)[i] != step:
            return False
        step = step * size
        i -= 1
    return True


# ------------------------------------------------------------------------------------------------------------ elements


@native
def copy_element(to: Address, source: Address, bytes: int) -> None:
    if bytes == 4:
        cast("Array[Int32]", to)[0] = cast("Array[Int32]", source)[0]
    elif bytes == 8:
        cast("Array[int]", to)[0] = cast("Array[int]", source)[0]
    elif bytes == 1:
        cast("Array[Byte]", to)[0] = cast("Array[Byte]", source)[0]
    else:
        memcpy(to, source, bytes)


@native
def copy_elements(to: Tensor, source: Tensor) -> None:
    """Copy all elements of ``source`` to ``to``, a tensor of the same sizes and dtype."""
    bytes = element_bytes(to.dtype)
    count = numel(to)
    if count == 0:
        return
    if is_contiguous(to) and is_contiguous(source):
        memcpy(to.data, source.data, count * bytes)
        return
    copy_strided(to.data, strides_of(to), source.data, strides_of(source), sizes_of(to), to.rank, bytes)


@native
def copy_strided(
    to: Address, to_strides: Array[int], source: Address, strides: Array[int], sizes: Array[int], rank: int, bytes: int
) -> None:
    """Copy elements dimension by dimension, as rows where the last dimension has no gaps."""
    if rank == 0:
        copy_element(to, source, bytes)
        return
    last = rank - 1
    row = sizes[last]
    places = cast("Array[int]", stack(8 * 64))
    memset(places, 0, 8 * rank)
    is_dense = to_strides[last] == 1 and strides[last] == 1
    while True:
        to_at = 0
        at = 0
        for i in range(last):
            to_at += places[i] * to_strides[i]
            at += places[i] * strides[i]
        target = offset(to, to_at * bytes)
        origin = offset(source, at * bytes)
        if is_dense:
            memcpy(target, origin, row * bytes)
        else:
            for j in range(row):
                copy_element(
                    offset(target, j * to_strides[last] * bytes), offset(origin, j * strides[last] * bytes), bytes
                )
        k = last - 1
        while k >= 0:
            places[k] = places[k] + 1
            if places[k] < sizes[k]:
                break
            places[k] = 0
            k -= 1
        if k < 0:
            return


@native
def contiguous_copy(context: Context, tensor: Tensor) -> Tensor | None:
    copy = empty(context, tensor.dtype, tensor.rank, sizes_of(tensor))
    if copy is not None:
        copy_elements(copy, tensor)
    return copy


@native
def contiguous(context: Context, tensor: Tensor) -> Tensor | None:
    """Return the tensor with a new reference, or a contiguous copy if it is not contiguous. None is returned after
    an error."""
    if is_contiguous(tensor):
        retain(tensor)
        return tensor
    return contiguous_copy(context, tensor)


@native
def clone(context: Context, tensor: Tensor) -> Tensor | None:
    """Return a copy. It has the same strides if the elements fill memory without gaps or overlaps; otherwise it is
    contiguous. None is returned after an error."""
    if is_dense(tensor):
        copy = empty_strided(context, tensor.dtype, tensor.rank, sizes_of(tensor), strides_of(tensor))
        if copy is not None:
            copy_elements(copy, tensor)
        return copy
    return contiguous_copy(context, tensor)


@native
def is_dense(tensor: Tensor) -> bool:
    """Return whether the elements fill memory without gaps and without overlaps, in any order of dimensions."""
    seen = 0
    step = 1
    for _i in range(tensor.rank):
        found = -1
        for j in range(tensor.rank):
            size = sizes_of(tensor)[j]
            if size == 0:
                return True
            if size > 1 and strides_of(tensor)[j] == step and (seen & (1 << j)) == 0:
                found = j
        if found < 0:
            break
        seen = seen | (1 << found)
        step = step * sizes_of(tensor)[found]
    return step == numel(tensor)


@native
def int_at(dtype: int, place: Address) -> int:
    """Return an element of an integral dtype, or a bool, as an int."""
    if dtype == INT64:
        return cast("Array[int]", place)[0]
    if dtype == INT32:
        return cast("Array[Int32]", place)[0]
    if dtype == INT16:
        return cast("Array[Int16]", place)[0]
    if dtype == INT8:
        return cast("Array[Int8]", place)[0]
    return cast("Array[Byte]", place)[0]


@native
def float_at(dtype: int, place: Address) -> float:
    """Return an element of a floating dtype as a double."""
    if dtype == DOUBLE:
        return cast("Array[float]", place)[0]
    if dtype == FLOAT:
        return cast("Array[Float32]", place)[0]
    bits = cast("Array[Int16]", place)[0] & 65535
    if dtype == BFLOAT16:
        word = cast("Array[int]", stack(8))
        word[0] = bits << 16
        return cast("Array[Float32]", word)[0]
    return half_value(bits)


@native
def half_value(bits: int) -> float:
    """Return the number that the bits of an IEEE half float represent."""
    sign = (bits >> 15) & 1
    exponent = (bits >> 10) & 31
    fraction = bits & 1023
    magnitude = float(fraction) * 5.960464477539063e-08
    if exponent == 31:
        magnitude = float_of(9218868437227405312 | (fraction << 42))
    elif exponent > 0:
        magnitude = float_of(((exponent + 1008) << 52) | (fraction << 42))
    return -magnitude if sign == 1 else magnitude


@native
def is_floating(dtype: int) -> bool:
    return dtype == FLOAT or dtype == DOUBLE or dtype == HALF or dtype == BFLOAT16


@native
def check_single(context: Context, tensor: Tensor) -> bool:
    """Return whether a tensor has exactly one element, which is real; set an error if not."""
    if not check_one(context, tensor):
        return False
    if tensor.dtype == COMPLEX64 or tensor.dtype == COMPLEX128:
        fail(context, ErrorCode.NOT_BUILT, c("an int, a float or a bool of a complex tensor"))
        return False
    return True


@native
def check_one(context: Context, tensor: Tensor) -> bool:
    """Return whether a tensor has exactly one element; set an error if not."""
    count = numel(tensor)
    if count != 1:
        fail_number(
            context,
            ErrorCode.RUNTIME_ERROR,
            c("a Tensor with %lld elements cannot be converted to Scalar"),
            count,
        )
        return False
    return True


@native
def check_integral(context: Context, tensor: Tensor) -> bool:
    """Return whether the only element of a tensor is an int, or a float that can be truncated to an int; set an error
    if not."""
    if not check_single(context, tensor):
        return False
    if not is_floating(tensor.dtype):
        return True
    value = float_at(tensor.dtype, tensor.data)
    if value != value:
        fail(context, ErrorCode.VALUE_ERROR, c("cannot convert float NaN to integer"))
    elif value - value != 0.0:
        fail(context, ErrorCode.OVERFLOW_ERROR, c("cannot convert float infinity to integer"))
    elif not holds(INT64, True, value):
        fail(context, ErrorCode.OVERFLOW_ERROR, c("a float outside of 64-bit integers cannot be converted to one"))
    return context.code == 0


@native
def item_as_int(tensor: Tensor) -> int:
    """Return the only element as an int. A float is truncated."""
    if is_floating(tensor.dtype):
        return int(float_at(tensor.dtype, tensor.data))
    return int_at(tensor.dtype, tensor.data)


@native
def item_as_float(tensor: Tensor) -> float:
    if is_floating(tensor.dtype):
        return float_at(tensor.dtype, tensor.data)
    return float(int_at(tensor.dtype, tensor.data))


@native
def item_as_bool(tensor: Tensor) -> bool:
    if is_floating(tensor.dtype):
        return float_at(tensor.dtype, tensor.data) != 0.0
    return int_at(tensor.dtype, tensor.data) != 0


@native
def fill_word(context: Context, tensor: Tensor | None, is_float: bool, word: int) -> Tensor | None:
    """Fill a new contiguous tensor with a number, and return it. The number is the int ``word`` or, if ``is_float``,
    the float with the bits ``word``. After an error, the tensor is released, and None is returned."""
    if tensor is None:
        return None
    kind = tensor.dtype
    value = float_of(word) if is_float else float(word)
    if not holds(kind, is_float, value):
        fail_number(
            context, ErrorCode.RUNTIME_ERROR, c("value cannot be converted to dtype %lld without overflow"), kind
        )
        release(tensor)
        return None
    if is_floating(kind) or kind == COMPLEX64 or kind == COMPLEX128:
        for j in range(numel(tensor)):
            write_float(tensor, j, value)
        return tensor
    number = int(value) if is_float and kind != BOOL else word
    if kind == BOOL:
        number = int(value != 0.0)
    bytes = element_bytes(kind)
    for i in range(numel(tensor)):
        if bytes == 8:
            cast("Array[int]", tensor.data)[i] = number
        elif bytes == 4:
            cast("Array[Int32]", tensor.data)[i] = number
        elif bytes == 2:
            cast("Array[Int16]", tensor.data)[i] = number
        else:
            cast("Array[Byte]", tensor.data)[i] = number
    return tensor


@native
def write_float(tensor: Tensor, at: int, value: float) -> None:
    """Write an element of a tensor of floats or of complex numbers."""
    kind = tensor.dtype
    if kind == DOUBLE:
        cast("Array[float]", tensor.data)[at] = value
    elif kind == FLOAT:
        cast("Array[Float32]", tensor.data)[at] = value
    elif kind == COMPLEX64:
        cast("Array[Float32]", tensor.data)[2 * at] = value
        cast("Array[Float32]", tensor.data)[2 * at + 1] = 0.0
    elif kind == COMPLEX128:
        cast("Array[float]", tensor.data)[2 * at] = value
        cast("Array[float]", tensor.data)[2 * at + 1] = 0.0
    else:
        cast("Array[Int16]", tensor.data)[at] = bfloat16_bits(value) if kind == BFLOAT16 else half_bits(value)


@native
def holds(dtype: int, is_float: bool, value: float) -> bool:
    """Return whether PyTorch accepts a number as an element of a dtype. Unsigned dtypes accept negative ints.
    ``value`` is the number as a float, also if it is an int (``is_float`` is False)."""
    if dtype == BOOL or dtype == DOUBLE or dtype == COMPLEX128 or (dtype == INT64 and not is_float):
        return True
    if is_floating(dtype) or dtype == COMPLEX64:
        most = 3.4028234663852886e38
        if dtype == HALF:
            most = 65504.0
        if dtype == BFLOAT16:
            most = 3.3895313892515355e38
        return value != value or value - value != 0.0 or (-most <= value and value <= most)
    if dtype == INT64:
        return -9223372036854775808.0 <= value and value < 9223372036854775808.0
    most_bits = 8 * element_bytes(dtype) - int(dtype != UINT8)
    high = float((1 << most_bits) - 1)
    low = -high - 1.0
    if dtype == UINT8:
        low = 0.0 if is_float else -high
    if is_float and TRUNCATES_BEFORE_CHECK:
        return low <= value and value < high + 1.0
    return low <= value and value <= high


@native
def float32_bits(value: float) -> int:
    """Return the bits of a number as a float32."""
    word = cast("Array[int]", stack(8))
    word[0] = 0
    cast("Array[Float32]", word)[0] = value
    return word[0]


@native
def bfloat16_bits(value: float) -> int:
    bits = float32_bits(value)
    if value != value:
        return 32704
    return (bits + 32767 + ((bits >> 16) & 1)) >> 16


@native
def half_bits(value: float) -> int:
    """Return the bits of the IEEE half float nearest to a number, which is first rounded to a float32."""
    bits = float32_bits(value)
    sign = (bits >> 16) & 32768
    size = bits & 2147483647
    if size > 2139095040:
        return 32256
    if size >= 1199566848:
        return sign | 31744
    if size < 947912704:
        word = cast("Array[int]", stack(8))
        word[0] = size
        steps = cast("Array[Float32]", word)[0] * 16777216.0
        return sign | int((steps + 4503599627370496.0) - 4503599627370496.0)
    return sign | (((size + 4095 + ((size >> 13) & 1)) >> 13) - 114688)


@native
def range_of_ints(context: Context, start: int, end: int, step: int) -> Tensor | None:
    """Return ``arange`` of ints as an int64 tensor, or None after an error."""
    if step == 0:
        fail(context, ErrorCode.RUNTIME_ERROR, c("step must be nonzero"))
        return None
    count = (end - start + step - 1) // step if step > 0 else (start - end - step - 1) // (-step)
    if end < start if step > 0 else start < end:
        fail(context, ErrorCode.RUNTIME_ERROR, c("upper bound and lower bound inconsistent with step sign"))
        return None
    sizes = cast("Array[int]", stack(8))
    sizes[0] = count
    tensor = empty(context, INT64, 1, sizes)
    if tensor is not None:
        for i in range(count):
            cast("Array[int]", tensor.data)[i] = start + i * step
    return tensor


@native
def range_as(context: Context, start: int, end: int, step: int, dtype: int) -> Tensor | None:
    """Return ``arange`` of ints as a tensor of ``dtype``, or None after an error. An int larger in magnitude than those
    that the dtype represents without gaps is an error."""
    if dtype != INT64 and dtype != INT32 and dtype != FLOAT and dtype != DOUBLE:
        fail(context, ErrorCode.NOT_BUILT, c("a range of ints in a dtype other than int64, int32, float32 and float64"))
        return None
    ints = range_of_ints(context, start, end, step)
    if ints is None or dtype == INT64:
        return ints
    count = sizes_of(ints)[0]
    data = cast("Array[int]", ints.data)
    limit = 16777216 if dtype == FLOAT else 2147483647 if dtype == INT32 else 9007199254740992
    result = empty(context, dtype, 1, sizes_of(ints))
    for i in range(count):
        if data[i] > limit or data[i] < -limit:
            release(ints)
            release(result)
            fail(context, ErrorCode.NOT_BUILT, c("a range of ints that its dtype does not hold exactly"))
            return None
        if result is not None and dtype == INT32:
            cast("Array[Int32]", result.data)[i] = data[i]
        elif result is not None:
            write_float(result, i, float(data[i]))
    release(ints)
    return result


@native
def check_list(context: Context, tensor: Tensor, rank: int, kind: int) -> bool:
    """Return whether ``tolist()`` of a tensor has the annotated type: ``rank`` dimensions of ints, floats or bools
    (0, 1 or 2). Set an error if not."""
    if tensor.rank != rank:
        fail_number(
            context,
            ErrorCode.RUNTIME_ERROR,
            c("tolist() is annotated to give another number of nested lists than %lld"),
            tensor.rank,
        )
        return False
    dtype = tensor.dtype
    found = 1 if is_floating(dtype) else 2 if dtype == BOOL else 3 if dtype == COMPLEX64 or dtype == COMPLEX128 else 0
    if numel(tensor) > 0 and found != kind:
        fail(context, ErrorCode.RUNTIME_ERROR, c("tolist() is annotated to give elements of another type"))
        return False
    return True


@native
def list_of_tensor(tensor: Tensor, data: Address, dim: int, descriptor: Array[Byte]) -> List:
    """Return the nested list of the elements from address ``data`` on, along the dimensions from ``dim`` on."""
    element = cast("Array[Byte]", offset(descriptor, 1))
    size = sizes_of(tensor)[dim]
    result = list_of(element, size)
    for i in range(size):
        place = offset(data, i * strides_of(tensor)[dim] * element_bytes(tensor.dtype))
        word = 0
        if dim + 1 < tensor.rank:
            word = word_of(list_of_tensor(tensor, place, dim + 1, element))
        elif is_floating(tensor.dtype):
            word = bits_of(float_at(tensor.dtype, place))
        else:
            word = int_at(tensor.dtype, place)
        append(result, word)
    return result


@native
def list_of_sizes(tensor: Tensor) -> List:
    return list_of_words(c("i"), sizes_of(tensor), tensor.rank)


@native
def list_of_strides(tensor: Tensor) -> List:
    return list_of_words(c("i"), strides_of(tensor), tensor.rank)


@native
def join_parts(context: Context, parts: List, dim: int, stacks: bool) -> Tensor | None:
    """Return ``cat`` or ``stack`` of tensors of one dtype and rank; None after an error."""
    if parts.length == 0:
        fail(context, ErrorCode.RUNTIME_ERROR, c("expected a non-empty list of Tensors"))
        return None
    first = tensor_in(parts, 0)
    rank = first.rank + int(stacks)
    at = dim + rank if dim < 0 else dim
    if rank > MAX_RANK:
        fail_number(context, ErrorCode.NOT_BUILT, c("a tensor of %lld dimensions"), rank)
        return None
    if at < 0 or at >= rank:
        fail_number(context, ErrorCode.INDEX_ERROR, c("Dimension out of range (got %lld)"), dim)
        return None
    sizes = cast("Array[int]", stack(8 * 64))
    total = 0
    for i in range(parts.length):
        each = tensor_in(parts, i)
        if each.dtype != first.dtype or each.rank != first.rank:
            fail(context, ErrorCode.NOT_BUILT, c("tensors that are joined have to be of one dtype and one rank"))
            return None
        k = 0
        for j in range(rank):
            if j == at:
                total += 1 if stacks else sizes_of(each)[k]
                k += int(not stacks)
            else:
                if sizes_of(each)[k] != sizes_of(first)[k]:
                    fail(context, ErrorCode.RUNTIME_ERROR, c("tensors that are joined have to be of the same sizes"))
                    return None
                sizes[j] = sizes_of(first)[k]
                k += 1
    sizes[at] = total
    result = empty(context, first.dtype, rank, sizes)
    if result is None:
        return None
    place = 0
    bytes = element_bytes(result.dtype)
    strides = cast("Array[int]", stack(8 * 64))
    for i in range(parts.length):
        each = tensor_in(parts, i)
        k = 0
        for j in range(rank):
            if not (stacks and j == at):
                strides[k] = strides_of(result)[j]
                k += 1
        to = offset(result.data, place * strides_of(result)[at] * bytes)
        if numel(each) > 0:
            copy_strided(to, strides, each.data, strides_of(each), sizes_of(each), each.rank, bytes)
        place += 1 if stacks else sizes_of(each)[at]
    return result


@native
def tensor_in(items: List, index: int) -> Tensor:
    return view(Tensor, items.items[index])


@native
def empty_of_list(context: Context, dtype: int, sizes: List) -> Tensor | None:
    return empty(context, dtype, sizes.length, sizes.items)


@native
def empty_like(context: Context, dtype: int, tensor: Tensor) -> Tensor | None:
    """Return an uninitialized tensor of the same sizes. Its strides are the same if these have no gaps or overlaps.
    None is returned after an error."""
    if is_dense(tensor):
        return empty_strided(context, dtype, tensor.rank, sizes_of(tensor), strides_of(tensor))
    return empty(context, dtype, tensor.rank, sizes_of(tensor))


@native
def boxed_item(tensor: Tensor) -> Object:
    """Return the only element as a boxed number."""
    if tensor.dtype == COMPLEX64:
        halves = cast("Array[Float32]", tensor.data)
        return new_complex(halves[0], halves[1])
    if tensor.dtype == COMPLEX128:
        parts = cast("Array[float]", tensor.data)
        return new_complex(parts[0], parts[1])
    if is_floating(tensor.dtype):
        return new_box(Kind.FLOAT, bits_of(float_at(tensor.dtype, tensor.data)))
    kind = Kind.BOOL if tensor.dtype == BOOL else Kind.INT
    return new_box(kind, int_at(tensor.dtype, tensor.data))


@native
def tensor_of_complex(context: Context, number: Complex, dtype: int) -> Tensor | None:
    """Return a tensor of a complex dtype with one element and no dimensions; None after an error."""
    tensor = empty(context, dtype, 0, NULL)
    if tensor is None:
        return None
    if dtype == COMPLEX64:
        halves = cast("Array[Float32]", tensor.data)
        halves[0] = number.real
        halves[1] = number.imaginary
    else:
        parts = cast("Array[float]", tensor.data)
        parts[0] = number.real
        parts[1] = number.imaginary
    return tensor


@native
def copy_into(context: Context, to: Tensor, source: Tensor) -> bool:
    """Copy a tensor into another one, to whose sizes it is broadcast. Return False, with an error, if the dtypes
    differ or the sizes do not broadcast."""
    extra = to.rank - source.rank
    if to.dtype != source.dtype:
        fail(context, ErrorCode.NOT_BUILT, c("an operator in place that would change the dtype of its tensor"))
        return False
    strides = cast("Array[int]", stack(8 * 64))
    good = extra >= 0
    for i in range(to.rank):
        strides[i] = 0
        if good and i >= extra:
            size = sizes_of(source)[i - extra]
            good = size == sizes_of(to)[i] or size == 1
            if size != 1 or sizes_of(to)[i] == 1:
                strides[i] = strides_of(source)[i - extra]
    if not good:
        fail(context, ErrorCode.RUNTIME_ERROR, c("the sizes of two tensors do not fit together"))
        return False
    if numel(to) > 0:
        copy_strided(to.data, strides_of(to), source.data, strides, sizes_of(to), to.rank, element_bytes(to.dtype))
    return True


@native
def copy_out(context: Context, to: Tensor, source: Tensor) -> bool:
    """Copy a tensor into another one. Return False, with an error, if the dtypes or the sizes differ."""
    is_same = to.dtype == source.dtype and to.rank == source.rank
    if is_same:
        for i in range(to.rank):
            if sizes_of(to)[i] != sizes_of(source)[i]:
                is_same = False
    if not is_same:
        fail(context, ErrorCode.NOT_BUILT, c("an argument 'out' has another dtype or other sizes than the result"))
        return False
    return copy_into(context, to, source)


@native
def tensor_of_items(context: Context, items: List, depth: int, dtype: int) -> Tensor | None:
    """Return a tensor of the numbers in a nested list, ``depth`` levels deep. None is returned after an error.

    ``dtype`` is int64, float32, float64 or bool.
    """
    sizes = cast("Array[int]", stack(8 * 64))
    level: List | None = items
    for i in range(depth):
        sizes[i] = 0
        if level is not None:
            sizes[i] = level.length
            level = view(List, level.items[0]) if level.length > 0 and i + 1 < depth else NULL
    tensor = empty(context, dtype, depth, sizes)
    if tensor is None:
        return None
    if write_items(context, tensor, items, 0, 0) < 0:
        release(tensor)
        return None
    return tensor


@native
def write_items(context: Context, tensor: Tensor, items: List, dim: int, start: int) -> int:
    """Write the numbers of a nested list to a tensor, from element ``start`` on. Return the index after the last
    element; -1 if the list is not rectangular, with an error."""
    if items.length != sizes_of(tensor)[dim]:
        fail(context, ErrorCode.VALUE_ERROR, c("the lists that a tensor is made of have different lengths"))
        return -1
    at = start
    for i in range(items.length):
        word = items.items[i]
        if dim + 1 < tensor.rank:
            at = write_items(context, tensor, view(List, word), dim + 1, at)
            if at < 0:
                return -1
        else:
            write_number(tensor, at, items.element[0] == ord("f"), word)
            at += 1
    return at


@native
def write_number(tensor: Tensor, at: int, is_float: bool, word: int) -> None:
    """Write an element of a contiguous tensor of int64, a float dtype or bool."""
    value = float_of(word) if is_float else float(word)
    if tensor.dtype == DOUBLE:
        cast("Array[float]", tensor.data)[at] = value
    elif tensor.dtype == FLOAT:
        cast("Array[Float32]", tensor.data)[at] = value
    elif tensor.dtype == BOOL:
        cast("Array[Byte]", tensor.data)[at] = int(value != 0.0)
    else:
        cast("Array[int]", tensor.data)[at] = int(value) if is_float else word
