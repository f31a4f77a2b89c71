"""Methods of strings that read or change the case of characters, or test their class."""

from __future__ import annotations

from enum import IntEnum
from typing import cast

from rekindle.building.lowlevel import NULL, Array, Byte, native, stack, table
from rekindle.building.runtime import characters
from rekindle.building.runtime.characters import (
    is_member,
    map_point,
    point_at,
    start_before,
    width_of,
    width_of_point,
    write_point,
)
from rekindle.building.runtime.objects import Text
from rekindle.building.runtime.texts import data_of, is_ascii, new_text, part


class Case(IntEnum):
    """Methods that change the case of characters."""

    UPPER = 1
    LOWER = 2
    TITLE = 3
    CAPITALIZE = 4
    SWAPCASE = 5
    CASEFOLD = 6


@native
def text_with_case(text: Text, how: int) -> Text:
    if is_ascii(text) and (how == Case.UPPER or how == Case.LOWER or how == Case.CASEFOLD):
        return ascii_with_case(text, how == Case.UPPER)
    out = cast("Array[int]", stack(8))
    bytes = write_with_case(text, how, NULL, out)
    result = new_text(bytes, out[0])
    write_with_case(text, how, data_of(result), out)
    return result


@native
def ascii_with_case(text: Text, upper: bool) -> Text:
    """Return ``text.upper()`` if ``upper``, else ``text.lower()``, of an ASCII string."""
    result = part(text, 0, text.bytes)
    data = data_of(result)
    for i in range(text.bytes):
        if upper and ord("a") <= data[i] and data[i] <= ord("z"):
            data[i] = data[i] - 32
        elif not upper and ord("A") <= data[i] and data[i] <= ord("Z"):
            data[i] = data[i] + 32
    return result


@native
def write_with_case(text: Text, how: int, to: Array[Byte] | None, count: Array[int]) -> int:
    """Write a string in another case to ``to``, unless that is null, and its number of characters to ``count``; return
    its number of bytes."""
    data = data_of(text)
    mapped = cast("Array[int]", stack(24))
    bytes = 0
    count[0] = 0
    after_cased = False
    at = 0
    while at < text.bytes:
        point = point_at(data, at)
        characters_of_one = map_character(text, at, point, how, after_cased, mapped)
        if how == Case.TITLE:
            after_cased = is_member(table(characters.cased), point)
        for i in range(characters_of_one):
            if to is not None:
                write_point(to, bytes, mapped[i])
            bytes += width_of_point(mapped[i])
        count[0] = count[0] + characters_of_one
        at += width_of(data[at])
    return bytes


@native
def map_character(text: Text, at: int, point: int, how: int, after_cased: bool, out: Array[int]) -> int:
    """Write to ``out`` the characters that the character at byte ``at`` becomes in another case; return their number.
    ``after_cased`` is whether a cased character precedes it, which matters for title case."""
    if how == Case.UPPER:
        return map_point(table(characters.to_upper), point, out)
    if how == Case.CASEFOLD:
        return map_point(table(characters.to_folded), point, out)
    if (how == Case.TITLE and not after_cased) or (how == Case.CAPITALIZE and at == 0):
        return map_point(table(characters.to_title), point, out)
    if how == Case.SWAPCASE and not is_member(table(characters.uppercase), point):
        if is_member(table(characters.lowercase), point):
            return map_point(table(characters.to_upper), point, out)
        out[0] = point
        return 1
    if point == 931:  # a capital sigma
        out[0] = 962 if is_final_sigma(text, at) else 963
        return 1
    return map_point(table(characters.to_lower), point, out)


@native
def is_final_sigma(text: Text, at: int) -> bool:
    """Return whether the capital sigma at byte ``at`` is the last letter of a word: a letter with case precedes it, and
    none follows."""
    data = data_of(text)
    before = at
    found = False
    while before > 0 and not found:
        before = start_before(data, before)
        point = point_at(data, before)
        if not is_member(table(characters.skipped_by_sigma), point):
            if not is_member(table(characters.letters_before_sigma), point):
                return False
            found = True
    if not found:
        return False
    after = at + width_of(data[at])
    while after < text.bytes:
        following = point_at(data, after)
        if not is_member(table(characters.skipped_by_sigma), following):
            return not is_member(table(characters.letters_before_sigma), following)
        after += width_of(data[after])
    return True


class Predicate(IntEnum):
    """Tests of the characters of a string."""

    ISDIGIT = 1
    ISALPHA = 2
    ISALNUM = 3
    ISUPPER = 4
    ISLOWER = 5
    ISSPACE = 6
    ISDECIMAL = 7
    ISNUMERIC = 8
    ISPRINTABLE = 9
    ISTITLE = 10
    ISIDENTIFIER = 11


@native
def point_is_of(point: int, wanted: int) -> bool:
    """Return whether a code point is in the class ``wanted``, such as digits."""
    if wanted == Predicate.ISDIGIT:
        return is_member(table(characters.digits), point)
    if wanted == Predicate.ISALPHA:
        return is_member(table(characters.alphabetic), point)
    if wanted == Predicate.ISALNUM:
        return is_member(table(characters.alphanumeric), point)
    if wanted == Predicate.ISSPACE:
        return is_member(table(characters.spaces), point)
    if wanted == Predicate.ISDECIMAL:
        return is_member(table(characters.decimals), point)
    if wanted == Predicate.ISNUMERIC:
        return is_member(table(characters.numerics), point)
    return is_member(table(characters.printable), point)


@native
def text_is_of(text: Text, wanted: int) -> bool:
    """Return whether a string is not empty and all its characters are in the class ``wanted``. For ``isprintable``, it
    may be empty."""
    data = data_of(text)
    at = 0
    while at < text.bytes:
        if not point_is_of(point_at(data, at), wanted):
            return False
        at += width_of(data[at])
    return text.bytes > 0 or wanted == Predicate.ISPRINTABLE


@native
def text_is_cased(text: Text, wanted: int) -> bool:
    """Return ``isupper``, ``islower`` or ``istitle`` of a string; ``wanted`` is the :class:`Predicate`."""
    data = data_of(text)
    found = False
    after_cased = False
    at = 0
    while at < text.bytes:
        point = point_at(data, at)
        lower = is_member(table(characters.lowercase), point)
        capital = is_member(table(characters.capitals), point)
        if wanted == Predicate.ISUPPER:
            if lower or (capital and not is_member(table(characters.uppercase), point)):
                return False
            found = found or capital
        elif wanted == Predicate.ISLOWER:
            if capital:
                return False
            found = found or lower
        else:
            if (capital and after_cased) or (lower and not after_cased):
                return False
            after_cased = capital or lower
            found = found or after_cased
        at += width_of(data[at])
    return found


@native
def text_is_identifier(text: Text) -> bool:
    data = data_of(text)
    if text.bytes == 0 or not is_member(table(characters.first_of_identifier), point_at(data, 0)):
        return False
    at = width_of(data[0])
    while at < text.bytes:
        if not is_member(table(characters.rest_of_identifier), point_at(data, at)):
            return False
        at += width_of(data[at])
    return True
