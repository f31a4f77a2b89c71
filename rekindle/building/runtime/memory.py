"""Release objects."""

from __future__ import annotations

from enum import IntEnum
from typing import cast

from rekindle.building.lowlevel import Address, Array, extern, native, offset, size_of
from rekindle.building.runtime.c_library import free
from rekindle.building.runtime.descriptors import CLOSE, advance, after, is_plain
from rekindle.building.runtime.objects import Dict, Kind, List, Object, Record, Storage, Tensor, object_of


class Owner(IntEnum):
    """Who frees the memory of a storage."""

    LIBRARY = 0
    CALLER = 1
    """Whoever called the library: it is valid for the time of the call. ``handle`` is the address of a word that counts
    such storages."""
    TORCH = 2
    """The tensor of PyTorch in ``handle``."""
    INSTANCE = 3
    """The instance: it holds weights."""


@extern
def release_handle(handle: Address) -> None:
    """Delete a tensor of PyTorch; libraries without PyTorch define it as a function that does nothing."""


@native
def fields_of_record(record: Record) -> Array[int]:
    return cast("Array[int]", offset(record, size_of(Record)))


@native
def release(each: Object | None) -> None:
    """Count one reference less, and free the object if there is none left."""
    if each is None:
        return
    each.refs -= 1
    if each.refs == 0:
        destroy(each)


@native
def release_all(objects: Array[Object], count: int) -> None:
    """Release the objects in the slots of a frame."""
    for i in range(count):
        release(objects[i])


@native
def destroy(each: Object) -> None:
    """Free an object, after what it refers to."""
    if each.kind == Kind.LIST:
        release_items(cast("List", each))
    elif each.kind == Kind.DICT:
        release_entries(cast("Dict", each))
    elif each.kind == Kind.RECORD:
        release_fields(cast("Record", each))
    elif each.kind == Kind.TENSOR:
        tensor = cast("Tensor", each)
        if tensor.handle is not None:
            release_handle(tensor.handle)
        release(tensor.storage)
    elif each.kind == Kind.STORAGE:
        release_memory(cast("Storage", each))
    free(each)


@native
def release_items(each: List) -> None:
    if not is_plain(each.element):
        for i in range(each.length):
            release(object_of(each.items[i]))
    free(each.items)


@native
def release_entries(each: Dict) -> None:
    for i in range(each.used):
        if each.entries[3 * i] != 0:
            if not is_plain(each.key):
                release(object_of(each.entries[3 * i + 1]))
            if not is_plain(each.value):
                release(object_of(each.entries[3 * i + 2]))
    free(each.entries)
    free(each.table)


@native
def release_fields(each: Record) -> None:
    descriptor = advance(each.fields, 1)
    words = fields_of_record(each)
    i = 0
    while descriptor[0] != CLOSE:
        if not is_plain(descriptor):
            release(object_of(words[i]))
        descriptor = after(descriptor)
        i += 1


@native
def release_memory(each: Storage) -> None:
    if each.owner == Owner.LIBRARY:
        free(each.address)
    elif each.owner == Owner.TORCH:
        release_handle(each.handle)
    elif each.owner == Owner.CALLER:
        borrowed = cast("Array[int]", each.handle)
        borrowed[0] = borrowed[0] - 1
