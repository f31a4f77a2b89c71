"""Caught exceptions: records of an error code, the name of a class, a message, and whether the program raised it."""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import NULL, Address, Array, Byte, bits_of, c, native, offset, view
from rekindle.building.runtime.c_library import strlen
from rekindle.building.runtime.dicts import new_record
from rekindle.building.runtime.memory import fields_of_record, release
from rekindle.building.runtime.objects import (
    MESSAGE_BYTES,
    Context,
    ErrorCode,
    List,
    Record,
    Text,
    fail,
    object_of,
    retain,
    word_of,
)
from rekindle.building.runtime.texts import data_of, text_of, text_of_c
from rekindle.building.runtime.values import list_contains, quoted_text


@native
def class_of_code(code: int) -> Array[Byte]:
    """Return the name of the exception class of an error code."""
    if code == ErrorCode.INDEX_ERROR:
        return c("builtins.IndexError")
    if code == ErrorCode.KEY_ERROR:
        return c("builtins.KeyError")
    if code == ErrorCode.VALUE_ERROR:
        return c("builtins.ValueError")
    if code == ErrorCode.TYPE_ERROR:
        return c("builtins.TypeError")
    if code == ErrorCode.ZERO_DIVISION_ERROR:
        return c("builtins.ZeroDivisionError")
    if code == ErrorCode.OVERFLOW_ERROR:
        return c("builtins.OverflowError")
    if code == ErrorCode.ASSERTION_ERROR:
        return c("builtins.AssertionError")
    if code == ErrorCode.NOT_IMPLEMENTED_ERROR:
        return c("builtins.NotImplementedError")
    return c("builtins.RuntimeError")


@native
def is_uncatchable(context: Context) -> bool:
    """Return whether an error exists only in libraries, such as an int that overflows: programs cannot catch it."""
    code = context.code
    if code == ErrorCode.MEMORY_ERROR:
        return context.name is None
    return code == ErrorCode.NOT_BUILT or code == ErrorCode.ARGUMENT_ERROR or code == ErrorCode.INT_LIMIT


@native
def caught_exception(context: Context) -> Record | None:
    """Return the error in the context as an exception object, and clear the context; None if there is no error."""
    if context.code == 0:
        return None
    record = new_record(c("(iisii)"), 5)
    fields = fields_of_record(record)
    fields[0] = context.code
    name = context.name
    fields[1] = bits_of(class_of_code(context.code)) if name is None else bits_of(name)
    fields[2] = word_of(text_of_c(context.message))
    fields[3] = 0 if name is None else context.is_exact
    fields[4] = int(name is not None)
    context.code = 0
    context.place = NULL
    return record


@native
def class_of(record: Record) -> Array[Byte]:
    """Return the name of an exception's class, with its module; the string is a constant."""
    return cast("Array[Byte]", view(Address, fields_of_record(record)[1]))


@native
def is_among(record: Record, names: List) -> bool:
    """Return whether the class of an exception is in a list of class names."""
    name = text_of_c(class_of(record))
    found = list_contains(names, word_of(name))
    release(name)
    return found


@native
def name_of(record: Record) -> Text:
    """Return the name of an exception's class without its module."""
    name = class_of(record)
    last = strlen(name)
    first = last
    while first > 0 and name[first - 1] != ord("."):
        first -= 1
    return text_of(cast("Array[Byte]", offset(name, first)), last - first)


@native
def raise_exception(context: Context, record: Record) -> None:
    """Store an exception in the context, so that it is raised again."""
    fields = fields_of_record(record)
    fail(context, fields[0], data_of(cast("Text", object_of(fields[2]))))
    if fields[4] != 0:
        context.name = class_of(record)
        context.is_exact = fields[3]


@native
def text_of_exception(context: Context, record: Record, key_errors: List) -> Text | None:
    """Return ``str`` of an exception; None after an error. It is an error if the library itself raised the exception,
    since its messages differ from Python's, or if the message was truncated."""
    fields = fields_of_record(record)
    message = cast("Text", object_of(fields[2]))
    if fields[3] == 0 or message.bytes >= MESSAGE_BYTES - 1:
        fail(context, ErrorCode.NOT_BUILT, c("the text of an error that the program did not raise itself"))
        return None
    if is_among(record, key_errors):
        return quoted_text(message)
    retain(message)
    return message
