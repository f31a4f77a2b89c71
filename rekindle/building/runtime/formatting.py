"""Numbers and strings with a format specification."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Array, Byte, c, native, offset, stack
from rekindle.building.runtime.c_library import memcpy, snprintf
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import Text
from rekindle.building.runtime.texts import byte_offset, data_of, new_text, part, text_of


@native
def digits_of_int(number: int, base: int, upper: bool, comma: bool) -> Text:
    """Return an int in the given base, with commas between thousands if ``comma``; digits are capitals if ``upper``."""
    buffer = cast("Array[Byte]", stack(96))
    at = 96
    rest = number
    count = 0
    while rest != 0 or count == 0:
        if comma and count > 0 and count % 3 == 0:
            at -= 1
            buffer[at] = ord(",")
        # The remainder has the sign of the divisor, so that the smallest int needs no positive form.
        digit = rest % base
        if number < 0:
            digit = (base - digit) % base
            rest = (rest + digit) // base
        else:
            rest = rest // base
        at -= 1
        buffer[at] = ord("0") + digit if digit < 10 else (ord("A") if upper else ord("a")) + digit - 10
        count += 1
    if number < 0:
        at -= 1
        buffer[at] = ord("-")
    return text_of(cast("Array[Byte]", offset(buffer, at)), 96 - at)


@native
def prefixed_digits(number: int, base: int, upper: bool) -> Text:
    """Return an int in the given base, with the prefix of the base after the sign: ``-0xff``. With ``upper``, the
    letters of digits and prefix are capitals."""
    digits = digits_of_int(number, base, upper, False)
    letter = ord("x") if base == 16 else ord("o") if base == 8 else ord("b")
    if upper:
        letter = ord("X")
    result = new_text(digits.bytes + 2, digits.characters + 2)
    data = data_of(result)
    head = int(number < 0)
    data[0] = ord("-")
    data[head] = ord("0")
    data[head + 1] = letter
    memcpy(offset(data, head + 2), offset(data_of(digits), head), digits.bytes - head)
    release(digits)
    return result


@native
def text_of_real(form: Array[Byte], precision: int, number: float, percent: bool, comma: bool) -> Text:
    """Return a float as ``snprintf`` writes it; with commas between thousands, or a percent sign."""
    buffer = cast("Array[Byte]", stack(512))
    value = number * 100.0 if percent else number
    if value != value:
        if form[3] < ord("a"):
            return text_of(c("NAN"), 3)
        return text_of(c("nan%"), 4) if percent else text_of(c("nan"), 3)
    length = snprintf(buffer, 500, form, precision, value)
    if percent:
        buffer[length] = ord("%")
        length += 1
    if not comma or value - value != 0.0:
        return text_of(buffer, length)
    return with_commas(buffer, length)


@native
def with_commas(text: Array[Byte], length: int) -> Text:
    start = 1 if text[0] == ord("-") else 0
    point = start
    while point < length and text[point] != ord("."):
        point += 1
    result = cast("Array[Byte]", stack(768))
    to = 0
    for i in range(length):
        if i > start and i < point and (point - i) % 3 == 0:
            result[to] = ord(",")
            to += 1
        result[to] = text[i]
        to += 1
    return text_of(result, to)


@native
def with_sign(text: Text, sign: int) -> Text:
    """Return ``text``, a number, after the character ``sign`` unless it is negative. The caller's reference to ``text``
    is consumed."""
    if data_of(text)[0] == ord("-"):
        return text
    result = new_text(text.bytes + 1, text.characters + 1)
    data_of(result)[0] = sign
    memcpy(offset(data_of(result), 1), data_of(text), text.bytes)
    release(text)
    return result


@native
def cut(text: Text, characters: int) -> Text:
    """Return the first characters of a string, and release the string."""
    result = part(text, 0, byte_offset(text, min(characters, text.characters)))
    release(text)
    return result


@native
def padded(text: Text, width: int, fill: Text, align: int, prefix: int) -> Text:
    """Return a string padded to a width. The caller's reference to ``text`` is consumed. ``align`` is ``<``, ``>``,
    ``^``, or ``=`` for padding after the sign and ``prefix`` characters."""
    missing = width - text.characters
    if missing <= 0:
        return text
    before = 0
    if align == ord(">") or align == ord("="):
        before = missing
    if align == ord("^"):
        before = missing // 2
    head = 0
    first = data_of(text)[0]
    if align == ord("=") and (first == ord("-") or first == ord("+") or first == ord(" ")):
        head = 1
    if align == ord("="):
        head += prefix
    result = new_text(text.bytes + missing * fill.bytes, width)
    data = data_of(result)
    memcpy(data, data_of(text), head)
    to = head
    for _i in range(before):
        memcpy(offset(data, to), data_of(fill), fill.bytes)
        to += fill.bytes
    memcpy(offset(data, to), offset(data_of(text), head), text.bytes - head)
    to += text.bytes - head
    for _j in range(missing - before):
        memcpy(offset(data, to), data_of(fill), fill.bytes)
        to += fill.bytes
    release(text)
    return result
