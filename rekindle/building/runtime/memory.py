"""Memory management: objects are released when their reference counts become zero."""

from __future__ import annotations

from enum import IntEnum
from typing import cast

from rekindle.building.lowlevel import Address, Array, bits_of, extern, native, offset, size_of, stack
from rekindle.building.runtime.c_library import free
from rekindle.building.runtime.descriptors import CLOSE, advance, after, is_plain
from rekindle.building.runtime.objects import Dict, Kind, List, Object, Record, Storage, Tensor, object_of


class Owner(IntEnum):
    """The owner of a storage, which determines how it is freed."""

    LIBRARY = 0
    CALLER = 1
    """The caller of the library: the storage is valid during the call. ``handle`` is the address of a word that
    counts such storages."""
    TORCH = 2
    """The PyTorch tensor in ``handle``."""
    INSTANCE = 3
    """The instance: the storage holds weights."""


@extern
def release_handle(handle: Address) -> None:
    """Delete a PyTorch tensor. Libraries without PyTorch define this function as empty."""


@native
def fields_of_record(record: Record) -> Array[int]:
    return cast("Array[int]", offset(record, size_of(Record)))


@native
def release(each: Object | None) -> None:
    """Decrement the reference count of an object, and free the object when the count becomes zero."""
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
    """Free an object, and the objects that only it refers to. These are linked to a chain instead of freed
    recursively, so that long linked lists do not overflow the stack."""
    chain = cast("Array[int]", stack(8))
    chain[0] = 0
    dying = each
    while dying is not None:
        if dying.kind == Kind.LIST:
            drop_items(cast("List", dying), chain)
        elif dying.kind == Kind.DICT:
            drop_entries(cast("Dict", dying), chain)
        elif dying.kind == Kind.RECORD:
            drop_fields(cast("Record", dying), chain)
        elif dying.kind == Kind.TENSOR:
            tensor = cast("Tensor", dying)
            if tensor.handle is not None:
                release_handle(tensor.handle)
            drop(tensor.storage, chain)
        elif dying.kind == Kind.STORAGE:
            release_memory(cast("Storage", dying))
        free(dying)
        dying = object_of(chain[0])
        if dying is not None:
            chain[0] = dying.refs


@native
def drop(each: Object | None, chain: Array[int]) -> None:
    """Decrement the reference count of an object. If it becomes zero, link the object to the chain of objects to
    free."""
    if each is None:
        return
    each.refs -= 1
    if each.refs == 0:
        each.refs = chain[0]
        chain[0] = bits_of(each)


@native
def drop_items(each: List, chain: Array[int]) -> None:
    if not is_plain(each.element):
        for i in range(each.length):
            drop(object_of(each.items[i]), chain)
    free(each.items)


@native
def drop_entries(each: Dict, chain: Array[int]) -> None:
    for i in range(each.used):
        if each.entries[3 * i] != 0:
            if not is_plain(each.key):
                drop(object_of(each.entries[3 * i + 1]), chain)
            if not is_plain(each.value):
                drop(object_of(each.entries[3 * i + 2]), chain)
    free(each.entries)
    free(each.table)


@native
def drop_fields(each: Record, chain: Array[int]) -> None:
    descriptor = advance(each.fields, 1)
    words = fields_of_record(each)
    i = 0
    while descriptor[0] != CLOSE:
        if not is_plain(descriptor):
            drop(object_of(words[i]), chain)
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
