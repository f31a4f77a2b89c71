"""Comparison and printing of values, by their descriptors."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Array, Byte, c, float_of, native, stack, table
from rekindle.building.runtime.c_library import snprintf
from rekindle.building.runtime.characters import is_member, point_at, printable, width_of
from rekindle.building.runtime.complexes import complex_equal, text_of_complex
from rekindle.building.runtime.descriptors import (
    BOOL,
    CLOSE,
    END,
    FLOAT,
    INT,
    LIST,
    NONE,
    OPEN,
    advance,
    after,
    descriptor_of_kind,
    has_instances,
    is_plain,
    is_vague,
    name_of_class,
    same_descriptor,
)
from rekindle.building.runtime.lists import append, list_of
from rekindle.building.runtime.memory import fields_of_record, release
from rekindle.building.runtime.objects import (
    Box,
    Complex,
    Context,
    Dict,
    ErrorCode,
    Kind,
    List,
    Object,
    Record,
    Text,
    fail,
    object_of,
    word_of,
)
from rekindle.building.runtime.texts import (
    data_of,
    has_byte,
    text_concat,
    text_equal,
    text_join,
    text_of,
    text_of_bool,
    text_of_float,
    text_of_int,
)


@native
def words_equal(descriptor: Array[Byte], a: int, b: int) -> bool:
    """Return whether two values, as 64-bit words of one type, are equal by Python's ``==``; dicts and tensors, whether
    they are the same object."""
    if descriptor[0] == FLOAT:
        return float_of(a) == float_of(b)
    if is_plain(descriptor):
        return a == b
    if descriptor[0] == NONE:
        return True
    return objects_equal(object_of(a), object_of(b))


@native
def objects_equal(a: Object | None, b: Object | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.kind != b.kind:
        return False
    if a.kind <= Kind.BOOL:
        return words_equal(descriptor_of_kind(a.kind), cast("Box", a).word, cast("Box", b).word)
    if a.kind == Kind.TEXT:
        return text_equal(cast("Text", a), cast("Text", b))
    if a.kind == Kind.COMPLEX:
        return complex_equal(cast("Complex", a), cast("Complex", b))
    if a.kind == Kind.LIST:
        return lists_equal(cast("List", a), cast("List", b))
    if a.kind == Kind.RECORD:
        return records_equal(cast("Record", a), cast("Record", b))
    return a is b


@native
def lists_equal(a: List, b: List) -> bool:
    if a.length != b.length:
        return False
    for i in range(a.length):
        if not words_equal(a.element, a.items[i], b.items[i]):
            return False
    return True


@native
def records_equal(a: Record, b: Record) -> bool:
    descriptor = advance(a.fields, 1)
    i = 0
    while descriptor[0] != CLOSE:
        if not words_equal(descriptor, fields_of_record(a)[i], fields_of_record(b)[i]):
            return False
        descriptor = after(descriptor)
        i += 1
    return True


@native
def list_contains(items: List, word: int) -> bool:
    for i in range(items.length):
        if words_equal(items.element, items.items[i], word):
            return True
    return False


@native
def list_index(items: List, word: int) -> int:
    """Return the index of the first element that equals a value; -1 if there is none."""
    for i in range(items.length):
        if words_equal(items.element, items.items[i], word):
            return i
    return -1


@native
def list_count(items: List, word: int) -> int:
    found = 0
    for i in range(items.length):
        found += int(words_equal(items.element, items.items[i], word))
    return found


@native
def conforms(context: Context, each: Object, wanted: Array[Byte]) -> int:
    """Return 1 if a container or instance is of the type ``wanted``, 0 if not. Return -1, with an error, if that
    cannot be decided because elements are boxed or the container is empty. The descriptor ``(`` alone stands for any
    tuple."""
    first = wanted[0]
    if first == OPEN:
        if each.kind != Kind.RECORD:
            return 0
        record = cast("Record", each)
        name = name_of_class(record.fields)
        if wanted[1] == 0:
            return int(name is None)
        other = name_of_class(wanted)
        if name is not None or other is not None:
            return int(name is not None and other is not None and same_name(name, other))
        return verdict(context, False, record.fields, wanted)
    if first == LIST:
        if each.kind != Kind.LIST:
            return 0
        items = cast("List", each)
        return verdict(context, items.length == 0, items.element, advance(wanted, 1))
    if each.kind != Kind.DICT:
        return 0
    pairs = cast("Dict", each)
    of_keys = verdict(context, pairs.length == 0, pairs.key, advance(wanted, 1))
    return verdict(context, pairs.length == 0, pairs.value, after(advance(wanted, 1))) if of_keys == 1 else of_keys


@native
def same_name(a: Array[Byte], b: Array[Byte]) -> bool:
    """Return whether two names that end with a semicolon are the same."""
    i = 0
    while a[i] == b[i] and a[i] != END:
        i += 1
    return a[i] == b[i]


@native
def verdict(context: Context, is_empty: bool, have: Array[Byte], wanted: Array[Byte]) -> int:
    if same_descriptor(have, wanted) and not has_instances(wanted):
        return 1
    if is_empty or has_instances(wanted) or is_vague(have) or is_vague(wanted):
        fail(context, ErrorCode.NOT_BUILT, c("whether a container is of a type depends on the elements that it has"))
        return -1
    return 0


# -------------------------------------------------------------------------------------------------------------- texts


@native
def joined(a: Text, b: Text) -> Text:
    """Return the concatenation of two strings, and release both."""
    result = text_concat(a, b)
    release(a)
    release(b)
    return result


@native
def text_of_word(descriptor: Array[Byte], word: int, quoted: bool) -> Text:
    """Return ``str`` of a value given as a 64-bit word, or ``repr`` if ``quoted``."""
    first = descriptor[0]
    if first == INT:
        return text_of_int(word)
    if first == FLOAT:
        return text_of_float(float_of(word))
    if first == BOOL:
        return text_of_bool(word != 0)
    each = object_of(word)
    if each is None:
        return text_of(c("None"), 4)
    if each.kind <= Kind.BOOL:
        return text_of_word(descriptor_of_kind(each.kind), cast("Box", each).word, quoted)
    if each.kind == Kind.TEXT:
        return (
            quoted_text(cast("Text", each))
            if quoted
            else text_of(data_of(cast("Text", each)), cast("Text", each).bytes)
        )
    if each.kind == Kind.COMPLEX:
        return text_of_complex(cast("Complex", each))
    if each.kind == Kind.LIST:
        return text_of_list(cast("List", each))
    if each.kind == Kind.DICT:
        return text_of_dict(cast("Dict", each))
    if each.kind == Kind.RECORD:
        return text_of_record(cast("Record", each))
    return text_of(c("<tensor>"), 8)


@native
def escaped_point(point: int) -> Text:
    buffer = cast("Array[Byte]", stack(16))
    if point < 256:
        return text_of(buffer, snprintf(buffer, 16, c("\\x%02llx"), point))
    if point < 65536:
        return text_of(buffer, snprintf(buffer, 16, c("\\u%04llx"), point))
    return text_of(buffer, snprintf(buffer, 16, c("\\U%08llx"), point))


@native
def quoted_text(text: Text) -> Text:
    """Return a string in quotes, with the escapes that Python writes."""
    quote = text_of(c('"'), 1) if has_byte(text, ord("'")) and not has_byte(text, ord('"')) else text_of(c("'"), 1)
    mark = data_of(quote)[0]
    data = data_of(text)
    pieces = list_of(c("s"), text.bytes)
    at = 0
    while at < text.bytes:
        point = point_at(data, at)
        width = width_of(data[at])
        if point == ord("\\") or point == mark:
            append(pieces, word_of(text_of(c("\\"), 1)))
        if point == 10:
            append(pieces, word_of(text_of(c("\\n"), 2)))
        elif point == 9:
            append(pieces, word_of(text_of(c("\\t"), 2)))
        elif point == 13:
            append(pieces, word_of(text_of(c("\\r"), 2)))
        elif is_member(table(printable), point):
            append(pieces, word_of(text_of(advance(data, at), width)))
        else:
            append(pieces, word_of(escaped_point(point)))
        at += width
    empty = text_of(c(""), 0)
    body = text_join(empty, pieces)
    release(pieces)
    release(empty)
    opened = text_concat(quote, body)
    release(body)
    return joined(opened, quote)


@native
def text_of_list(items: List) -> Text:
    result = text_of(c("["), 1)
    for i in range(items.length):
        if i > 0:
            result = joined(result, text_of(c(", "), 2))
        result = joined(result, text_of_word(items.element, items.items[i], True))
    return joined(result, text_of(c("]"), 1))


@native
def text_of_size(items: List) -> Text:
    """Return the text of a ``torch.Size``."""
    result = text_of(c("torch.Size("), 11)
    result = joined(result, text_of_list(items))
    return joined(result, text_of(c(")"), 1))


@native
def text_of_dict(each: Dict) -> Text:
    result = text_of(c("{"), 1)
    seen = 0
    for i in range(each.used):
        if each.entries[3 * i] != 0:
            if seen > 0:
                result = joined(result, text_of(c(", "), 2))
            result = joined(result, text_of_word(each.key, each.entries[3 * i + 1], True))
            result = joined(result, text_of(c(": "), 2))
            result = joined(result, text_of_word(each.value, each.entries[3 * i + 2], True))
            seen += 1
    return joined(result, text_of(c("}"), 1))


@native
def text_of_record(each: Record) -> Text:
    result = text_of(c("("), 1)
    descriptor = advance(each.fields, 1)
    i = 0
    while descriptor[0] != CLOSE:
        if i > 0:
            result = joined(result, text_of(c(", "), 2))
        result = joined(result, text_of_word(descriptor, fields_of_record(each)[i], True))
        descriptor = after(descriptor)
        i += 1
    return joined(result, text_of(c(",)"), 2) if i == 1 else text_of(c(")"), 1))
