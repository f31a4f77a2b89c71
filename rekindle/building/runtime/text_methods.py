"""Methods of strings that justify, partition and split."""

from __future__ import annotations

from rekindle.building.lowlevel import NULL, Array, Byte, c, native, offset
from rekindle.building.runtime.c_library import memcmp, memcpy, memset
from rekindle.building.runtime.characters import point_at, width_of
from rekindle.building.runtime.lists import append, list_of, list_reverse
from rekindle.building.runtime.objects import Context, ErrorCode, List, Text, fail, word_of
from rekindle.building.runtime.texts import bytes_from, data_of, new_text, part


@native
def text_justify(context: Context, text: Text, width: int, fill: Text, align: int) -> Text | None:
    """Return ``ljust``, ``rjust`` or ``center`` of a string, or None after an error. ``align`` is ``<``, ``>`` or
    ``^``."""
    if fill.characters != 1:
        fail(context, ErrorCode.TYPE_ERROR, c("The fill character must be exactly one character long"))
        return None
    missing = width - text.characters
    if missing <= 0:
        return part(text, 0, text.bytes)
    before = 0
    if align == ord(">"):
        before = missing
    if align == ord("^"):
        before = missing // 2 + (missing & width & 1)
    result = new_text(text.bytes + missing * fill.bytes, text.characters + missing)
    to = write_repeated(data_of(result), 0, fill, before)
    memcpy(offset(data_of(result), to), data_of(text), text.bytes)
    write_repeated(data_of(result), to + text.bytes, fill, missing - before)
    return result


@native
def write_repeated(to: Array[Byte], at: int, fill: Text, count: int) -> int:
    """Write ``fill`` ``count`` times, from byte ``at`` on; return the byte after it."""
    for _i in range(count):
        memcpy(offset(to, at), data_of(fill), fill.bytes)
        at += fill.bytes
    return at


@native
def text_zfill(text: Text, width: int) -> Text:
    missing = width - text.characters
    if missing <= 0:
        return part(text, 0, text.bytes)
    result = new_text(text.bytes + missing, text.characters + missing)
    data = data_of(result)
    memset(data, ord("0"), missing)
    memcpy(offset(data, missing), data_of(text), text.bytes)
    first = data[missing]
    if text.bytes > 0 and (first == ord("+") or first == ord("-")):
        data[0] = first
        data[missing] = ord("0")
    return result


@native
def write_expanded(text: Text, size: int, to: Array[Byte] | None) -> int:
    """Write a string with spaces in place of tabs to ``to``, unless that is null; return the number of bytes."""
    data = data_of(text)
    column = 0
    bytes = 0
    for i in range(text.bytes):
        byte = data[i]
        count = 1
        if byte == 9:
            count = size - column % size if size > 0 else 0
            column += count
        elif byte == 10 or byte == 13:
            column = 0
        elif (byte & 192) != 128:
            column += 1
        if to is not None:
            memset(offset(to, bytes), 32 if byte == 9 else byte, count)
        bytes += count
    return bytes


@native
def text_expandtabs(text: Text, size: int) -> Text:
    bytes = write_expanded(text, size, NULL)
    # Tabs and the spaces in their place are single bytes.
    result = new_text(bytes, text.characters + bytes - text.bytes)
    write_expanded(text, size, data_of(result))
    return result


@native
def last_bytes(text: Text, wanted: Text, end: int) -> int:
    """Return the last byte offset at which ``wanted`` occurs before ``end``; -1 if there is none."""
    at = end - wanted.bytes
    while at >= 0:
        if memcmp(offset(data_of(text), at), data_of(wanted), wanted.bytes) == 0:
            return at
        at -= 1
    return -1


@native
def text_partition(context: Context, text: Text, separator: Text, parts: Array[int], last: bool) -> bool:
    """Write the three strings of ``partition``, or of ``rpartition`` if ``last``, to ``parts``. Return False after
    an error."""
    if separator.bytes == 0:
        fail(context, ErrorCode.VALUE_ERROR, c("empty separator"))
        return False
    at = last_bytes(text, separator, text.bytes) if last else bytes_from(text, separator, 0)
    first = at
    after = at + separator.bytes
    if at < 0:
        first = 0 if last else text.bytes
        after = first
    parts[0] = word_of(part(text, 0, first))
    parts[1] = word_of(part(text, first, after))
    parts[2] = word_of(part(text, after, text.bytes))
    return True


@native
def text_rsplit(context: Context, text: Text, separator: Text, most: int) -> List | None:
    """Return ``rsplit`` of a string at a separator, or None after an error. There are at most ``most`` splits; no
    limit if ``most`` is negative."""
    if separator.bytes == 0:
        fail(context, ErrorCode.VALUE_ERROR, c("empty separator"))
        return None
    result = list_of(c("s"), 4)
    end = text.bytes
    while True:
        at = last_bytes(text, separator, end) if most != 0 else -1
        if at < 0:
            append(result, word_of(part(text, 0, end)))
            list_reverse(result)
            return result
        append(result, word_of(part(text, at + separator.bytes, end)))
        end = at
        most -= 1


@native
def is_line_break(point: int) -> bool:
    if (point >= 10 and point <= 13) or (point >= 28 and point <= 30):
        return True
    return point == 133 or point == 8232 or point == 8233


@native
def text_splitlines(text: Text, keep: bool) -> List:
    """Return the lines of a string, with their line ends if ``keep``."""
    result = list_of(c("s"), 4)
    data = data_of(text)
    first = 0
    while first < text.bytes:
        at = first
        while at < text.bytes and not is_line_break(point_at(data, at)):
            at += width_of(data[at])
        end = at
        if at < text.bytes:
            end = at + width_of(data[at])
            if data[at] == 13 and end < text.bytes and data[end] == 10:
                end += 1
        append(result, word_of(part(text, first, end if keep else at)))
        first = end
    return result
