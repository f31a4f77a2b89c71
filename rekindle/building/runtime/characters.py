"""Unicode characters: their classes and their cases, in tables made from the Unicode data of the Python that builds the
library.

The table of a set contains the sorted code points at which runs of members and of non-members alternate. The table of a
mapping contains code points, each followed by up to three code points that replace it. The first word of a table is the
number of its entries.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable
from functools import cache

from rekindle.building.lowlevel import Array, Byte, Int32, native, table, tabulated

# -------------------------------------------------------------------------------------------------------------- tables


def _set_table(members: Iterable[bool]) -> bytes:
    """Return a table for a set of code points: ``members`` is true for each of them."""
    starts, inside = [], False
    for point, is_member in enumerate(members):
        if is_member != inside:
            starts.append(point)
            inside = is_member
    return struct.pack(f"<{len(starts) + 1}i", len(starts), *starts)


def _all_characters() -> Iterable[str]:
    return map(chr, range(sys.maxunicode + 1))


@tabulated
def alphabetic() -> bytes:
    return _set_table(map(str.isalpha, _all_characters()))


@tabulated
def decimals() -> bytes:
    return _set_table(map(str.isdecimal, _all_characters()))


@tabulated
def digits() -> bytes:
    return _set_table(map(str.isdigit, _all_characters()))


@tabulated
def numerics() -> bytes:
    return _set_table(map(str.isnumeric, _all_characters()))


@tabulated
def alphanumeric() -> bytes:
    return _set_table(map(str.isalnum, _all_characters()))


@tabulated
def spaces() -> bytes:
    return _set_table(map(str.isspace, _all_characters()))


@tabulated
def printable() -> bytes:
    return _set_table(map(str.isprintable, _all_characters()))


@tabulated
def uppercase() -> bytes:
    return _set_table(map(str.isupper, _all_characters()))


@tabulated
def lowercase() -> bytes:
    return _set_table(map(str.islower, _all_characters()))


@tabulated
def capitals() -> bytes:
    """Return the table of characters in upper case or title case."""
    return _set_table(map(str.istitle, _all_characters()))


@tabulated
def first_of_identifier() -> bytes:
    return _set_table(map(str.isidentifier, _all_characters()))


@tabulated
def rest_of_identifier() -> bytes:
    return _set_table(f"a{each}".isidentifier() for each in _all_characters())


@tabulated
def cased() -> bytes:
    """Return the table of characters after which ``title`` writes a letter in lower case."""
    return _set_table(f"{each}a".title().endswith("a") for each in _all_characters())


@cache
def _makes_final(before: str) -> list[bool]:
    """Return for each character whether a capital sigma is the last letter of a word after ``before`` and that
    character."""
    lines = "\n".join(f"{before}{each}\u03a3" for each in _all_characters() if each != "\n")
    found = [each.endswith("\u03c2") for each in lines.lower().split("\n")]
    found.insert(ord("\n"), False)
    return found


@tabulated
def letters_before_sigma() -> bytes:
    """Return the table of cased characters that the rule of the final sigma does not skip."""
    return _set_table(_makes_final(""))


@tabulated
def skipped_by_sigma() -> bytes:
    """Return the table of characters that the rule of the final sigma skips."""
    letters = _makes_final("")
    return _set_table(each and not letters[point] for point, each in enumerate(_makes_final("A")))


def _mapping_table(function: Callable[[str], str]) -> bytes:
    points, others = [], []
    for each in _all_characters():
        mapped = function(each)
        if mapped != each:
            points.append(ord(each))
            others += [*map(ord, mapped), 0, 0][:3]
    return struct.pack(f"<{4 * len(points) + 1}i", len(points), *points, *others)


@tabulated
def to_upper() -> bytes:
    return _mapping_table(str.upper)


@tabulated
def to_lower() -> bytes:
    return _mapping_table(str.lower)


@tabulated
def to_title() -> bytes:
    return _mapping_table(str.title)


@tabulated
def to_folded() -> bytes:
    return _mapping_table(str.casefold)


# ------------------------------------------------------------------------------------------------------------- queries


@native
def entries_up_to(words: Array[Int32], point: int) -> int:
    """Return the number of entries of a sorted table that are at most ``point``."""
    low = 0
    high = words[0]
    while low < high:
        middle = (low + high) // 2
        if words[1 + middle] <= point:
            low = middle + 1
        else:
            high = middle
    return low


@native
def is_member(words: Array[Int32], point: int) -> bool:
    """Return whether a code point is in the set of a table."""
    return entries_up_to(words, point) % 2 == 1


@native
def map_point(words: Array[Int32], point: int, out: Array[int]) -> int:
    """Write to ``out`` the code points to which a table maps ``point``; return their number."""
    at = entries_up_to(words, point) - 1
    if at < 0 or words[1 + at] != point:
        out[0] = point
        return 1
    count = 0
    for i in range(3):
        other = words[1 + words[0] + 3 * at + i]
        if other != 0:
            out[i] = other
            count += 1
    return count


@native
def is_space_point(point: int) -> bool:
    return is_member(table(spaces), point)


# ------------------------------------------------------------------------------------------------------------ encoding


@native
def width_of(first: int) -> int:
    """Return the number of bytes of the UTF-8 character whose first byte is ``first``."""
    if first < 192:
        return 1
    if first < 224:
        return 2
    return 3 if first < 240 else 4


@native
def width_of_point(point: int) -> int:
    """Return the number of bytes of a code point in UTF-8."""
    if point < 128:
        return 1
    if point < 2048:
        return 2
    return 3 if point < 65536 else 4


@native
def point_at(data: Array[Byte], at: int) -> int:
    """Return the code point of the UTF-8 character that begins at byte ``at``."""
    first = data[at]
    if first < 128:
        return first
    if first < 224:
        return ((first & 31) << 6) | (data[at + 1] & 63)
    if first < 240:
        return ((first & 15) << 12) | ((data[at + 1] & 63) << 6) | (data[at + 2] & 63)
    return ((first & 7) << 18) | ((data[at + 1] & 63) << 12) | ((data[at + 2] & 63) << 6) | (data[at + 3] & 63)


@native
def start_before(data: Array[Byte], at: int) -> int:
    """Return the byte at which the UTF-8 character before byte ``at`` begins."""
    found = at - 1
    while found > 0 and (data[found] & 192) == 128:
        found -= 1
    return found


@native
def write_point(data: Array[Byte], at: int, point: int) -> int:
    """Write a code point in UTF-8 at byte ``at``; return the number of bytes."""
    bytes = width_of_point(point)
    if bytes == 1:
        data[at] = point
        return 1
    rest = point
    i = bytes - 1
    while i > 0:
        data[at + i] = 128 | (rest & 63)
        rest = rest >> 6
        i -= 1
    data[at] = ((65280 >> bytes) & 255) | rest
    return bytes
