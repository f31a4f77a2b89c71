"""Sorting and reduction of lists."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Array, Byte, bits_of, float_of, native
from rekindle.building.runtime.c_library import free, memcpy
from rekindle.building.runtime.descriptors import CLOSE, FLOAT, OPEN, TEXT, advance, after
from rekindle.building.runtime.memory import fields_of_record
from rekindle.building.runtime.objects import List, Record, Text, allocate, object_of
from rekindle.building.runtime.texts import text_compare
from rekindle.building.runtime.values import words_equal


@native
def is_less(descriptor: Array[Byte], a: int, b: int) -> bool:
    """Return whether ``a`` is less than ``b``, for words of a number, string or tuple type."""
    if descriptor[0] == FLOAT:
        return float_of(a) < float_of(b)
    if descriptor[0] == OPEN:
        return is_record_less(cast("Record", object_of(a)), cast("Record", object_of(b)))
    if descriptor[0] == TEXT:
        return text_compare(cast("Text", object_of(a)), cast("Text", object_of(b))) < 0
    return a < b


@native
def is_record_less(a: Record, b: Record) -> bool:
    """Return whether tuple ``a`` is less than ``b``, of the same type: compare the first fields that differ."""
    descriptor = advance(a.fields, 1)
    i = 0
    while descriptor[0] != CLOSE:
        first = fields_of_record(a)[i]
        second = fields_of_record(b)[i]
        if not words_equal(descriptor, first, second):
            return is_less(descriptor, first, second)
        descriptor = after(descriptor)
        i += 1
    return False


@native
def list_sort(items: List, reverse: bool) -> None:
    """Sort a list in place by a stable bottom-up merge sort. With ``reverse``, in descending order."""
    count = items.length
    spare = cast("Array[int]", allocate(8 * count + 8))
    width = 1
    while width < count:
        start = 0
        while start < count:
            merge(items, spare, start, min(start + width, count), min(start + 2 * width, count), reverse)
            start += 2 * width
        memcpy(items.items, spare, 8 * count)
        width = 2 * width
    free(spare)


@native
def has_nan(items: List) -> bool:
    """Return whether a list of floats, or of tuples with floats, contains NaN, for which the order depends on the
    algorithm."""
    if items.element[0] == FLOAT or items.element[0] == OPEN:
        for i in range(items.length):
            if is_nan_in(items.element, items.items[i]):
                return True
    return False


@native
def is_nan_in(descriptor: Array[Byte], word: int) -> bool:
    """Return whether a float is NaN, or a field of a tuple is."""
    if descriptor[0] == FLOAT:
        return float_of(word) != float_of(word)
    if descriptor[0] == OPEN:
        record = cast("Record", object_of(word))
        field = advance(record.fields, 1)
        i = 0
        while field[0] != CLOSE:
            if is_nan_in(field, fields_of_record(record)[i]):
                return True
            field = after(field)
            i += 1
    return False


@native
def merge(items: List, spare: Array[int], low: int, middle: int, high: int, reverse: bool) -> None:
    a = low
    b = middle
    for i in range(low, high):
        takes_second = a == middle
        if a < middle and b < high:
            first = items.items[a]
            second = items.items[b]
            if reverse:
                takes_second = is_less(items.element, first, second)
            else:
                takes_second = is_less(items.element, second, first)
        if takes_second:
            spare[i] = items.items[b]
            b += 1
        else:
            spare[i] = items.items[a]
            a += 1


@native
def list_min(items: List) -> int:
    found = items.items[0]
    for i in range(1, items.length):
        if is_less(items.element, items.items[i], found):
            found = items.items[i]
    return found


@native
def list_max(items: List) -> int:
    found = items.items[0]
    for i in range(1, items.length):
        if is_less(items.element, found, items.items[i]):
            found = items.items[i]
    return found


@native
def list_sum(items: List) -> int:
    """Return the sum of a list of numbers as a 64-bit word: an int, or the bits of a float."""
    if items.element[0] == FLOAT:
        total = 0.0
        for i in range(items.length):
            total += float_of(items.items[i])
        return bits_of(total)
    count = 0
    for j in range(items.length):
        count += items.items[j]
    return count


@native
def sum_overflows(items: List) -> bool:
    """Return whether a partial sum of ints has more than 64 bits."""
    total = 0
    for i in range(items.length):
        word = items.items[i]
        following = total + word
        if (word > 0 and following < total) or (word < 0 and following > total):
            return True
        total = following
    return False


@native
def list_any(items: List) -> bool:
    for i in range(items.length):
        if items.items[i] != 0 and not (items.element[0] == FLOAT and float_of(items.items[i]) == 0.0):
            return True
    return False


@native
def list_all(items: List) -> bool:
    for i in range(items.length):
        if items.items[i] == 0 or (items.element[0] == FLOAT and float_of(items.items[i]) == 0.0):
            return False
    return True
