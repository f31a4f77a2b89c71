"""Strings: UTF-8 with the number of characters, so that ASCII strings are indexed directly."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import NULL, Array, Byte, bits_of, c, native, offset, size_of, stack
from rekindle.building.runtime.c_library import memcmp, memcpy, snprintf, strlen, strtod
from rekindle.building.runtime.characters import (
    is_space_point,
    point_at,
    start_before,
    width_of,
    width_of_point,
    write_point,
)
from rekindle.building.runtime.lists import append, bound, list_of
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import Context, ErrorCode, Kind, List, Text, allocate, fail, object_of, word_of


@native
def data_of(text: Text) -> Array[Byte]:
    return cast("Array[Byte]", offset(text, size_of(Text)))


@native
def new_text(bytes: int, characters: int) -> Text:
    """Return a string of ``bytes`` bytes and ``characters`` characters, whose bytes the caller must write."""
    text = cast("Text", allocate(size_of(Text) + bytes + 1))
    text.refs = 1
    text.kind = Kind.TEXT
    text.bytes = bytes
    text.characters = characters
    data_of(text)[bytes] = 0
    return text


@native
def count_characters(data: Array[Byte], bytes: int) -> int:
    """Return the number of characters in ``bytes`` bytes of UTF-8."""
    found = 0
    for i in range(bytes):
        if (data[i] & 192) != 128:
            found += 1
    return found


@native
def text_of(data: Array[Byte], bytes: int) -> Text:
    """Return a string object with a copy of ``bytes`` bytes."""
    text = new_text(bytes, count_characters(data, bytes))
    memcpy(data_of(text), data, bytes)
    return text


@native
def text_of_c(data: Array[Byte]) -> Text:
    return text_of(data, strlen(data))


@native
def text_concat(a: Text, b: Text) -> Text:
    text = new_text(a.bytes + b.bytes, a.characters + b.characters)
    memcpy(data_of(text), data_of(a), a.bytes)
    memcpy(offset(data_of(text), a.bytes), data_of(b), b.bytes)
    return text


@native
def text_repeat(a: Text, count: int) -> Text:
    times = max(0, count)
    text = new_text(a.bytes * times, a.characters * times)
    for i in range(times):
        memcpy(offset(data_of(text), i * a.bytes), data_of(a), a.bytes)
    return text


@native
def text_equal(a: Text, b: Text) -> bool:
    return a.bytes == b.bytes and memcmp(data_of(a), data_of(b), a.bytes) == 0


@native
def text_compare(a: Text, b: Text) -> int:
    """Compare two strings; return a negative number, 0 or a positive number. UTF-8 bytes sort as their characters
    do."""
    least = min(b.bytes, a.bytes)
    found = memcmp(data_of(a), data_of(b), least)
    return found if found != 0 else a.bytes - b.bytes


@native
def byte_offset(text: Text, character: int) -> int:
    """Return the byte offset at which a character begins; the length of the string for the index after the last
    character."""
    if text.bytes == text.characters:
        return character
    data = data_of(text)
    seen = 0
    for i in range(text.bytes):
        if (data[i] & 192) != 128:
            if seen == character:
                return i
            seen += 1
    return text.bytes


@native
def characters_before(text: Text, place: int) -> int:
    """Return the number of characters before byte offset ``place``."""
    return place if text.bytes == text.characters else count_characters(data_of(text), place)


@native
def part(text: Text, first: int, last: int) -> Text:
    """Return the substring from byte offset ``first`` to ``last``, exclusive."""
    return text_of(cast("Array[Byte]", offset(data_of(text), first)), last - first)


@native
def text_index(context: Context, text: Text, index: int) -> Text | None:
    at = index + text.characters if index < 0 else index
    if at < 0 or at >= text.characters:
        fail(context, ErrorCode.INDEX_ERROR, c("string index out of range"))
        return None
    return part(text, byte_offset(text, at), byte_offset(text, at + 1))


@native
def text_slice(context: Context, text: Text, start: int, end: int, step: int) -> Text | None:
    if step == 0:
        fail(context, ErrorCode.VALUE_ERROR, c("slice step cannot be zero"))
        return None
    # A longer step leads to the same characters, and adding it to an index could exceed 64 bits.
    step = max(min(step, text.characters + 1), -text.characters - 1)
    at = bound(start, text.characters, step)
    stop = bound(end, text.characters, step)
    if step == 1:
        last = max(at, stop)
        return part(text, byte_offset(text, at), byte_offset(text, last))
    pieces = list_of(c("s"), 4)
    while (at < stop) if step > 0 else (at > stop):
        append(pieces, word_of(part(text, byte_offset(text, at), byte_offset(text, at + 1))))
        at += step
    empty = text_of(c(""), 0)
    result = text_join(empty, pieces)
    release(empty)
    release(pieces)
    return result


@native
def bytes_from(text: Text, wanted: Text, start: int) -> int:
    """Return the first byte offset at or after ``start`` at which ``wanted`` occurs; -1 if there is none."""
    at = start
    while at + wanted.bytes <= text.bytes:
        if memcmp(offset(data_of(text), at), data_of(wanted), wanted.bytes) == 0:
            return at
        at += 1
    return -1


@native
def text_contains(text: Text, wanted: Text) -> bool:
    return bytes_from(text, wanted, 0) >= 0


@native
def text_find(text: Text, wanted: Text, start: int, end: int) -> int:
    """Return the index of the first character at which ``wanted`` occurs between two indices; -1 if it does not."""
    high = byte_offset(text, bound(end, text.characters, 1))
    low = byte_offset(text, bound(start, text.characters, 1))
    if start > text.characters:
        return -1
    found = bytes_from(text, wanted, low)
    if found < 0 or found + wanted.bytes > high:
        return -1
    return characters_before(text, found)


@native
def text_rfind(text: Text, wanted: Text, start: int, end: int) -> int:
    low = byte_offset(text, bound(start, text.characters, 1))
    at = byte_offset(text, bound(end, text.characters, 1)) - wanted.bytes
    if start > text.characters:
        return -1
    while at >= low:
        if memcmp(offset(data_of(text), at), data_of(wanted), wanted.bytes) == 0:
            return characters_before(text, at)
        at -= 1
    return -1


@native
def has_at(text: Text, wanted: Text, start: int, end: int, at_end: bool) -> bool:
    """Return ``startswith``, or ``endswith`` if ``at_end``, of the part of a string between two indices."""
    if start > text.characters:
        return False
    low = byte_offset(text, bound(start, text.characters, 1))
    high = byte_offset(text, bound(end, text.characters, 1))
    at = high - wanted.bytes if at_end else low
    if high - low < wanted.bytes:
        return False
    return memcmp(offset(data_of(text), at), data_of(wanted), wanted.bytes) == 0


@native
def text_startswith(text: Text, prefix: Text, start: int, end: int) -> bool:
    return has_at(text, prefix, start, end, False)


@native
def text_endswith(text: Text, suffix: Text, start: int, end: int) -> bool:
    return has_at(text, suffix, start, end, True)


@native
def text_count(text: Text, wanted: Text, start: int, end: int) -> int:
    """Return how often ``wanted`` occurs between two indices."""
    first = bound(start, text.characters, 1)
    last = bound(end, text.characters, 1)
    if start > text.characters or last < first:
        return 0
    if wanted.bytes == 0:
        return last - first + 1
    high = byte_offset(text, last)
    found = 0
    at = bytes_from(text, wanted, byte_offset(text, first))
    while at >= 0 and at + wanted.bytes <= high:
        found += 1
        at = bytes_from(text, wanted, at + wanted.bytes)
    return found


@native
def text_replace(text: Text, old: Text, new: Text, most: int) -> Text:
    """Return a string with the first ``most`` occurrences of ``old`` replaced by ``new``; all, if ``most`` is
    negative."""
    times = text_count(text, old, 0, text.characters)
    if most >= 0:
        times = min(times, most)
    result = new_text(
        text.bytes + times * (new.bytes - old.bytes), text.characters + times * (new.characters - old.characters)
    )
    data = data_of(result)
    at = 0
    to = 0
    for i in range(times):
        found = bytes_from(text, old, at)
        if old.bytes == 0:
            found = byte_offset(text, i)
        memcpy(offset(data, to), offset(data_of(text), at), found - at)
        to += found - at
        memcpy(offset(data, to), data_of(new), new.bytes)
        to += new.bytes
        at = found + old.bytes
    memcpy(offset(data, to), offset(data_of(text), at), text.bytes - at)
    return result


@native
def is_space(byte: int) -> bool:
    """Return whether ``byte`` is an ASCII space that Python ignores around a number."""
    return byte == 32 or (byte >= 9 and byte <= 13)


@native
def text_split_spaces(text: Text, most: int) -> List:
    """Return ``split()`` of a string at runs of spaces. There are at most ``most`` splits; no limit if ``most`` is
    negative."""
    result = list_of(c("s"), 4)
    data = data_of(text)
    at = 0
    while True:
        while at < text.bytes and is_space_point(point_at(data, at)):
            at += width_of(data[at])
        if at == text.bytes:
            return result
        first = at
        if most == 0:
            append(result, word_of(part(text, first, text.bytes)))
            return result
        while at < text.bytes and not is_space_point(point_at(data, at)):
            at += width_of(data[at])
        append(result, word_of(part(text, first, at)))
        most -= 1


@native
def text_split(context: Context, text: Text, separator: Text, most: int) -> List | None:
    if separator.bytes == 0:
        fail(context, ErrorCode.VALUE_ERROR, c("empty separator"))
        return None
    result = list_of(c("s"), 4)
    at = 0
    while True:
        found = bytes_from(text, separator, at)
        if found < 0 or most == 0:
            append(result, word_of(part(text, at, text.bytes)))
            return result
        append(result, word_of(part(text, at, found)))
        at = found + separator.bytes
        most -= 1


@native
def text_join(separator: Text, items: List) -> Text:
    bytes = 0
    characters = 0
    for i in range(items.length):
        each = cast("Text", object_of(items.items[i]))
        bytes += each.bytes
        characters += each.characters
    gaps = items.length - 1 if items.length > 0 else 0
    result = new_text(bytes + gaps * separator.bytes, characters + gaps * separator.characters)
    to = 0
    for j in range(items.length):
        if j > 0:
            memcpy(offset(data_of(result), to), data_of(separator), separator.bytes)
            to += separator.bytes
        one = cast("Text", object_of(items.items[j]))
        memcpy(offset(data_of(result), to), data_of(one), one.bytes)
        to += one.bytes
    return result


@native
def has_byte(text: Text, byte: int) -> bool:
    data = data_of(text)
    for i in range(text.bytes):
        if data[i] == byte:
            return True
    return False


@native
def has_point(text: Text, point: int) -> bool:
    """Return whether a string contains the code point ``point``."""
    data = data_of(text)
    at = 0
    while at < text.bytes:
        if point_at(data, at) == point:
            return True
        at += width_of(data[at])
    return False


@native
def is_stripped(characters: Text | None, point: int) -> bool:
    return is_space_point(point) if characters is None else has_point(characters, point)


@native
def text_strip(text: Text, characters: Text | None, left: bool, right: bool) -> Text:
    """Return a string stripped at its ``left`` end, its ``right`` end or both of ``characters``, or of spaces if
    ``characters`` is null."""
    data = data_of(text)
    first = 0
    last = text.bytes
    while left and first < last and is_stripped(characters, point_at(data, first)):
        first += width_of(data[first])
    while right and first < last and is_stripped(characters, point_at(data, start_before(data, last))):
        last = start_before(data, last)
    return part(text, first, last)


@native
def is_ascii(text: Text) -> bool:
    return text.bytes == text.characters


@native
def text_ord(context: Context, text: Text) -> int:
    """Return the code point of the only character; -1, with an error, if there is not exactly one."""
    if text.characters != 1:
        fail(context, ErrorCode.TYPE_ERROR, c("ord() expected a character, but the string has another length"))
        return -1
    return point_at(data_of(text), 0)


@native
def letter_at(context: Context, text: Text, index: int) -> int:
    """Return the code point of the character at an index; -1, with an error, if there is none."""
    at = index + text.characters if index < 0 else index
    if at < 0 or at >= text.characters:
        fail(context, ErrorCode.INDEX_ERROR, c("string index out of range"))
        return -1
    if text.bytes == text.characters:
        return data_of(text)[at]
    return point_at(data_of(text), byte_offset(text, at))


@native
def text_chr(context: Context, point: int) -> Text | None:
    if point < 0 or point > 1114111:
        fail(context, ErrorCode.VALUE_ERROR, c("chr() arg not in range(0x110000)"))
        return None
    text = new_text(width_of_point(point), 1)
    write_point(data_of(text), 0, point)
    return text


@native
def text_of_int(number: int) -> Text:
    buffer = cast("Array[Byte]", stack(32))
    return text_of(buffer, snprintf(buffer, 32, c("%lld"), number))


@native
def text_of_device(word: int) -> Text:
    """Return the text of a CPU device, given as the word of its index."""
    if word == 4294967295:
        return text_of(c("cpu"), 3)
    buffer = cast("Array[Byte]", stack(32))
    return text_of(buffer, snprintf(buffer, 32, c("cpu:%lld"), word))


@native
def text_of_bool(flag: bool) -> Text:
    return text_of(c("True"), 4) if flag else text_of(c("False"), 5)


@native
def text_of_float(number: float) -> Text:
    """Return ``repr`` of a float: the shortest string that reads as the same float."""
    if number != number:
        return text_of(c("nan"), 3)
    buffer = cast("Array[Byte]", stack(40))
    if number - number != 0.0:
        return text_of(buffer, snprintf(buffer, 40, c("%g"), number))
    digits = 0
    length = snprintf(buffer, 40, c("%.*e"), digits, number)
    while digits < 16 and strtod(buffer, NULL) != number:
        # Below a power of two floats are closer: the nearest digits may read as another float, and the next as this.
        if next_digits(buffer) and strtod(buffer, NULL) == number:
            break
        digits += 1
        length = snprintf(buffer, 40, c("%.*e"), digits, number)
    exponent = exponent_in(buffer, length)
    if exponent < -4 or exponent >= 16:
        return text_of(buffer, length)
    return without_exponent(buffer, digits + 1, exponent)


@native
def without_exponent(text: Array[Byte], digits: int, exponent: int) -> Text:
    """Return a number in scientific notation, with this many digits and this exponent, in positional notation."""
    result = cast("Array[Byte]", stack(64))
    to = 0
    first = 0
    if text[0] == ord("-"):
        result[0] = ord("-")
        to = 1
        first = 1
    power = max(exponent, 0)
    last = min(exponent - digits + 1, -1)
    while power >= last:
        index = exponent - power
        result[to] = ord("0")
        if index == 0:
            result[to] = text[first]
        elif 0 < index and index < digits:
            result[to] = text[first + 1 + index]
        to += 1
        if power == 0:
            result[to] = ord(".")
            to += 1
        power -= 1
    return text_of(result, to)


@native
def next_digits(text: Array[Byte]) -> bool:
    """Increment the last digit of a number in scientific notation, with carry. Return False if the carry overflows the
    first digit."""
    at = 0
    while text[at] != ord("e"):
        at += 1
    at -= 1
    while at >= 0:
        if ord("0") <= text[at] and text[at] < ord("9"):
            text[at] = text[at] + 1
            return True
        if text[at] == ord("9"):
            text[at] = ord("0")
        at -= 1
    return False


@native
def exponent_in(text: Array[Byte], length: int) -> int:
    """Return the exponent of a number in scientific notation."""
    at = length - 1
    found = 0
    unit = 1
    while text[at] >= ord("0") and text[at] <= ord("9"):
        found += unit * (text[at] - ord("0"))
        unit = unit * 10
        at -= 1
    return -found if text[at] == ord("-") else found


@native
def without_underscores(text: Text) -> Text | None:
    """Return an ASCII string without surrounding spaces, and without single underscores between digits; None if it has
    other underscores."""
    data = data_of(text)
    first = 0
    last = text.bytes
    while first < last and is_space(data[first]):
        first += 1
    while last > first and is_space(data[last - 1]):
        last -= 1
    result = new_text(last - first, last - first)
    to = data_of(result)
    count = 0
    for i in range(first, last):
        if data[i] != ord("_"):
            to[count] = data[i]
            count += 1
        elif i == first or i == last - 1 or not is_digit(data[i - 1]) or not is_digit(data[i + 1]):
            release(result)
            return None
    to[count] = 0
    result.bytes = count
    result.characters = count
    return result


@native
def is_digit(byte: int) -> bool:
    return ord("0") <= byte and byte <= ord("9")


@native
def parse_int(context: Context, text: Text, out: Array[int]) -> bool:
    """Write the int that a decimal string represents to ``out``. Return False, with an error, if it is invalid or
    exceeds 64 bits."""
    if not is_ascii(text):
        fail(context, ErrorCode.NOT_BUILT, c("int() of a string with characters beyond ASCII"))
        return False
    plain = without_underscores(text)
    good = False
    fits = True
    found = 0
    negative = False
    if plain is not None:
        data = data_of(plain)
        at = 0
        negative = plain.bytes > 0 and data[0] == ord("-")
        if negative or (plain.bytes > 0 and data[0] == ord("+")):
            at = 1
        good = at < plain.bytes
        while at < plain.bytes and good:
            digit = data[at] - ord("0")
            good = is_digit(data[at])
            # Below zero, where there is one int more.
            fits = fits and (found > -922337203685477580 or (found == -922337203685477580 and digit <= 8))
            found = found * 10 - digit
            at += 1
        fits = fits and (negative or found != -9223372036854775807 - 1)
        release(plain)
    if not good:
        fail(context, ErrorCode.VALUE_ERROR, c("invalid literal for int() with base 10"))
        return False
    if not fits:
        fail(context, ErrorCode.INT_LIMIT, c("int() of a string with more than 64 bits"))
        return False
    out[0] = found if negative else -found
    return True


@native
def parse_float(context: Context, text: Text, out: Array[int]) -> bool:
    """Write the bits of the float that a string represents to ``out``. Return False, with an error, if it is
    invalid."""
    if not is_ascii(text):
        fail(context, ErrorCode.NOT_BUILT, c("float() of a string with characters beyond ASCII"))
        return False
    plain = without_underscores(text)
    good = False
    number = 0.0
    if plain is not None:
        data = data_of(plain)
        good = plain.bytes > 0
        for i in range(plain.bytes):
            byte = data[i]
            # strtod reads hexadecimal floats, and Python does not.
            good = good and byte != ord("x") and byte != ord("X") and byte != ord("(") and byte != 0
        end = cast("Array[int]", stack(8))
        number = strtod(data, end)
        good = good and end[0] == bits_of(offset(data, plain.bytes))
        release(plain)
    if not good:
        fail(context, ErrorCode.VALUE_ERROR, c("could not convert string to float"))
        return False
    out[0] = bits_of(number)
    return True


@native
def fail_by_text(context: Context, text: Text) -> None:
    """Set an error from a message without an exception class: an AssertionError if the message begins with that name,
    else a RuntimeError."""
    data = data_of(text)
    if text.bytes >= 16 and memcmp(data, c("AssertionError: "), 16) == 0:
        fail(context, ErrorCode.ASSERTION_ERROR, cast("Array[Byte]", offset(data, 16)))
        context.name = c("builtins.AssertionError")
        context.is_exact = 1
    else:
        fail(context, ErrorCode.RUNTIME_ERROR, data)
        context.name = c("builtins.RuntimeError")
        context.is_exact = 1


@native
def characters_of(text: Text) -> List:
    """Return the characters of a string as a list."""
    result = list_of(c("s"), text.characters)
    for i in range(text.characters):
        append(result, word_of(part(text, byte_offset(text, i), byte_offset(text, i + 1))))
    return result


@native
def begins_character(first: int, second: int) -> bool:
    """Return whether a character of several bytes may begin with these two: a first byte that others follow, and a
    second one without which the character would have a shorter form, or a number beyond that of the last one."""
    if first == 224:
        return second >= 160
    if first == 240:
        return second >= 144
    return first >= 194 and (first < 244 or (first == 244 and second < 144))


@native
def is_utf8(data: Array[Byte], bytes: int) -> bool:
    """Return whether ``bytes`` bytes are characters in UTF-8, each in its shortest form. Surrogates are accepted, since
    strings of Python may contain them."""
    at = 0
    while at < bytes:
        byte = data[at]
        length = 1
        if byte >= 240:
            length = 4
        elif byte >= 224:
            length = 3
        elif byte >= 128:
            length = 2
        if at + length > bytes:
            return False
        if length > 1 and not begins_character(byte, data[at + 1]):
            return False
        for i in range(1, length):
            if (data[at + i] & 192) != 128:
                return False
        at += length
    return True
