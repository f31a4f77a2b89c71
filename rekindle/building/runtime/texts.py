"""Strings.

They are UTF-8, with the number of characters, so that strings of ASCII are indexed at once.
"""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import NULL, Array, Byte, bits_of, c, native, offset, size_of, stack
from rekindle.building.runtime.c_library import memcmp, memcpy, snprintf, strlen, strtod
from rekindle.building.runtime.lists import append, bound, list_of
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import Context, ErrorCode, Kind, List, Text, allocate, fail, object_of, word_of


@native
def data_of(text: Text) -> Array[Byte]:
    return cast("Array[Byte]", offset(text, size_of(Text)))


@native
def new_text(bytes: int, characters: int) -> Text:
    """Return a string whose bytes are to be written yet."""
    text = cast("Text", allocate(size_of(Text) + bytes + 1))
    text.refs = 1
    text.kind = Kind.TEXT
    text.bytes = bytes
    text.characters = characters
    data_of(text)[bytes] = 0
    return text


@native
def count_characters(data: Array[Byte], bytes: int) -> int:
    """Return how many bytes begin a character."""
    found = 0
    for i in range(bytes):
        if (data[i] & 192) != 128:
            found += 1
    return found


@native
def text_of(data: Array[Byte], bytes: int) -> Text:
    """Return a string with a copy of some bytes."""
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
    """Return a number below, at or above 0. The order of UTF-8 is that of its characters."""
    least = min(b.bytes, a.bytes)
    found = memcmp(data_of(a), data_of(b), least)
    return found if found != 0 else a.bytes - b.bytes


@native
def byte_offset(text: Text, character: int) -> int:
    """Return where a character begins; the end of the text for the one after the last."""
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
    """Return how many characters begin before a byte."""
    return place if text.bytes == text.characters else count_characters(data_of(text), place)


@native
def part(text: Text, first: int, last: int) -> Text:
    """Return the bytes from ``first`` to before ``last``."""
    return text_of(cast("Array[Byte]", offset(data_of(text), first)), last - first)


@native
def text_index(context: Context, text: Text, index: int) -> Text | None:
    at = index + text.characters if index < 0 else index
    if at < 0 or at >= text.characters:
        fail(context, ErrorCode.INDEX_ERROR, c("string index out of range"))
        return None
    return part(text, byte_offset(text, at), byte_offset(text, at + 1))


@native
def clamped(index: int, length: int) -> int:
    """Return the bound of a slice as Python reads it."""
    at = index + length if index < 0 else index
    if at < 0:
        return 0
    return min(at, length)


@native
def text_slice(context: Context, text: Text, start: int, end: int, step: int) -> Text | None:
    if step == 0:
        fail(context, ErrorCode.VALUE_ERROR, c("slice step cannot be zero"))
        return None
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
    """Return the first byte at or after ``start`` where ``wanted`` begins; -1 if there is none."""
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
    low = clamped(start, text.characters)
    high = clamped(end, text.characters)
    if start > text.characters:
        return -1
    found = bytes_from(text, wanted, byte_offset(text, low))
    if found < 0 or found + wanted.bytes > byte_offset(text, high):
        return -1
    return characters_before(text, found)


@native
def text_rfind(text: Text, wanted: Text, start: int, end: int) -> int:
    low = byte_offset(text, clamped(start, text.characters))
    at = byte_offset(text, clamped(end, text.characters)) - wanted.bytes
    if start > text.characters:
        return -1
    while at >= low:
        if memcmp(offset(data_of(text), at), data_of(wanted), wanted.bytes) == 0:
            return characters_before(text, at)
        at -= 1
    return -1


@native
def text_startswith(text: Text, prefix: Text) -> bool:
    return prefix.bytes <= text.bytes and memcmp(data_of(text), data_of(prefix), prefix.bytes) == 0


@native
def text_endswith(text: Text, suffix: Text) -> bool:
    at = text.bytes - suffix.bytes
    return at >= 0 and memcmp(offset(data_of(text), at), data_of(suffix), suffix.bytes) == 0


@native
def text_count(text: Text, wanted: Text) -> int:
    if wanted.bytes == 0:
        return text.characters + 1
    found = 0
    at = bytes_from(text, wanted, 0)
    while at >= 0:
        found += 1
        at = bytes_from(text, wanted, at + wanted.bytes)
    return found


@native
def text_replace(text: Text, old: Text, new: Text) -> Text | None:
    """``old`` is not empty."""
    times = text_count(text, old)
    result = new_text(
        text.bytes + times * (new.bytes - old.bytes), text.characters + times * (new.characters - old.characters)
    )
    data = data_of(result)
    at = 0
    to = 0
    while True:
        found = bytes_from(text, old, at)
        stop = text.bytes if found < 0 else found
        memcpy(offset(data, to), offset(data_of(text), at), stop - at)
        to += stop - at
        if found < 0:
            return result
        memcpy(offset(data, to), data_of(new), new.bytes)
        to += new.bytes
        at = found + old.bytes


@native
def is_space(byte: int) -> bool:
    """Return whether Python's ``isspace`` holds for a character of ASCII."""
    return byte == 32 or (byte >= 9 and byte <= 13) or (byte >= 28 and byte <= 31)


@native
def text_split_spaces(text: Text) -> List:
    """``split()``, of ASCII spaces."""
    result = list_of(c("s"), 4)
    data = data_of(text)
    at = 0
    while True:
        while at < text.bytes and is_space(data[at]):
            at += 1
        if at == text.bytes:
            return result
        first = at
        while at < text.bytes and not is_space(data[at]):
            at += 1
        append(result, word_of(part(text, first, at)))


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
def text_strip(text: Text, characters: Text, left: bool, right: bool) -> Text:
    """Strip ``characters`` of ASCII."""
    data = data_of(text)
    first = 0
    last = text.bytes
    while left and first < last and has_byte(characters, data[first]):
        first += 1
    while right and first < last and has_byte(characters, data[last - 1]):
        last -= 1
    return part(text, first, last)


@native
def is_ascii(text: Text) -> bool:
    return text.bytes == text.characters


@native
def text_ord(context: Context, text: Text) -> int:
    """Return the code point of the only character; -1 and an error if there is not just one."""
    if text.characters != 1:
        fail(context, ErrorCode.TYPE_ERROR, c("ord() expected a character, but the string has another length"))
        return -1
    data = data_of(text)
    first = data[0]
    if first < 128:
        return first
    if first < 224:
        return ((first & 31) << 6) | (data[1] & 63)
    if first < 240:
        return ((first & 15) << 12) | ((data[1] & 63) << 6) | (data[2] & 63)
    return ((first & 7) << 18) | ((data[1] & 63) << 12) | ((data[2] & 63) << 6) | (data[3] & 63)


@native
def text_chr(context: Context, point: int) -> Text | None:
    if point < 0 or point > 1114111:
        fail(context, ErrorCode.VALUE_ERROR, c("chr() arg not in range(0x110000)"))
        return None
    bytes = 1
    if point >= 128:
        bytes = 2
    if point >= 2048:
        bytes = 3
    if point >= 65536:
        bytes = 4
    text = new_text(bytes, 1)
    data = data_of(text)
    rest = point
    i = bytes - 1
    while i > 0:
        data[i] = 128 | (rest & 63)
        rest = rest >> 6
        i -= 1
    if bytes == 1:
        data[0] = point
    else:
        data[0] = ((65280 >> bytes) & 255) | rest
    return text


@native
def text_of_int(number: int) -> Text:
    buffer = cast("Array[Byte]", stack(32))
    return text_of(buffer, snprintf(buffer, 32, c("%lld"), number))


@native
def text_of_bool(flag: bool) -> Text:
    return text_of(c("True"), 4) if flag else text_of(c("False"), 5)


@native
def text_of_float(number: float) -> Text:
    """Return the shortest text that reads as the same float, in Python's form."""
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
    """Return a number in scientific notation, which has this many digits, as one without an exponent."""
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
    """Add one to the last digit of a number in scientific notation; return whether no carry leaves its digits."""
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
def text_with_case(text: Text, upper: bool) -> Text:
    """Return ``upper`` or ``lower`` of a text of ASCII."""
    result = part(text, 0, text.bytes)
    data = data_of(result)
    for i in range(text.bytes):
        if upper and ord("a") <= data[i] and data[i] <= ord("z"):
            data[i] = data[i] - 32
        elif not upper and ord("A") <= data[i] and data[i] <= ord("Z"):
            data[i] = data[i] + 32
    return result


@native
def text_is_of(text: Text, wanted: int) -> bool:
    """Test the characters of a text of ASCII.

    ``wanted`` is 1 for ``isdigit``, 2 ``isalpha``, 3 ``isalnum``, 4 ``isupper``, 5 ``islower``, 6 ``isspace``."""
    data = data_of(text)
    cased = False
    for i in range(text.bytes):
        byte = data[i]
        digit = ord("0") <= byte and byte <= ord("9")
        upper = ord("A") <= byte and byte <= ord("Z")
        lower = ord("a") <= byte and byte <= ord("z")
        if wanted == 1 and not digit:
            return False
        if wanted == 2 and not (upper or lower):
            return False
        if wanted == 3 and not (upper or lower or digit):
            return False
        if (wanted == 4 and lower) or (wanted == 5 and upper):
            return False
        if wanted == 6 and not is_space(byte):
            return False
        cased = cased or upper or lower
    return cased if wanted == 4 or wanted == 5 else text.bytes > 0


@native
def parse_int(context: Context, text: Text, out: Array[int]) -> bool:
    """Write the int that a text in decimal is; return whether it is one of 64 bits."""
    data = data_of(text)
    at = 0
    last = text.bytes
    while at < last and is_space(data[at]):
        at += 1
    while last > at and is_space(data[last - 1]):
        last -= 1
    negative = at < last and data[at] == ord("-")
    if negative or (at < last and data[at] == ord("+")):
        at += 1
    found = 0
    good = at < last
    while at < last and good:
        digit = data[at] - ord("0")
        good = digit >= 0 and digit <= 9 and found <= 922337203685477579
        found = found * 10 + digit
        at += 1
    if not good and (has_byte(text, ord("_")) or text.bytes > 18):
        fail(context, ErrorCode.NOT_BUILT, c("int() of a string with underscores, or of more than 64 bits"))
        return False
    if not good:
        fail(context, ErrorCode.VALUE_ERROR, c("invalid literal for int() with base 10"))
        return False
    out[0] = -found if negative else found
    return True


@native
def parse_float(context: Context, text: Text, out: Array[int]) -> bool:
    """Write the bits of the float that a text is; return whether it is one."""
    first = 0
    last = text.bytes
    data = data_of(text)
    while first < last and is_space(data[first]):
        first += 1
    while last > first and is_space(data[last - 1]):
        last -= 1
    good = last > first
    for i in range(first, last):
        byte = data[i]
        # strtod reads hexadecimal floats, and Python does not.
        good = good and byte != ord("x") and byte != ord("X") and byte != ord("(") and byte != ord("_")
    if has_byte(text, ord("_")) or not is_ascii(text):
        fail(context, ErrorCode.NOT_BUILT, c("float() of a string with underscores, or with characters beyond ASCII"))
        return False
    end = cast("Array[int]", stack(8))
    number = strtod(cast("Array[Byte]", offset(data, first)), end)
    if not good or end[0] != bits_of(offset(data, last)):
        fail(context, ErrorCode.VALUE_ERROR, c("could not convert string to float"))
        return False
    out[0] = bits_of(number)
    return True


@native
def fail_by_text(context: Context, text: Text) -> None:
    """Note the error of a message without a class: an AssertionError if it begins so, else a RuntimeError."""
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
def is_utf8(data: Array[Byte], bytes: int) -> bool:
    """Return whether every character is whole."""
    at = 0
    while at < bytes:
        byte = data[at]
        length = 1
        if byte >= 240 and byte < 248:
            length = 4
        elif byte >= 224:
            length = 3
        elif byte >= 192:
            length = 2
        elif byte >= 128:
            return False
        if byte >= 248 or at + length > bytes:
            return False
        for i in range(1, length):
            if (data[at + i] & 192) != 128:
                return False
        at += length
    return True
