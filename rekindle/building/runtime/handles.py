"""Handles: references of C programs to objects of an instance.

A handle is a word: the index of a table entry in its lower half, and the number of previous handles of that entry in
its upper half, so that handles that were freed are recognized. The table is freed with its last handle, or with the
instance if that is closed later.
"""

from __future__ import annotations

from typing import Final, cast

from rekindle.building.lowlevel import Array, Int32, Struct, bits_of, compare_exchange, exchange, extern, native, offset
from rekindle.building.lowlevel.types import not_python
from rekindle.building.runtime.c_library import free, realloc
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import Object, abort_if_null, allocate_zeroed, object_of, retain, word_of

INDEX_MASK: Final = (1 << 32) - 1
REUSE: Final = 1 << 32
"""The difference between successive handles of an entry."""
MAX_HANDLE: Final = (1 << 62) - 1
"""An entry with a larger handle is not used again."""
NO_ENTRY: Final = -1

IDLE: Final = 0
CALLED: Final = 1
FREEING: Final = 2
"""The states of an instance: nothing runs, a method runs, a thread frees a handle."""


class Handles(Struct):
    """The handles of an instance."""

    state: int
    """One of ``IDLE``, ``CALLED`` and ``FREEING``. Another state than ``IDLE`` is a lock of the instance."""
    users: int
    """Number of handles, plus 1 while the instance is open."""
    capacity: int
    free: int
    """Index of the first free entry."""
    entries: Array[int]
    """Three words for each entry: the object, 0 if the entry is free; the handle, or ``-1 - handle`` with the next
    handle if the entry is free; the index of the next free entry."""


@extern
def sched_yield() -> Int32:
    not_python()


@native
def new_handles() -> Handles:
    handles = cast("Handles", allocate_zeroed(40))
    handles.users = 1
    handles.free = NO_ENTRY
    return handles


@native
def entry_of(handles: Handles, index: int) -> Array[int]:
    return cast("Array[int]", offset(handles.entries, 24 * index))


@native
def add_entries(handles: Handles) -> None:
    """Make room for more handles, at least twice as many."""
    first = handles.capacity
    count = 2 * first + 4
    handles.entries = cast("Array[int]", abort_if_null(realloc(handles.entries, 24 * count)))
    handles.capacity = count
    for i in range(count - first):
        entry = entry_of(handles, first + i)
        entry[0] = 0
        entry[1] = -1 - (first + i)
        entry[2] = handles.free
        handles.free = first + i


@native
def new_handle(handles: Handles, each: Object) -> int:
    """Return a new handle of an object; it holds a reference."""
    if handles.free == NO_ENTRY:
        add_entries(handles)
    entry = entry_of(handles, handles.free)
    handles.free = entry[2]
    handles.users += 1
    retain(each)
    entry[0] = word_of(each)
    entry[1] = -1 - entry[1]
    return entry[1]


@native
def is_handle(handles: Handles, handle: int) -> bool:
    """Return whether a word is a handle that has not been freed."""
    if handle < 0 or (handle & INDEX_MASK) >= handles.capacity:
        return False
    return entry_of(handles, handle & INDEX_MASK)[1] == handle


@native
def object_of_handle(handles: Handles, handle: int) -> Object | None:
    """Return the object that a handle refers to; None for a word that is not a handle."""
    return object_of(entry_of(handles, handle & INDEX_MASK)[0]) if is_handle(handles, handle) else None


@native
def free_handle(handles: Handles | None, handle: int) -> None:
    """Free a handle, and the object if nothing else refers to it. Wait until no call of the instance runs."""
    if handles is None:
        return
    lock(handles)
    if is_handle(handles, handle):
        entry = entry_of(handles, handle & INDEX_MASK)
        each = object_of(entry[0])
        entry[0] = 0
        entry[1] = -1 - (handle + REUSE)
        if handle <= MAX_HANDLE:
            entry[2] = handles.free
            handles.free = handle & INDEX_MASK
        handles.users -= 1
        release(each)
    unlock(handles)


@native
def close_handles(handles: Handles) -> None:
    """Release all objects that handles refer to when their instance is closed. The handles must still be freed."""
    lock(handles)
    for i in range(handles.capacity):
        entry = entry_of(handles, i)
        each = object_of(entry[0])
        entry[0] = 0
        release(each)
    handles.users -= 1
    unlock(handles)


@native
def begin_running(handles: Handles) -> bool:
    """Lock the instance for a call, and return true; false if another call runs. Wait while a handle is freed."""
    state = compare_exchange(state_word(handles), 0, IDLE, CALLED)
    while state == FREEING:
        sched_yield()
        state = compare_exchange(state_word(handles), 0, IDLE, CALLED)
    return state == IDLE


@native
def end_running(handles: Handles) -> None:
    exchange(state_word(handles), 0, IDLE)


@native
def lock(handles: Handles) -> None:
    """Lock the instance to free a handle: wait for a call that runs, and for other threads that free handles."""
    while compare_exchange(state_word(handles), 0, IDLE, FREEING) != IDLE:
        sched_yield()


@native
def unlock(handles: Handles) -> None:
    """Release the lock, and free the table of handles if it has no users."""
    is_used = handles.users > 0
    exchange(state_word(handles), 0, IDLE)
    if not is_used:
        free(handles.entries)
        free(handles)


@native
def state_word(handles: Handles) -> Array[int]:
    """Return the address of the state of the instance."""
    return cast("Array[int]", handles)


@native
def identity_of(handles: Handles) -> int:
    """Return the word that identifies the instance in values of C."""
    return bits_of(handles)
