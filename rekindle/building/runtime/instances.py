"""Instances of a library: the attributes of a module, its weights, and the last error."""

from __future__ import annotations

from typing import Final, cast

from rekindle.building.lowlevel import (
    NULL,
    Address,
    Array,
    Byte,
    Int32,
    bits_of,
    c,
    cold,
    extern,
    native,
    offset,
    size_of,
)
from rekindle.building.lowlevel.types import not_python
from rekindle.building.runtime.c_library import free, malloc, memcpy, snprintf, strlen
from rekindle.building.runtime.descriptors import is_plain
from rekindle.building.runtime.handles import Handles, begin_running, close_handles, end_running, new_handles
from rekindle.building.runtime.memory import Owner, release
from rekindle.building.runtime.objects import (
    MESSAGE_BYTES,
    Context,
    ErrorCode,
    Storage,
    Tensor,
    allocate_zeroed,
    fail,
    fail_number,
    object_of,
    retain,
)
from rekindle.building.runtime.tensors import new_storage, new_view, sizes_of, strides_of

MAGIC: Final = 0x656C646E696B6572
"""``rekindle``: the first eight bytes of a weights file."""
HEADER_BYTES: Final = 64
"""Size of the header of a weights file: the magic number, the format, the identity of the library, the size of the
file, its checksum, and zeros."""


class Instance(Context):
    handles: Handles
    """The handles of objects that the caller refers to; they also hold the lock of the instance."""
    attributes: Array[int]
    descriptors: Array[Array[Byte]]
    count: int
    """Number of attributes."""
    weights: Storage | None
    """The mapped weights file; null if it could not be mapped, and the instance has no values."""
    borrowed: Array[int]
    """One word: the number of the caller's storages that are in use."""
    level: int
    """The number of the processor level whose functions the instance calls."""
    locale: Address
    """The locale "C", in which calls run; a locale determines how numbers are written and read."""
    outer_locale: Address
    """The locale of the calling thread, stored while a call runs."""


@extern
def open(path: Array[Byte], flags: Int32, *arguments: object) -> Int32:
    not_python()


@extern
def close(file: Int32) -> Int32:
    not_python()


@extern
def lseek(file: Int32, offset: int, whence: Int32) -> int:
    not_python()


@extern
def mmap(address: Address, bytes: int, protection: Int32, flags: Int32, file: Int32, start: int) -> Address:
    not_python()


@extern
def munmap(address: Address, bytes: int) -> Int32:
    not_python()


@extern
def newlocale(categories: Int32, name: Array[Byte], base: Address) -> Address:
    not_python()


@extern
def uselocale(locale: Address) -> Address:
    not_python()


@extern
def freelocale(locale: Address) -> None:
    not_python()


ALL_CATEGORIES: Final = 0x1FBF
"""``LC_ALL_MASK`` of glibc."""


@native
def new_instance(descriptors: Array[Array[Byte]], count: int) -> Instance | None:
    """Return an instance with ``count`` attributes, all zero; None if there is not enough memory."""
    memory = malloc(size_of(Instance) + 8 + MESSAGE_BYTES)
    if memory is None:
        return None
    instance = cast("Instance", memory)
    instance.code = 0
    instance.handles = new_handles()
    instance.borrowed = cast("Array[int]", offset(memory, size_of(Instance)))
    instance.borrowed[0] = 0
    instance.message = cast("Array[Byte]", offset(memory, size_of(Instance) + 8))
    instance.message[0] = 0
    instance.place = NULL
    instance.name = NULL
    instance.is_exact = 0
    instance.depth = 0
    instance.attributes = cast("Array[int]", allocate_zeroed(8 * count + 8))
    instance.descriptors = descriptors
    instance.count = count
    instance.weights = NULL
    instance.level = 0
    instance.locale = newlocale(ALL_CATEGORIES, c("C"), NULL)
    instance.outer_locale = NULL
    return instance


@native
def close_instance(instance: Instance | None) -> None:
    if instance is None:
        return
    close_handles(instance.handles)
    for i in range(instance.count):
        if not is_plain(instance.descriptors[i]):
            release(object_of(instance.attributes[i]))
    free(instance.attributes)
    if instance.locale is not None:
        freelocale(instance.locale)
    if instance.weights is not None:
        munmap(instance.weights.address, instance.weights.bytes)
        free(instance.weights)
    free(instance)


GOLDEN: Final = 0x9E3779B97F4A7C15 - 2**64
FIRST_FACTOR: Final = 0xBF58476D1CE4E5B9 - 2**64
SECOND_FACTOR: Final = 0x94D049BB133111EB - 2**64
"""The constants of splitmix64, as signed words."""


@native
def checksum(words: Array[int], count: int) -> int:
    """Return a hash of 64-bit words: the sum of their mixes with their indices (splitmix64; Steele, Lea and Flood,
    OOPSLA 2014). The order of the sum is free, so that several words are mixed at once."""
    found = 0
    for i in range(count):
        word = words[i] + (i + 1) * GOLDEN
        word = (word ^ ((word >> 30) & 17179869183)) * FIRST_FACTOR
        word = (word ^ ((word >> 27) & 137438953471)) * SECOND_FACTOR
        found += word ^ ((word >> 31) & 8589934591)
    return found


@native
def map_weights(instance: Instance, path: Array[Byte] | None, identity: int, bytes: int) -> bool:
    """Map the weights file into memory; return whether that succeeded. Writes are private to the instance.

    Set an error if the file does not belong to the library or is damaged.
    """
    if path is None:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the path of the weights is a null pointer"))
        return False
    file = open(path, 0)
    if file < 0:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the file of weights cannot be opened"))
        return False
    size = lseek(file, 0, 2)
    if size != bytes:
        close(file)
        fail_number(
            instance,
            ErrorCode.ARGUMENT_ERROR,
            c("the file of weights has %lld bytes: it is not that of this library, or damaged"),
            size,
        )
        return False
    memory = mmap(NULL, bytes, 3, 2, file, 0)
    close(file)
    if bits_of(memory) == -1:
        fail(instance, ErrorCode.MEMORY_ERROR, c("the file of weights cannot be mapped into memory"))
        return False
    words = cast("Array[int]", memory)
    body = cast("Array[int]", offset(memory, HEADER_BYTES))
    if words[0] != MAGIC or words[1] != 1 or words[2] != identity or words[3] != bytes:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the file of weights is not that of this library"))
    elif checksum(body, (bytes - HEADER_BYTES) // 8) != words[4]:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the file of weights is damaged: its checksum differs"))
    if instance.code != 0:
        munmap(memory, bytes)
        return False
    instance.weights = new_storage(memory, bytes, Owner.INSTANCE, NULL)
    return True


PRIVATE_ANONYMOUS: Final = 0x22
"""``MAP_PRIVATE | MAP_ANONYMOUS`` of Linux."""


@native
def open_embedded(instance: Instance, path: Array[Byte] | None, embedded: Address, identity: int, bytes: int) -> bool:
    """Copy the weights that are embedded in the library or, if the path of a file is given, map the file. Return False
    after an error.

    Each instance has a copy, since a program may write to its weights.
    """
    if path is not None:
        return map_weights(instance, path, identity, bytes)
    memory = mmap(NULL, bytes, 3, PRIVATE_ANONYMOUS, -1, 0)
    if bits_of(memory) == -1:
        fail(instance, ErrorCode.MEMORY_ERROR, c("there is no memory for the weights"))
        return False
    memcpy(memory, embedded, bytes)
    instance.weights = new_storage(memory, bytes, Owner.INSTANCE, NULL)
    return True


@native
@cold
def weight(instance: Instance, storage: Storage, start: int, dtype: int, rank: int, layout: Array[int]) -> Tensor:
    """Return a tensor of the weights file, from byte ``start`` on. ``layout`` points to its sizes and strides."""
    retain(storage)
    tensor = new_view(storage, offset(storage.address, start), dtype, rank)
    memcpy(sizes_of(tensor), layout, 8 * rank)
    memcpy(strides_of(tensor), offset(layout, 8 * rank), 8 * rank)
    return tensor


@native
def begin_call(instance: Instance | None, arguments: Address | None, count: int, results: Address | None) -> int:
    """Begin a call: lock the instance, clear its last error and switch to its locale. Return 0 or an error code.

    The caller must call :func:`end_call`, unless the instance is missing or busy.
    """
    if instance is None:
        return ErrorCode.ARGUMENT_ERROR
    if not begin_running(instance.handles):
        return ErrorCode.BUSY
    if instance.locale is not None:
        instance.outer_locale = uselocale(instance.locale)
    instance.code = 0
    instance.message[0] = 0
    instance.place = NULL
    if instance.weights is None:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the instance was not opened: its file of weights was refused"))
    elif count < 0:
        fail_number(instance, ErrorCode.ARGUMENT_ERROR, c("the number of arguments is %lld"), count)
    elif (arguments is None and count > 0) or results is None:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the arguments or the result are a null pointer"))
    return instance.code


@native
def end_call(instance: Instance) -> int:
    """End a call: append the source location of an error to its message, restore the locale, unlock the instance,
    and return the error code."""
    code = instance.code
    if code != 0 and instance.place is not None:
        length = strlen(instance.message)
        if length < MESSAGE_BYTES:
            snprintf(offset(instance.message, length), MESSAGE_BYTES - length, c("\n%s"), instance.place)
    if instance.locale is not None:
        uselocale(instance.outer_locale)
    end_running(instance.handles)
    return code
