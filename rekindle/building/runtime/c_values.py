"""Values of the C API: arguments that C programs pass, and results that they receive.

A value is three words: its kind, its payload, and a count. Tensors are those of DLPack: a ``DLTensor *`` that is
borrowed for the duration of a call, a ``DLManagedTensor *`` in results::

    typedef struct value {
      int64_t kind;
      union { int64_t i; double f; const char *s; DLTensor *t; struct value *items; };
      int64_t count;
    } value;
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, cast

from rekindle.building.lowlevel import (
    NULL,
    Address,
    Array,
    Byte,
    Struct,
    bits_of,
    c,
    float_of,
    native,
    offset,
    table,
    tabulated,
    view,
)
from rekindle.building.runtime import descriptors, tensors
from rekindle.building.runtime.c_library import calloc, free, malloc, memcpy
from rekindle.building.runtime.complexes import complex_of_words, new_complex, write_words
from rekindle.building.runtime.descriptors import (
    CLOSE,
    advance,
    after,
    as_element,
    descriptor_of_kind,
    is_plain,
    name_of_class,
)
from rekindle.building.runtime.dicts import dict_of, dict_set, new_record
from rekindle.building.runtime.handles import Handles, free_handle, identity_of, new_handle, object_of_handle
from rekindle.building.runtime.instances import Instance
from rekindle.building.runtime.lists import append, list_of, release_word
from rekindle.building.runtime.memory import Owner, fields_of_record, release
from rekindle.building.runtime.objects import (
    MAX_DEPTH,
    Box,
    Complex,
    Context,
    Dict,
    ErrorCode,
    Kind,
    List,
    Object,
    Record,
    Tensor,
    Text,
    abort_if_null,
    fail,
    fail_number,
    new_box,
    object_of,
    retain,
    word_of,
)
from rekindle.building.runtime.tensors import (
    contiguous_copy,
    element_bytes,
    extent,
    new_storage,
    new_view,
    sizes_of,
    strides_of,
    write_contiguous,
)
from rekindle.building.runtime.texts import data_of, is_utf8, text_of
from rekindle.building.runtime.values import same_name


class CKind(IntEnum):
    """The kinds of values in C."""

    NONE = 0
    INT = 1
    FLOAT = 2
    BOOL = 3
    STRING = 4
    TENSOR = 5
    LIST = 6
    TUPLE = 7
    DICT = 8
    """Its items are a key, its value, the next key and so on; ``count`` counts pairs."""
    COMPLEX = 9
    """The payload is the bits of the real part, ``count`` those of the imaginary part; both are floats."""
    OBJECT = 10
    """An instance of a class: the payload is a handle, and ``count`` identifies the table of handles to which it
    belongs."""


MAX_ITEMS: Final = 1 << 40
"""Limit for the number of items of a container, more than memory can hold."""
MAX_ELEMENTS: Final = 1e15


class CValue(Struct):
    kind: int
    payload: int
    count: int


class DLTensor(Struct):
    """The tensor structure of DLPack. ``rank_and_dtype`` holds ``ndim`` in its lower half, then the code, the bits
    and the lanes of the dtype."""

    data: Address | None
    device: int
    rank_and_dtype: int
    shape: Array[int] | None
    strides: Array[int] | None
    byte_offset: int


class DLManagedTensor(DLTensor):
    manager_context: Object
    deleter: Address


@native
def item_of(items: int, index: int) -> CValue:
    return cast("CValue", offset(view(Address, items), 24 * index))


@native
def dtype_of_dlpack(word: int) -> int:
    """Return PyTorch's number of the dtype that DLPack describes; -1 if there is none."""
    code = (word >> 32) & 255
    bits = (word >> 40) & 255
    if ((word >> 48) & 65535) != 1:
        return -1
    if code == 2:
        return tensors.FLOAT if bits == 32 else tensors.DOUBLE if bits == 64 else tensors.HALF if bits == 16 else -1
    if code == 0:
        if bits == 64:
            return tensors.INT64
        return tensors.INT32 if bits == 32 else tensors.INT16 if bits == 16 else tensors.INT8 if bits == 8 else -1
    if code == 1:
        return tensors.UINT8 if bits == 8 else -1
    if code == 4:
        return tensors.BFLOAT16 if bits == 16 else -1
    if code == 5:
        return tensors.COMPLEX64 if bits == 64 else tensors.COMPLEX128 if bits == 128 else -1
    return tensors.BOOL if code == 6 and bits == 8 else -1


@native
def dlpack_of_dtype(dtype: int) -> int:
    """Return the DLPack code, bits and lanes of a dtype in one word, as they follow ``ndim`` in memory."""
    code = 0
    if tensors.is_floating(dtype):
        code = 4 if dtype == tensors.BFLOAT16 else 2
    if dtype == tensors.UINT8:
        code = 1
    if dtype == tensors.BOOL:
        code = 6
    if dtype == tensors.COMPLEX64 or dtype == tensors.COMPLEX128:
        code = 5
    return (code | ((8 * element_bytes(dtype)) << 8) | (1 << 16)) << 32


@native
def borrow_tensor(context: Context, given: DLTensor) -> Tensor | None:
    """Return a tensor that uses the memory of the caller; None after an error."""
    if given is None:
        fail(context, ErrorCode.ARGUMENT_ERROR, c("a tensor is a null pointer"))
        return None
    rank = given.rank_and_dtype & 4294967295
    dtype = dtype_of_dlpack(given.rank_and_dtype)
    if dtype < 0 or rank > 32:
        fail(context, ErrorCode.ARGUMENT_ERROR, c("a tensor has a dtype or a rank that is not known"))
        return None
    if (given.device & 4294967295) != 1:
        fail(context, ErrorCode.ARGUMENT_ERROR, c("a tensor is not in the memory of the CPU"))
        return None
    shape = given.shape
    if shape is None and rank > 0:
        fail(context, ErrorCode.ARGUMENT_ERROR, c("a tensor has no sizes"))
        return None
    strides = given.strides
    for i in range(rank):
        if shape is not None and shape[i] < 0:
            fail(context, ErrorCode.ARGUMENT_ERROR, c("a tensor has a negative size"))
            return None
        if strides is not None and strides[i] < 0:
            fail(context, ErrorCode.ARGUMENT_ERROR, c("a tensor has a negative stride"))
            return None
    memory = given.data
    if memory is None:
        if not is_empty(rank, shape):
            fail(context, ErrorCode.ARGUMENT_ERROR, c("a tensor has no memory"))
            return None
        memory = cast("Address", given)
    if not is_addressable(rank, shape, strides):
        fail(context, ErrorCode.ARGUMENT_ERROR, c("a tensor has sizes or strides that no memory has"))
        return None
    data = offset(memory, given.byte_offset)
    borrowed = cast("Instance", context).borrowed
    borrowed[0] = borrowed[0] + 1
    tensor = new_view(new_storage(data, 0, Owner.CALLER, cast("Address", borrowed)), data, dtype, rank)
    if shape is not None:
        memcpy(sizes_of(tensor), shape, 8 * rank)
    if strides is None:
        write_contiguous(rank, sizes_of(tensor), strides_of(tensor))
    else:
        memcpy(strides_of(tensor), strides, 8 * rank)
    tensor.storage.bytes = extent(rank, sizes_of(tensor), strides_of(tensor)) * element_bytes(dtype)
    return tensor


@native
def is_addressable(rank: int, sizes: Array[int] | None, strides: Array[int] | None) -> bool:
    """Return whether a memory may have so many elements, that far away. In integers the products could overflow."""
    count = 1.0
    last = 0.0
    if sizes is not None:
        for i in range(rank):
            count = count * float(max(sizes[i], 1))
            if strides is not None:
                last += float(max(sizes[i] - 1, 0)) * float(strides[i])
    return count <= MAX_ELEMENTS and last <= MAX_ELEMENTS


@native
def is_empty(rank: int, sizes: Array[int] | None) -> bool:
    """Return whether one of the sizes is 0. They are not multiplied, since the product could overflow."""
    if sizes is not None:
        for i in range(rank):
            if sizes[i] == 0:
                return True
    return False


@native
def delete_managed(managed: DLManagedTensor) -> None:
    """Free a tensor in a result; it is the deleter of the DLPack structure."""
    if managed is not None:
        release(managed.manager_context)
        free(managed)


@native
def lend_tensor(context: Context, tensor: Tensor, in_use: bool) -> DLManagedTensor | None:
    """Return a tensor as a DLPack structure, which the caller must delete; None after an error.

    The tensor is copied if its memory belongs to the caller or is that of weights, or if something else uses the
    tensor, such as an attribute or another result. ``in_use`` is whether the object that contains the tensor is used
    elsewhere.
    """
    owner = tensor.storage.owner
    is_shared = in_use or tensor.refs > 1 or tensor.storage.refs > 1
    kept = tensor
    if is_shared or owner == Owner.CALLER or owner == Owner.INSTANCE:
        copy = contiguous_copy(context, tensor)
        if copy is None:
            return None
        kept = copy
    else:
        retain(tensor)
    managed = cast("DLManagedTensor", abort_if_null(calloc(1, 64)))
    managed.data = kept.data
    managed.device = 1
    managed.rank_and_dtype = kept.rank | dlpack_of_dtype(kept.dtype)
    managed.shape = sizes_of(kept)
    managed.strides = strides_of(kept)
    managed.manager_context = kept
    managed.deleter = cast("Address", delete_managed)
    return managed


# ----------------------------------------------------------------------------------------------------------- arguments


@native
def wrong_kind(context: Context, value: CValue, wanted: int) -> int:
    fail_number(
        context, ErrorCode.ARGUMENT_ERROR, c("an argument is of kind %lld, which is not that of its type"), value.kind
    )
    return wanted


@native
def word_from_c(context: Context, descriptor: Array[Byte], value: CValue) -> int:
    """Return an argument of the C API as a 64-bit word, with a reference that the caller owns. Errors are stored in
    ``context``."""
    first = descriptor[0]
    kind = value.kind
    if first == descriptors.OPTIONAL:
        if kind == CKind.NONE:
            return 0
        word = word_from_c(context, advance(descriptor, 1), value)
        return boxed(advance(descriptor, 1), word)
    if first == descriptors.UNION:
        alternative = advance(descriptor, 1)
        while alternative[0] != CLOSE:
            if fits(context, alternative, value):
                return boxed(alternative, word_from_c(context, alternative, value))
            alternative = after(alternative)
        if kind == CKind.BOOL and has_alternative(descriptor, descriptors.INT):  # a bool is an int
            return word_of(new_box(Kind.BOOL, int(value.payload != 0)))
        if (kind == CKind.INT or kind == CKind.BOOL) and has_alternative(descriptor, descriptors.FLOAT):
            number = value.payload if kind == CKind.INT else int(value.payload != 0)
            return word_of(new_box(Kind.FLOAT, bits_of(float(number))))
        return wrong_kind(context, value, 0)
    if first == descriptors.ANY:
        if kind == CKind.NONE:
            return 0
        known = descriptor_of_c(kind)
        if known is not None:
            return boxed(known, word_from_c(context, known, value))
        if kind == CKind.OBJECT:
            return object_from_c(context, NULL, value)
        return container_from_c(context, value)
    if kind == CKind.OBJECT and (first == descriptors.OPEN or first == descriptors.HANDLE):
        name = name_of_class(descriptor)
        return wrong_kind(context, value, 0) if name is None else object_from_c(context, name, value)
    if first == descriptors.INT and kind == CKind.INT:
        return value.payload
    if first == descriptors.FLOAT and kind == CKind.FLOAT:
        return value.payload
    if first == descriptors.FLOAT and kind == CKind.INT:
        return bits_of(float(value.payload))
    if first == descriptors.BOOL and kind == CKind.BOOL:
        return int(value.payload != 0)
    if first == descriptors.TEXT and kind == CKind.STRING and value.payload != 0:
        if value.count < 0 or value.count > MAX_ITEMS:
            fail_number(context, ErrorCode.ARGUMENT_ERROR, c("a string has %lld bytes"), value.count)
            return 0
        if not is_utf8(cast("Array[Byte]", view(Address, value.payload)), value.count):
            fail(context, ErrorCode.ARGUMENT_ERROR, c("a string is not UTF-8"))
            return 0
        return word_of(text_of(cast("Array[Byte]", view(Address, value.payload)), value.count))
    if first == descriptors.COMPLEX and kind == CKind.COMPLEX:
        return word_of(complex_of_words(value.payload, value.count))
    if first == descriptors.COMPLEX and (kind == CKind.FLOAT or kind == CKind.INT):
        real = float(value.payload) if kind == CKind.INT else float_of(value.payload)
        return word_of(new_complex(real, 0.0))
    if first == descriptors.TENSOR and kind == CKind.TENSOR:
        return bits_of(borrow_tensor(context, view(DLTensor, value.payload)))
    if first == descriptors.NONE and kind == CKind.NONE:
        return 0
    if kind < CKind.STRING or kind > CKind.DICT or kind == CKind.TENSOR:
        return wrong_kind(context, value, 0)
    if value.count < 0 or value.count > MAX_ITEMS:
        fail_number(context, ErrorCode.ARGUMENT_ERROR, c("an argument has %lld items"), value.count)
        return 0
    if value.count > 0 and value.payload == 0:
        fail(context, ErrorCode.ARGUMENT_ERROR, c("an argument has items, and no pointer to them"))
        return 0
    if first == descriptors.LIST and kind == CKind.LIST:
        return word_of(list_from_c(context, advance(descriptor, 1), value))
    if first == descriptors.DICT and kind == CKind.DICT:
        return word_of(dict_from_c(context, advance(descriptor, 1), value))
    if first == descriptors.OPEN and kind == CKind.TUPLE:
        return record_from_c(context, descriptor, value)
    return wrong_kind(context, value, 0)


@native
def object_from_c(context: Context, name: Array[Byte] | None, value: CValue) -> int:
    """Return the object that an argument refers to, with a new reference; None after an error. ``name`` is the name
    of the required class, null if any class is accepted."""
    each = live_object(context, value)
    if each is None:
        fail(context, ErrorCode.ARGUMENT_ERROR, c("an object was freed, or belongs to another instance"))
    elif name is not None and not is_of_class(each, name):
        fail(context, ErrorCode.ARGUMENT_ERROR, c("an object is of another class than the method takes"))
    else:
        retain(each)
        return word_of(each)
    return 0


@native
def live_object(context: Context, value: CValue) -> Object | None:
    """Return the object that an argument refers to; None if the instance has no such handle."""
    handles = cast("Instance", context).handles
    if value.kind != CKind.OBJECT or value.count != identity_of(handles):
        return None
    return object_of_handle(handles, value.payload)


@native
def is_of_class(each: Object, name: Array[Byte]) -> bool:
    own = name_of_class(cast("Record", each).fields)
    return own is not None and same_name(own, name)


@native
def has_alternative(descriptor: Array[Byte], wanted: int) -> bool:
    """Return whether a type is among the alternatives of a union."""
    alternative = advance(descriptor, 1)
    while alternative[0] != CLOSE:
        if alternative[0] == wanted:
            return True
        alternative = after(alternative)
    return False


@native
def has_items(value: CValue) -> bool:
    """Return whether an argument is a container whose items can be read."""
    return value.count >= 0 and value.count <= MAX_ITEMS and (value.count == 0 or value.payload != 0)


@native
def fits(context: Context, descriptor: Array[Byte], value: CValue) -> bool:
    """Return whether an argument has the type of ``descriptor`` without a conversion."""
    first = descriptor[0]
    kind = value.kind
    if first == descriptors.ANY:
        return True
    if first == descriptors.OPTIONAL:
        return kind == CKind.NONE or fits(context, advance(descriptor, 1), value)
    if first == descriptors.NONE:
        return kind == CKind.NONE
    if first == descriptors.UNION:
        alternative = advance(descriptor, 1)
        while alternative[0] != CLOSE:
            if fits(context, alternative, value):
                return True
            alternative = after(alternative)
        return False
    known = descriptor_of_c(kind)
    if known is not None:
        return known[0] == first
    if kind == CKind.OBJECT:
        name = name_of_class(descriptor) if first == descriptors.OPEN or first == descriptors.HANDLE else NULL
        each = live_object(context, value)
        return name is not None and each is not None and is_of_class(each, name)
    if not has_items(value):
        return False
    if first == descriptors.LIST and kind == CKind.LIST:
        return all_fit(context, advance(descriptor, 1), value, 0, 1, value.count)
    if first == descriptors.DICT and kind == CKind.DICT:
        keys = advance(descriptor, 1)
        return all_fit(context, keys, value, 0, 2, value.count) and all_fit(
            context, after(keys), value, 1, 2, value.count
        )
    if first != descriptors.OPEN or kind != CKind.TUPLE or field_count(descriptor) != value.count:
        return False
    part = advance(descriptor, 1)
    for i in range(value.count):
        if not fits(context, part, item_of(value.payload, i)):
            return False
        part = after(part)
    return True


@native
def all_fit(context: Context, descriptor: Array[Byte], value: CValue, first: int, step: int, count: int) -> bool:
    for i in range(count):
        if not fits(context, descriptor, item_of(value.payload, first + step * i)):
            return False
    return True


@native
def common_kind(context: Context, value: CValue, first: int, step: int, count: int) -> Array[Byte]:
    """Return the descriptor of the common type of an argument's items; ``a`` (any value) if they differ or are
    containers."""
    if count > 0:
        known = descriptor_of_c(item_of(value.payload, first).kind)
        if known is not None and all_fit(context, known, value, first, step, count):
            return known
    return c("a")


@native
def container_from_c(context: Context, value: CValue) -> int:
    """Return an argument whose declared type is not a container type, such as Any, as the container that its kind
    determines. One that is nested too deeply is an error."""
    kind = value.kind
    if not has_items(value) or kind < CKind.LIST or kind > CKind.DICT:
        return wrong_kind(context, value, 0)
    if context.depth >= MAX_DEPTH:  # a value of C may contain itself
        fail(context, ErrorCode.ARGUMENT_ERROR, c("an argument has containers in containers, more than 1000 deep"))
        return 0
    context.depth += 1
    found = items_from_c(context, value)
    context.depth -= 1
    return found


@native
def items_from_c(context: Context, value: CValue) -> int:
    """Return an argument, a container, as the container that its kind and the kinds of its items determine."""
    kind = value.kind
    if kind == CKind.LIST:
        return word_of(list_from_c(context, common_kind(context, value, 0, 1, value.count), value))
    if kind == CKind.DICT:
        key = c("s") if value.count == 0 else common_kind(context, value, 0, 2, value.count)
        if key[0] != descriptors.TEXT and not is_plain(key):
            return wrong_kind(context, value, 0)
        return word_of(pairs_from_c(context, key, common_kind(context, value, 1, 2, value.count), value))
    if value.count > 3:
        fail(context, ErrorCode.ARGUMENT_ERROR, c("a tuple of more than three parts, for a parameter of any type"))
        return 0
    index = 0
    for i in range(3):
        letter = 0
        if i < value.count:
            known = descriptor_of_c(item_of(value.payload, i).kind)
            letter = letter_index(known) if known is not None else 7
        index = 8 * index + letter
    return record_from_c(context, advance(table(small_tuples), 6 * index), value)


LETTERS: Final = "\0ifbstca"


@tabulated
def small_tuples() -> bytes:
    """Return the descriptors of tuples of up to three parts, six bytes each."""
    texts = [f"({a}{b}{c})".replace("\0", "") for a in LETTERS for b in LETTERS for c in LETTERS]
    return b"".join(each.encode().ljust(6, b"\0") for each in texts)


@native
def letter_index(descriptor: Array[Byte]) -> int:
    letters = c("_ifbstca")
    found = 1
    while letters[found] != descriptor[0]:
        found += 1
    return found


@native
def descriptor_of_c(kind: int) -> Array[Byte] | None:
    """Return the descriptor of the type that the kind of an argument determines; None for containers, objects and
    None."""
    if kind == CKind.INT:
        return c("i")
    if kind == CKind.FLOAT:
        return c("f")
    if kind == CKind.BOOL:
        return c("b")
    if kind == CKind.STRING:
        return c("s")
    if kind == CKind.COMPLEX:
        return c("c")
    return c("t") if kind == CKind.TENSOR else NULL


@native
def boxed(descriptor: Array[Byte], word: int) -> int:
    """Return a word as a boxed number if ``descriptor`` is that of an int, a float or a bool, else the word itself."""
    first = descriptor[0]
    if first == descriptors.INT:
        return word_of(new_box(Kind.INT, word))
    if first == descriptors.FLOAT:
        return word_of(new_box(Kind.FLOAT, word))
    if first == descriptors.BOOL:
        return word_of(new_box(Kind.BOOL, word))
    return word


@native
def list_from_c(context: Context, element: Array[Byte], value: CValue) -> List:
    items = list_of(as_element(element), value.count)
    for i in range(value.count):
        append(items, word_from_c(context, element, item_of(value.payload, i)))
        if context.code != 0:
            break
    return items


@native
def dict_from_c(context: Context, key: Array[Byte], value: CValue) -> Dict:
    return pairs_from_c(context, key, after(key), value)


@native
def pairs_from_c(context: Context, key: Array[Byte], element: Array[Byte], value: CValue) -> Dict:
    found = dict_of(key, as_element(element))
    for i in range(value.count):
        first = word_from_c(context, key, item_of(value.payload, 2 * i))
        if context.code != 0:
            release_word(key, first)
            break
        second = word_from_c(context, element, item_of(value.payload, 2 * i + 1))
        dict_set(found, first, second)
        if context.code != 0:
            break
    return found


@native
def field_count(fields: Array[Byte]) -> int:
    descriptor = advance(fields, 1)
    found = 0
    while descriptor[0] != CLOSE:
        descriptor = after(descriptor)
        found += 1
    return found


@native
def record_from_c(context: Context, fields: Array[Byte], value: CValue) -> int:
    """Return an argument as a tuple; the fields after an error are zero. The result is 0, with an error, if the
    number of fields differs."""
    count = field_count(fields)
    if count != value.count:
        return wrong_kind(context, value, 0)
    record = new_record(fields, count)
    descriptor = advance(fields, 1)
    for i in range(count):
        fields_of_record(record)[i] = word_from_c(context, descriptor, item_of(value.payload, i))
        if context.code != 0:
            break
        descriptor = after(descriptor)
    return word_of(record)


# ------------------------------------------------------------------------------------------------------------- results


@native
def word_to_c(context: Context, descriptor: Array[Byte], word: int, value: CValue, in_use: bool) -> None:
    """Convert a result to a value of the C API. Errors are stored in ``context``. ``in_use`` is whether the result
    is a part of an object that the library continues to use; its tensors are then copied."""
    value.kind = CKind.NONE
    value.payload = word
    value.count = 1
    if is_plain(descriptor):
        first = descriptor[0]
        value.kind = (
            CKind.INT if first == descriptors.INT else CKind.FLOAT if first == descriptors.FLOAT else CKind.BOOL
        )
        return
    each = object_of(word)
    value.payload = 0
    value.count = 0
    if each is None:
        return
    is_shared = in_use or each.refs > 1
    if each.kind <= Kind.BOOL:
        word_to_c(context, descriptor_of_kind(each.kind), cast("Box", each).word, value, is_shared)
    elif each.kind == Kind.TEXT:
        text = cast("Text", each)
        copy = abort_if_null(malloc(text.bytes + 1))
        memcpy(copy, data_of(text), text.bytes + 1)
        value.kind = CKind.STRING
        value.payload = bits_of(copy)
        value.count = text.bytes
    elif each.kind == Kind.COMPLEX:
        value.kind = CKind.COMPLEX
        words = cast("Array[int]", offset(value, 8))
        write_words(cast("Complex", each), words)
    elif each.kind == Kind.TENSOR:
        lent = lend_tensor(context, cast("Tensor", each), in_use)
        value.payload = bits_of(lent)
        value.kind = CKind.NONE if lent is None else CKind.TENSOR
    elif each.kind == Kind.LIST:
        items = cast("List", each)
        begin_items(value, CKind.LIST, items.length, items.length)
        for i in range(items.length):
            word_to_c(context, items.element, items.items[i], item_of(value.payload, i), is_shared)
    elif each.kind == Kind.DICT:
        pairs = cast("Dict", each)
        begin_items(value, CKind.DICT, pairs.length, 2 * pairs.length)
        k = 0
        for i in range(pairs.used):
            if pairs.entries[3 * i] != 0:
                word_to_c(context, pairs.key, pairs.entries[3 * i + 1], item_of(value.payload, k), is_shared)
                word_to_c(context, pairs.value, pairs.entries[3 * i + 2], item_of(value.payload, k + 1), is_shared)
                k += 2
    elif name_of_class(cast("Record", each).fields) is not None:
        handles = cast("Instance", context).handles
        value.kind = CKind.OBJECT
        value.payload = new_handle(handles, each)
        value.count = identity_of(handles)
    else:
        record_to_c(context, cast("Record", each), value, is_shared)


@native
def record_to_c(context: Context, record: Record, value: CValue, in_use: bool) -> None:
    begin_items(value, CKind.TUPLE, record.count, record.count)
    descriptor = advance(record.fields, 1)
    for i in range(record.count):
        word_to_c(context, descriptor, fields_of_record(record)[i], item_of(value.payload, i), in_use)
        descriptor = after(descriptor)


@native
def begin_items(value: CValue, kind: int, count: int, items: int) -> None:
    value.kind = kind
    value.count = count
    value.payload = bits_of(abort_if_null(calloc(items + 1, 24)))


@native
def free_c_value(value: CValue) -> None:
    """Free the contents of a result. This thread must not be in a call of the instance."""
    kind = value.kind
    if kind == CKind.STRING:
        free(view(Address, value.payload))
    elif kind == CKind.TENSOR:
        delete_managed(view(DLManagedTensor, value.payload))
    elif kind == CKind.LIST or kind == CKind.TUPLE or kind == CKind.DICT:
        count = 2 * value.count if kind == CKind.DICT else value.count
        for i in range(count):
            free_c_value(item_of(value.payload, i))
        free(view(Address, value.payload))
    elif kind == CKind.OBJECT:
        free_handle(view(Handles, value.count), value.payload)
    value.kind = CKind.NONE
    value.payload = 0
    value.count = 0
