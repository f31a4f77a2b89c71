"""Calls of PyTorch's operators through its stable C ABI (``torch/csrc/stable/c/shim.h``).

An argument is a 64-bit word, a ``StableIValue``: a number, or a handle that the called operator takes ownership of. A
value of an optional type is null or the address of such a word.
"""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import NULL, Address, Array, Byte, Int32, bits_of, c, extern, native, stack, view
from rekindle.building.lowlevel.types import not_python
from rekindle.building.runtime.c_library import memcpy, snprintf
from rekindle.building.runtime.descriptors import TENSOR
from rekindle.building.runtime.lists import append, list_of
from rekindle.building.runtime.memory import Owner, release
from rekindle.building.runtime.objects import (
    MESSAGE_BYTES,
    Box,
    Complex,
    Context,
    ErrorCode,
    Kind,
    List,
    Object,
    Storage,
    Tensor,
    Text,
    fail,
    object_of,
    retain,
    word_of,
)
from rekindle.building.runtime.tensors import (
    BOOL,
    COMPLEX64,
    COMPLEX128,
    DOUBLE,
    FLOAT,
    INT64,
    element_bytes,
    empty,
    fill_word,
    is_floating,
    new_storage,
    new_view,
    sizes_of,
    strides_of,
    tensor_of_complex,
)
from rekindle.building.runtime.texts import data_of


@extern
def torch_call_dispatcher(name: Array[Byte], overload: Array[Byte], words: Array[int], version: int) -> Int32:
    not_python()


@extern
def aoti_torch_cpu_add_Tensor(a: Address, b: Address, alpha: float, out: Address) -> Int32:
    not_python()


@extern
def torch_exception_get_what_without_backtrace() -> Array[Byte]:
    not_python()


@extern
def torch_new_list_reserve_size(size: int, out: Array[int]) -> Int32:
    not_python()


@extern
def torch_list_push_back(handle: Address, word: int) -> Int32:
    not_python()


@extern
def torch_list_size(handle: Address, out: Array[int]) -> Int32:
    not_python()


@extern
def torch_list_get_item(handle: Address, index: int, out: Array[int]) -> Int32:
    not_python()


@extern
def torch_delete_list(handle: Address) -> Int32:
    not_python()


@extern
def torch_new_string_handle(data: Array[Byte], length: int, out: Array[int]) -> Int32:
    not_python()


@extern
def torch_new_stable_ivalue(out: Array[int]) -> Int32:
    not_python()


@extern
def aoti_torch_create_tensor_from_blob_v2(
    data: Address,
    rank: int,
    sizes: Array[int],
    strides: Array[int],
    start: int,
    dtype: Int32,
    device: Int32,
    index: Int32,
    out: Array[int],
    layout: Int32,
    metadata: Address,
    size: int,
) -> Int32:
    not_python()


@extern
def aoti_torch_new_tensor_handle(handle: Address, out: Array[int]) -> Int32:
    not_python()


@extern
def aoti_torch_delete_tensor_object(handle: Address) -> Int32:
    not_python()


@extern
def aoti_torch_get_data_ptr(handle: Address, out: Array[int]) -> Int32:
    not_python()


@extern
def aoti_torch_get_storage_size(handle: Address, out: Array[int]) -> Int32:
    not_python()


@extern
def aoti_torch_get_dim(handle: Address, out: Array[int]) -> Int32:
    not_python()


@extern
def aoti_torch_get_sizes(handle: Address, out: Array[int]) -> Int32:
    not_python()


@extern
def aoti_torch_get_strides(handle: Address, out: Array[int]) -> Int32:
    not_python()


@extern
def aoti_torch_get_dtype(handle: Address, out: Array[Int32]) -> Int32:
    not_python()


@native
def note_error(context: Context) -> None:
    """Store the error that PyTorch raised last in the context."""
    context.code = ErrorCode.RUNTIME_ERROR
    context.name = NULL
    snprintf(context.message, MESSAGE_BYTES, c("%s"), torch_exception_get_what_without_backtrace())


@native
def handle_of(context: Context, tensor: Tensor) -> Address | None:
    """Return the PyTorch tensor of a tensor of the library; None after an error. It is created at the first call,
    and ``tensor`` owns it."""
    if tensor.handle is None:
        out = cast("Array[int]", stack(8))
        failed = aoti_torch_create_tensor_from_blob_v2(
            tensor.data,
            tensor.rank,
            sizes_of(tensor),
            strides_of(tensor),
            0,
            tensor.dtype,
            0,
            -1,
            out,
            0,
            NULL,
            0,
        )
        if failed != 0:
            note_error(context)
            return None
        tensor.handle = view(Address, out[0])
    return tensor.handle


@native
def tensor_argument(context: Context, tensor: Tensor) -> int:
    """Return a new handle of a tensor as a 64-bit word, which the dispatcher takes ownership of; 0 after an error."""
    handle = handle_of(context, tensor)
    if handle is None:
        return 0
    out = cast("Array[int]", stack(8))
    if aoti_torch_new_tensor_handle(handle, out) != 0:
        note_error(context)
        return 0
    return out[0]


@native
def some(word: int) -> int:
    """Return a 64-bit word of the dispatcher as a value of an optional type: the address of a copy."""
    out = cast("Array[int]", stack(8))
    torch_new_stable_ivalue(out)
    cast("Array[int]", view(Address, out[0]))[0] = word
    return out[0]


@native
def optional_tensor_argument(context: Context, tensor: Tensor | None) -> int:
    return 0 if tensor is None else some(tensor_argument(context, tensor))


@native
def optional_number_argument(box: Box | None) -> int:
    return 0 if box is None else some(box.word)


@native
def list_argument(context: Context, items: List, holds_optional: bool) -> int:
    """Return a list of numbers or of tensors as a 64-bit word for the dispatcher. With ``holds_optional``, its elements
    are tensors or None."""
    out = cast("Array[int]", stack(8))
    torch_new_list_reserve_size(items.length, out)
    handle = view(Address, out[0])
    for i in range(items.length):
        word = items.items[i]
        if holds_optional:
            word = optional_tensor_argument(context, view(Tensor, word))
        elif items.element[0] == TENSOR:
            word = tensor_argument(context, view(Tensor, word))
        torch_list_push_back(handle, word)
    return out[0]


@native
def text_argument(text: Text) -> int:
    out = cast("Array[int]", stack(8))
    torch_new_string_handle(data_of(text), text.bytes, out)
    return out[0]


@native
def call_operator(context: Context, name: Array[Byte], overload: Array[Byte], words: Array[int], version: int) -> bool:
    """Call an operator of PyTorch. Its results replace its arguments in ``words``. Return False after an error."""
    if context.code != 0:
        return False
    if torch_call_dispatcher(name, overload, words, version) != 0:
        note_error(context)
        return False
    return True


@native
def storage_with(data: int, given: Object | None) -> Storage | None:
    """Return the storage among those of an argument (a tensor, or a list of tensors) that contains the address
    ``data``; None if there is none."""
    if given is None:
        return None
    if given.kind == Kind.TENSOR:
        storage = cast("Tensor", given).storage
        start = bits_of(storage.address)
        return storage if start <= data and data < start + storage.bytes else None
    if given.kind == Kind.LIST:
        items = cast("List", given)
        if items.element[0] != TENSOR:
            return None
        for i in range(items.length):
            found = storage_with(data, object_of(items.items[i]))
            if found is not None:
                return found
    return None


@native
def drop_tensor(word: int) -> None:
    """Free a result of the dispatcher that is not used."""
    aoti_torch_delete_tensor_object(view(Address, word))


@native
def tensor_result(context: Context, word: int, given: Array[int], count: int, version: int) -> Tensor | None:
    """Return a result of the dispatcher as a tensor, and take ownership of its handle. None is returned after an
    error. If the result is a view of one of the ``given`` arguments, it shares their storage."""
    handle = view(Address, word)
    if handle is None:
        fail(context, ErrorCode.RUNTIME_ERROR, c("an operator of PyTorch returned an undefined tensor"))
        return None
    out = cast("Array[int]", stack(8))
    aoti_torch_get_dim(handle, out)
    rank = out[0]
    out[0] = 0
    aoti_torch_get_dtype(handle, out)
    dtype = out[0] & 255
    if dtype == COMPLEX64 or dtype == COMPLEX128:
        # The elements may be conjugated when they are read, of which the runtime knows nothing.
        out[0] = bits_of(handle)
        if torch_call_dispatcher(c("aten::resolve_conj"), c(""), out, version) != 0:
            note_error(context)
            return None
        handle = view(Address, out[0])
    if aoti_torch_get_data_ptr(handle, out) != 0:
        note_error(context)
        aoti_torch_delete_tensor_object(handle)
        return None
    data = out[0]
    found = cast("Storage", NULL)
    for i in range(count):
        if found is None:
            found = cast("Storage", storage_with(data, object_of(given[i])))
    owner = NULL
    if found is None:
        aoti_torch_new_tensor_handle(handle, out)
        owner = view(Address, out[0])
        aoti_torch_get_storage_size(handle, out)
        found = new_storage(view(Address, data), out[0], Owner.TORCH, owner)
    else:
        retain(found)
    tensor = new_view(found, view(Address, data), dtype, rank)
    tensor.handle = handle
    aoti_torch_get_sizes(handle, out)
    memcpy(sizes_of(tensor), view(Address, out[0]), 8 * rank)
    aoti_torch_get_strides(handle, out)
    memcpy(strides_of(tensor), view(Address, out[0]), 8 * rank)
    return tensor


@native
def list_result(context: Context, word: int, given: Array[int], count: int, version: int) -> List | None:
    """Return a list of tensors that the dispatcher returned; None after an error."""
    handle = view(Address, word)
    out = cast("Array[int]", stack(8))
    torch_list_size(handle, out)
    length = out[0]
    items = list_of(c("t"), length)
    for i in range(length):
        torch_list_get_item(handle, i, out)
        tensor = tensor_result(context, out[0], given, count, version)
        if tensor is not None:
            append(items, word_of(tensor))
    torch_delete_list(handle)
    if items.length < length:
        release(items)
        return None
    return items


@native
def number_as_tensor(context: Context, like: Tensor, kind: int, word: int, default_dtype: int) -> Tensor | None:
    """Return a number as a tensor without dimensions; None after an error. Its dtype is such that PyTorch promotes it
    with ``like`` as it promotes the number.

    That is the dtype of ``like`` unless the number is of a higher category: a float with ints has the default dtype, an
    int with bools int64. Half floats are an error, since PyTorch computes them with a number in a wider dtype, which no
    tensor represents.
    """
    dtype = like.dtype
    if is_floating(dtype) and dtype != FLOAT and dtype != DOUBLE:
        fail(context, ErrorCode.NOT_BUILT, c("an operator of PyTorch with half floats and a number"))
        return None
    if kind == Kind.FLOAT and not is_floating(dtype):
        dtype = default_dtype
    elif kind == Kind.INT and dtype == BOOL:
        dtype = INT64
    return fill_word(context, empty(context, dtype, 0, NULL), kind == Kind.FLOAT, word)


@native
def add_tensors(context: Context, a: Tensor, b: Tensor, factor: float, version: int) -> Tensor | None:
    """Return ``a + factor * b``; None after an error. Tensors of ints alone are an error, since PyTorch takes no float
    factor for them."""
    if not is_floating(a.dtype) and not is_floating(b.dtype) and element_bytes(a.dtype) < 16:
        if a.dtype != COMPLEX64 and b.dtype != COMPLEX64 and b.dtype != COMPLEX128:
            fail(context, ErrorCode.NOT_BUILT, c("a sum of tensors of ints outside of a kernel"))
            return None
    first = handle_of(context, a)
    second = handle_of(context, b)
    if first is None or second is None:
        return None
    out = cast("Array[int]", stack(8))
    if aoti_torch_cpu_add_Tensor(first, second, factor, out) != 0:
        note_error(context)
        return None
    return tensor_result(context, out[0], out, 0, version)


@native
def boxed_number_as_tensor(context: Context, like: Tensor, number: Object, default_dtype: int) -> Tensor | None:
    """Return :func:`number_as_tensor` of a boxed number, whose type is known only at run time; None after an error."""
    if number.kind == Kind.COMPLEX:
        return complex_as_tensor(context, like, cast("Complex", number), default_dtype)
    return number_as_tensor(context, like, number.kind, cast("Box", number).word, default_dtype)


@native
def complex_as_tensor(context: Context, like: Tensor, number: Complex, default_dtype: int) -> Tensor | None:
    dtype = like.dtype
    if dtype != COMPLEX64 and dtype != COMPLEX128:
        if is_floating(dtype) and dtype != FLOAT and dtype != DOUBLE:
            fail(context, ErrorCode.NOT_BUILT, c("an operator of PyTorch with half floats and a number"))
            return None
        wide = dtype if is_floating(dtype) else default_dtype
        dtype = COMPLEX128 if wide == DOUBLE else COMPLEX64
    return tensor_of_complex(context, number, dtype)
