"""Dicts: open addressing over a table of entries in insertion order."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Array, Byte, float_of, native
from rekindle.building.runtime.c_library import free, realloc
from rekindle.building.runtime.descriptors import FLOAT, TEXT
from rekindle.building.runtime.lists import append, list_of, release_word, retain_word
from rekindle.building.runtime.memory import fields_of_record
from rekindle.building.runtime.objects import (
    Dict,
    Kind,
    List,
    Record,
    Text,
    abort_if_null,
    allocate,
    allocate_zeroed,
    object_of,
    word_of,
)
from rekindle.building.runtime.texts import data_of
from rekindle.building.runtime.values import words_equal


@native
def dict_of(key: Array[Byte], value: Array[Byte]) -> Dict:
    """Return an empty dict whose keys and values have these descriptors."""
    made = cast("Dict", allocate(72))
    made.refs = 1
    made.kind = Kind.DICT
    made.length = 0
    made.used = 0
    made.capacity = 8
    made.entries = cast("Array[int]", allocate(3 * 8 * 8))
    made.table = cast("Array[int]", allocate_zeroed(2 * 8 * 8))
    made.key = key
    made.value = value
    return made


@native
def word_hash(descriptor: Array[Byte], word: int) -> int:
    if descriptor[0] == TEXT:
        text = cast("Text", object_of(word))
        found = -3750763034362895579
        data = data_of(text)
        for i in range(text.bytes):
            found = (found ^ data[i]) * 1099511628211
        return found
    bits = word
    if descriptor[0] == FLOAT and float_of(word) == 0.0:
        bits = 0
    bits = (bits ^ (bits >> 31)) * 1099511628211
    return bits ^ (bits >> 29)


@native
def slot_of(each: Dict, key: int) -> int:
    """Return the slot of a key in the hash table, or the free slot for it if the dict does not contain the key."""
    mask = 2 * each.capacity - 1
    at = word_hash(each.key, key) & mask
    while each.table[at] != 0:
        entry = each.table[at] - 1
        if each.entries[3 * entry] != 0 and words_equal(each.key, each.entries[3 * entry + 1], key):
            return at
        at = (at + 1) & mask
    return at


@native
def dict_find(each: Dict, key: int) -> int:
    """Return the index of the entry of a key; -1 if there is none."""
    return each.table[slot_of(each, key)] - 1


@native
def dict_get(each: Dict, entry: int) -> int:
    """Return the value of an entry, with a new reference."""
    word = each.entries[3 * entry + 2]
    retain_word(each.value, word)
    return word


@native
def make_room(each: Dict) -> None:
    """Make room for one more entry: drop deleted entries, and double the capacity if more than half of it remains in
    use."""
    if 2 * each.length > each.capacity:
        each.capacity = 2 * each.capacity
        each.entries = cast("Array[int]", abort_if_null(realloc(each.entries, 24 * each.capacity)))
    free(each.table)
    each.table = cast("Array[int]", allocate_zeroed(16 * each.capacity))
    kept = 0
    for i in range(each.used):
        if each.entries[3 * i] != 0:
            each.entries[3 * kept] = 1
            each.entries[3 * kept + 1] = each.entries[3 * i + 1]
            each.entries[3 * kept + 2] = each.entries[3 * i + 2]
            each.used = kept
            each.table[slot_of(each, each.entries[3 * kept + 1])] = kept + 1
            kept += 1
    each.used = kept


@native
def dict_set(each: Dict, key: int, value: int) -> None:
    """Write an entry; the dict takes ownership of the references to key and value."""
    at = slot_of(each, key)
    entry = each.table[at] - 1
    if entry >= 0:
        old = each.entries[3 * entry + 2]
        each.entries[3 * entry + 2] = value
        release_word(each.value, old)
        release_word(each.key, key)
        return
    if each.used == each.capacity:
        make_room(each)
        at = slot_of(each, key)
    entry = each.used
    each.entries[3 * entry] = 1
    each.entries[3 * entry + 1] = key
    each.entries[3 * entry + 2] = value
    each.table[at] = entry + 1
    each.used += 1
    each.length += 1


@native
def dict_remove(each: Dict, entry: int) -> int:
    """Remove an entry, and return its value; the caller owns the reference."""
    each.entries[3 * entry] = 0
    each.length -= 1
    release_word(each.key, each.entries[3 * entry + 1])
    return each.entries[3 * entry + 2]


@native
def last_entry(each: Dict) -> int:
    """Return the index of the last entry; -1 if there is none."""
    found = each.used - 1
    while found >= 0 and each.entries[3 * found] == 0:
        found -= 1
    return found


@native
def pop_entry(each: Dict, entry: int, fields: Array[Byte]) -> Record:
    """Remove an entry, and return its key and its value as a tuple."""
    pair = new_record(fields, 2)
    key = each.entries[3 * entry + 1]
    retain_word(each.key, key)
    fields_of_record(pair)[0] = key
    fields_of_record(pair)[1] = dict_remove(each, entry)
    return pair


@native
def dict_clear(each: Dict) -> None:
    for i in range(each.used):
        if each.entries[3 * i] != 0:
            release_word(each.value, dict_remove(each, i))
    make_room(each)


@native
def dict_update(each: Dict, other: Dict) -> None:
    for i in range(other.used):
        if other.entries[3 * i] != 0:
            key = other.entries[3 * i + 1]
            retain_word(each.key, key)
            dict_set(each, key, dict_get(other, i))


@native
def dict_copy(each: Dict) -> Dict:
    made = dict_of(each.key, each.value)
    dict_update(made, each)
    return made


@native
def dict_keys(each: Dict) -> List:
    found = list_of(each.key, each.length)
    for i in range(each.used):
        if each.entries[3 * i] != 0:
            retain_word(each.key, each.entries[3 * i + 1])
            append(found, each.entries[3 * i + 1])
    return found


@native
def dict_values(each: Dict) -> List:
    found = list_of(each.value, each.length)
    for i in range(each.used):
        if each.entries[3 * i] != 0:
            append(found, dict_get(each, i))
    return found


@native
def dict_items(each: Dict, element: Array[Byte]) -> List:
    """Return the entries as tuples, whose descriptor is ``element``."""
    found = list_of(element, each.length)
    for i in range(each.used):
        if each.entries[3 * i] != 0:
            pair = new_record(element, 2)
            retain_word(each.key, each.entries[3 * i + 1])
            fields_of_record(pair)[0] = each.entries[3 * i + 1]
            fields_of_record(pair)[1] = dict_get(each, i)
            append(found, word_of(pair))
    return found


@native
def new_record(fields: Array[Byte], count: int) -> Record:
    """Return a tuple or an instance with ``count`` fields, all zero."""
    made = cast("Record", allocate_zeroed(32 + 8 * count))
    made.refs = 1
    made.kind = Kind.RECORD
    made.fields = fields
    made.count = count
    return made
