"""Descriptors: strings that encode the types of 64-bit words.

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
``(X…)CN;`` an instance of the class named ``N`` with these fields
``@N;``     a handle of an instance of the class named ``N``, in the arguments of a method: an ``o`` elsewhere
``|X…)``    one of several types, in the arguments of a method: an ``a`` elsewhere
==========  ==============================================================
"""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import NULL, Array, Byte, bits_of, c, native, offset
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
UNION = ord("|")
HANDLE = ord("@")
INSTANCE = ord("C")
END = ord(";")
OBJECT = ord("o")
CLOSE = ord(")")
OPTIONAL = ord("?")
ANY = ord("a")


@native
def is_plain(descriptor: Array[Byte]) -> bool:
    """Return whether the 64-bit word of a value holds the value itself, not an address."""
    first = descriptor[0]
    return first == INT or first == FLOAT or first == BOOL


@native
def advance(descriptor: Array[Byte], count: int) -> Array[Byte]:
    return cast("Array[Byte]", offset(descriptor, count))


@native
def after(descriptor: Array[Byte]) -> Array[Byte]:
    """Return what follows the first descriptor in a string of descriptors."""
    first = descriptor[0]
    rest = advance(descriptor, 1)
    if first == LIST or first == OPTIONAL:
        return after(rest)
    if first == DICT:
        return after(after(rest))
    if first == OPEN or first == UNION:
        while rest[0] != CLOSE:
            rest = after(rest)
        rest = advance(rest, 1)
        if first == OPEN and rest[0] == INSTANCE:
            rest = after_name(rest)
    return after_name(rest) if first == HANDLE else rest


@native
def after_name(descriptor: Array[Byte]) -> Array[Byte]:
    """Return what follows the name of a class, which ends with a semicolon, in a string of descriptors."""
    rest = descriptor
    while rest[0] != END:
        rest = advance(rest, 1)
    return advance(rest, 1)


@native
def name_of_class(descriptor: Array[Byte]) -> Array[Byte] | None:
    """Return the class name in the descriptor of an instance, up to the semicolon; None for the descriptor of a
    tuple."""
    rest = advance(descriptor, 1)
    if descriptor[0] == HANDLE:
        return rest
    while rest[0] != CLOSE:
        rest = after(rest)
    rest = advance(rest, 1)
    return advance(rest, 1) if rest[0] == INSTANCE else NULL


@native
def as_element(descriptor: Array[Byte]) -> Array[Byte]:
    """Return the descriptor of container elements that corresponds to the descriptor of an argument from C."""
    if descriptor[0] == UNION or (descriptor[0] == OPTIONAL and descriptor[1] == UNION):
        return c("a")
    if descriptor[0] == OPTIONAL and descriptor[1] == OPEN and name_of_class(advance(descriptor, 1)) is not None:
        return c("?o")
    if descriptor[0] == OPTIONAL and descriptor[1] == HANDLE:
        return c("?o")
    if descriptor[0] == HANDLE or (descriptor[0] == OPEN and name_of_class(descriptor) is not None):
        return c("o")
    return descriptor


@native
def same_descriptor(a: Array[Byte], b: Array[Byte]) -> bool:
    """Return whether two descriptors are of the same type, where the instances of all classes count as one type: the
    elements of containers do not record their class."""
    first = as_element(a)
    second = as_element(b)
    if first[0] != second[0]:
        return False
    if first[0] == LIST or first[0] == OPTIONAL:
        return same_descriptor(advance(first, 1), advance(second, 1))
    if first[0] == DICT:
        value = after(advance(first, 1))
        other = after(advance(second, 1))
        return same_descriptor(advance(first, 1), advance(second, 1)) and same_descriptor(value, other)
    if first[0] != OPEN:
        return True
    left = advance(first, 1)
    right = advance(second, 1)
    while left[0] != CLOSE and right[0] != CLOSE:
        if not same_descriptor(left, right):
            return False
        left = after(left)
        right = after(right)
    return left[0] == right[0]


@native
def has_instances(descriptor: Array[Byte]) -> bool:
    """Return whether the type is or contains a class. A type that is left open, which may hold an instance, does not
    count."""
    element = as_element(descriptor)
    if element[0] == LIST or element[0] == OPTIONAL:
        return has_instances(advance(element, 1))
    if element[0] == DICT:
        key = advance(element, 1)
        return has_instances(key) or has_instances(after(key))
    if element[0] != OPEN:
        return element[0] == OBJECT
    field = advance(element, 1)
    while field[0] != CLOSE:
        if has_instances(field):
            return True
        field = after(field)
    return False


@native
def is_vague(descriptor: Array[Byte]) -> bool:
    """Return whether a descriptor leaves the type of a value open: the value may be None, or is a boxed number."""
    end = bits_of(after(descriptor))
    at = descriptor
    while bits_of(at) != end:
        if at[0] == ANY or at[0] == OPTIONAL or at[0] == UNION:
            return True
        at = advance(at, 1)
    return False


@native
def descriptor_of_kind(kind: int) -> Array[Byte]:
    """Return the descriptor of the value in a box."""
    if kind == Kind.INT:
        return c("i")
    if kind == Kind.FLOAT:
        return c("f")
    return c("b")
