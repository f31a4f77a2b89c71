"""Descriptors: texts that describe the contents of words.

==========  ==============================================================
``i f b``   an int, a float, a bool: the word itself
``s t c``   a string, a tensor, a complex number
``n``       None
``[X``      a list of ``X``
``{KX``     a dict from ``K`` to ``X``
``(X…)``    a tuple, or an instance of a class with these fields
``?X``      an ``X`` or None; a number is boxed
``a``       anything; a number is boxed
``o``       an instance of a class
==========  ==============================================================
"""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Array, Byte, c, native, offset
from rekindle.building.runtime.objects import Kind

INT = ord("i")
FLOAT = ord("f")
BOOL = ord("b")
TEXT = ord("s")
COMPLEX = ord("c")
TENSOR = ord("t")
NONE = ord("n")
LIST = ord("[")
DICT = ord("{")
OPEN = ord("(")
CLOSE = ord(")")
OPTIONAL = ord("?")
ANY = ord("a")


@native
def is_plain(descriptor: Array[Byte]) -> bool:
    """Return whether a word is the value itself, and no address."""
    first = descriptor[0]
    return first == INT or first == FLOAT or first == BOOL


@native
def advance(descriptor: Array[Byte], count: int) -> Array[Byte]:
    return cast("Array[Byte]", offset(descriptor, count))


@native
def after(descriptor: Array[Byte]) -> Array[Byte]:
    """Return the rest of a text after its first descriptor."""
    first = descriptor[0]
    rest = advance(descriptor, 1)
    if first == LIST or first == OPTIONAL:
        return after(rest)
    if first == DICT:
        return after(after(rest))
    if first == OPEN:
        while rest[0] != CLOSE:
            rest = after(rest)
        return advance(rest, 1)
    return rest


@native
def descriptor_of_kind(kind: int) -> Array[Byte]:
    """Return the descriptor of the value in a box."""
    if kind == Kind.INT:
        return c("i")
    if kind == Kind.FLOAT:
        return c("f")
    return c("b")
