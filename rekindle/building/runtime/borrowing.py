"""Borrowed memory: the caller lends it for the duration of a call, and it is copied if objects of the library still
refer to it at the end."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import NULL, Array, Byte, bits_of, c, native, offset
from rekindle.building.runtime.c_library import aligned_alloc, memcpy
from rekindle.building.runtime.descriptors import CLOSE, advance, after, is_plain
from rekindle.building.runtime.dicts import dict_find, dict_of, dict_set
from rekindle.building.runtime.handles import entry_of
from rekindle.building.runtime.instances import Instance
from rekindle.building.runtime.lists import append, list_of
from rekindle.building.runtime.memory import Owner, fields_of_record, release, release_handle
from rekindle.building.runtime.objects import (
    Dict,
    Kind,
    List,
    Object,
    Record,
    Tensor,
    abort_if_null,
    object_of,
    word_of,
)


@native
def keep_borrowed(instance: Instance) -> None:
    """Copy memory of the caller that attributes and objects still refer to at the end of a call."""
    if instance.borrowed[0] == 0:
        return
    pending = list_of(c("i"), 16)
    for i in range(instance.count):
        if not is_plain(instance.descriptors[i]):
            append(pending, instance.attributes[i])
    for i in range(instance.handles.capacity):
        append(pending, entry_of(instance.handles, i)[0])
    seen = dict_of(c("i"), c("b"))
    while pending.length > 0:
        pending.length -= 1
        each = object_of(pending.items[pending.length])
        if each is not None:
            if each.kind == Kind.TENSOR:
                keep_memory(cast("Tensor", each))
            elif each.kind >= Kind.LIST and each.kind <= Kind.RECORD and dict_find(seen, word_of(each)) < 0:
                dict_set(seen, word_of(each), 1)
                append_items(pending, each)
    release(seen)
    release(pending)


@native
def append_items(pending: List, each: Object) -> None:
    """Append the objects that a container or an instance of a class refers to, to ``pending``."""
    if each.kind == Kind.LIST:
        items = cast("List", each)
        for i in range(items.length):
            append_object(pending, items.element, items.items[i])
    elif each.kind == Kind.DICT:
        pairs = cast("Dict", each)
        for i in range(pairs.used):
            if pairs.entries[3 * i] != 0:
                append_object(pending, pairs.key, pairs.entries[3 * i + 1])
                append_object(pending, pairs.value, pairs.entries[3 * i + 2])
    else:
        descriptor = advance(cast("Record", each).fields, 1)
        i = 0
        while descriptor[0] != CLOSE:
            append_object(pending, descriptor, fields_of_record(cast("Record", each))[i])
            descriptor = after(descriptor)
            i += 1


@native
def append_object(pending: List, descriptor: Array[Byte], word: int) -> None:
    if not is_plain(descriptor):
        append(pending, word)


@native
def keep_memory(tensor: Tensor) -> None:
    """Copy the memory of a tensor's storage if it belongs to the caller, point the tensor to the copy, and delete its
    PyTorch tensor.

    The storage stores its previous address in ``handle``, so that its other tensors can be moved as well.
    """
    storage = tensor.storage
    if storage.owner == Owner.CALLER:
        count = cast("Array[int]", storage.handle)
        count[0] = count[0] - 1
        memory = abort_if_null(aligned_alloc(64, ((storage.bytes + 63) // 64) * 64 + 64))
        memcpy(memory, storage.address, storage.bytes)
        storage.handle = storage.address
        storage.address = memory
        storage.owner = Owner.LIBRARY
    if storage.owner == Owner.LIBRARY and storage.handle is not None:
        place = bits_of(tensor.data) - bits_of(storage.handle)
        if 0 <= place and place < storage.bytes:
            tensor.data = offset(storage.address, place)
            if tensor.handle is not None:
                release_handle(tensor.handle)
                tensor.handle = NULL
