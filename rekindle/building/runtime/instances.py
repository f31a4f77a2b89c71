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
    exchange,
    extern,
    native,
    offset,
    size_of,
)
from rekindle.building.lowlevel.types import not_python
from rekindle.building.runtime.c_library import free, malloc, memcpy, snprintf, strlen
from rekindle.building.runtime.descriptors import is_plain
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
"""``rekindle``, as the first eight bytes of a file of weights."""
HEADER_BYTES: Final = 64
"""Magic, format, the identity of the library, the bytes of the file, its checksum, and zeros."""


class Instance(Context):
    busy: Array[int]
    """One word: 1 while a call runs."""
    attributes: Array[int]
    descriptors: Array[Array[Byte]]
    count: int
    """How many attributes there are."""
    weights: Storage | None
    """The mapped file."""


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


@native
def new_instance(descriptors: Array[Array[Byte]], count: int) -> Instance | None:
    """Return an instance with attributes that are all zero; None if there is no memory."""
    memory = malloc(size_of(Instance) + 8 + MESSAGE_BYTES)
    if memory is None:
        return None
    instance = cast("Instance", memory)
    instance.code = 0
    instance.busy = cast("Array[int]", offset(memory, size_of(Instance)))
    instance.busy[0] = 0
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
    return instance


@native
def close_instance(instance: Instance | None) -> None:
    if instance is None:
        return
    for i in range(instance.count):
        if not is_plain(instance.descriptors[i]):
            release(object_of(instance.attributes[i]))
    free(instance.attributes)
    if instance.weights is not None:
        munmap(instance.weights.address, instance.weights.bytes)
        free(instance.weights)
    free(instance)


@native
def checksum(words: Array[int], count: int) -> int:
    """Return a checksum of 64-bit words that knows their order: their sum, each multiplied with an odd number."""
    found = 0
    for i in range(count):
        found += words[i] * (2 * i + 1)
    return found


@native
def map_weights(instance: Instance, path: Array[Byte] | None, identity: int, bytes: int) -> bool:
    """Map the file of weights into memory, privately: what a program writes is seen by its instance alone.

    Note an error if the file is not that of the library, or damaged."""
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
    instance.weights = new_storage(memory, bytes, Owner.INSTANCE, NULL)
    if words[0] != MAGIC or words[1] != 1 or words[2] != identity or words[3] != bytes:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the file of weights is not that of this library"))
        return False
    body = cast("Array[int]", offset(memory, HEADER_BYTES))
    if checksum(body, (bytes - HEADER_BYTES) // 8) != words[4]:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the file of weights is damaged: its checksum differs"))
        return False
    return True


@native
def weight(instance: Instance, storage: Storage, start: int, dtype: int, rank: int, layout: Array[int]) -> Tensor:
    """Return a tensor in the file of weights; ``layout`` has its sizes and its strides."""
    retain(storage)
    tensor = new_view(storage, offset(storage.address, start), dtype, rank)
    memcpy(sizes_of(tensor), layout, 8 * rank)
    memcpy(strides_of(tensor), offset(layout, 8 * rank), 8 * rank)
    return tensor


@native
def begin_call(instance: Instance | None, arguments: Address | None, results: Address | None) -> int:
    """Return 0 if a call may run now, or an error code."""
    if instance is None:
        return ErrorCode.ARGUMENT_ERROR
    if exchange(instance.busy, 0, 1) != 0:
        return ErrorCode.BUSY
    instance.code = 0
    instance.message[0] = 0
    instance.place = NULL
    if arguments is None or results is None:
        fail(instance, ErrorCode.ARGUMENT_ERROR, c("the arguments or the result are a null pointer"))
    return instance.code


@native
def end_call(instance: Instance) -> int:
    """Append the place of an error to its message, and return its code."""
    code = instance.code
    if code != 0 and instance.place is not None:
        length = strlen(instance.message)
        if length < MESSAGE_BYTES:
            snprintf(offset(instance.message, length), MESSAGE_BYTES - length, c("\n%s"), instance.place)
    exchange(instance.busy, 0, 0)
    return code
