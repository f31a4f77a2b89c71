"""Lists: access to elements, and changes in place."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Array, Byte, c, cold, native, offset
from rekindle.building.runtime.c_library import memcpy, memmove, realloc
from rekindle.building.runtime.descriptors import is_plain
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import (
    Context,
    ErrorCode,
    Kind,
    List,
    abort_if_null,
    allocate,
    fail,
    object_of,
    retain,
)


@native
def list_of(element: Array[Byte], capacity: int) -> List:
    """Return an empty list whose elements have this descriptor."""
    items = cast("List", allocate(48))
    items.refs = 1
    items.kind = Kind.LIST
    items.length = 0
    items.capacity = capacity
    items.items = cast("Array[int]", allocate(8 * capacity + 8))
    items.element = element
    return items


@native
def append(items: List, word: int) -> None:
    """Append an element; the list takes ownership of the reference to it."""
    if items.length == items.capacity:
        grow(items)
    items.items[items.length] = word
    items.length += 1


@native
@cold
def grow(items: List) -> None:
    """Make room for more elements, at least twice as many."""
    items.capacity = 2 * items.capacity + 4
    items.items = cast("Array[int]", abort_if_null(realloc(items.items, 8 * items.capacity)))


@native
def retain_word(descriptor: Array[Byte], word: int) -> None:
    if not is_plain(descriptor):
        retain(object_of(word))


@native
def release_word(descriptor: Array[Byte], word: int) -> None:
    if not is_plain(descriptor):
        release(object_of(word))


@native
def place_in(context: Context, items: List, index: int) -> int:
    """Return ``index`` as a non-negative index into a list; -1 after an error."""
    at = index + items.length if index < 0 else index
    if at < 0 or at >= items.length:
        fail(context, ErrorCode.INDEX_ERROR, c("list index out of range"))
        return -1
    return at


@native
def list_get(items: List, at: int) -> int:
    """Return the element at index ``at``, with a new reference."""
    word = items.items[at]
    retain_word(items.element, word)
    return word


@native
def list_set(items: List, at: int, word: int) -> None:
    """Write an element; the list takes ownership of the reference to it."""
    old = items.items[at]
    items.items[at] = word
    release_word(items.element, old)


@native
def list_remove(items: List, at: int) -> int:
    """Remove the element at index ``at``, and return it; the caller owns the reference."""
    word = items.items[at]
    memmove(offset(items.items, 8 * at), offset(items.items, 8 * at + 8), 8 * (items.length - at - 1))
    items.length -= 1
    return word


@native
def list_pop(context: Context, items: List, index: int) -> int:
    """Return the non-negative index of the element that ``pop(index)`` removes; -1 after an error."""
    if items.length == 0:
        fail(context, ErrorCode.INDEX_ERROR, c("pop from empty list"))
        return -1
    at = index + items.length if index < 0 else index
    if at < 0 or at >= items.length:
        fail(context, ErrorCode.INDEX_ERROR, c("pop index out of range"))
        return -1
    return at


@native
def list_insert(items: List, index: int, word: int) -> None:
    at = index + items.length if index < 0 else index
    if at < 0:
        at = 0
    if at > items.length:
        at = items.length
    append(items, word)
    memmove(offset(items.items, 8 * at + 8), offset(items.items, 8 * at), 8 * (items.length - at - 1))
    items.items[at] = word


@native
def list_clear(items: List) -> None:
    while items.length > 0:
        items.length -= 1
        release_word(items.element, items.items[items.length])


@native
def list_extend(items: List, others: List) -> None:
    count = others.length
    for i in range(count):
        append(items, list_get(others, i))


@native
def list_copy(items: List) -> List:
    copy = list_of(items.element, items.length)
    list_extend(copy, items)
    return copy


@native
def list_concat(a: List, b: List) -> List:
    result = list_of(a.element, a.length + b.length)
    list_extend(result, a)
    list_extend(result, b)
    return result


@native
def list_repeat(items: List, times: int) -> List:
    count = max(0, times)
    result = list_of(items.element, items.length * count)
    for _i in range(count):
        list_extend(result, items)
    return result


@native
def list_repeat_in_place(items: List, times: int) -> None:
    length = items.length
    if times <= 0:
        list_clear(items)
    for _i in range(1, times):
        for j in range(length):
            append(items, list_get(items, j))


@native
def list_reverse(items: List) -> None:
    low = 0
    high = items.length - 1
    while low < high:
        word = items.items[low]
        items.items[low] = items.items[high]
        items.items[high] = word
        low += 1
        high -= 1


@native
def list_slice(context: Context, items: List, start: int, end: int, step: int) -> List | None:
    if step == 0:
        fail(context, ErrorCode.VALUE_ERROR, c("slice step cannot be zero"))
        return None
    # A longer step leads to the same elements, and adding it to an index could exceed 64 bits.
    step = max(min(step, items.length + 1), -items.length - 1)
    result = list_of(items.element, 4)
    at = bound(start, items.length, step)
    stop = bound(end, items.length, step)
    while (at < stop) if step > 0 else (at > stop):
        append(result, list_get(items, at))
        at += step
    return result


@native
def bound(index: int, length: int, step: int) -> int:
    """Return a bound of a slice as Python clips it to ``length``."""
    at = index + length if index < 0 else index
    least = 0 if step > 0 else -1
    most = length if step > 0 else length - 1
    if at < least:
        return least
    return min(at, most)


@native
def list_of_words(element: Array[Byte], words: Array[int], count: int) -> List:
    """Return a list of ``count`` 64-bit words that are not addresses."""
    result = list_of(element, count)
    memcpy(result.items, words, 8 * count)
    result.length = count
    return result
