"""A statically typed subset of Python that compiles to LLVM IR.

The runtime of native libraries is written in it (:mod:`rekindle.building.runtime`): functions that mypy checks as
Python, and that :func:`~rekindle.building.lowlevel.module.compile_functions` translates. They never run as Python.

==================  =====================================================================================
in Python           in LLVM IR
==================  =====================================================================================
``int``             ``i64``; arithmetic wraps, ``//`` and ``%`` round down
``float``           ``double``
``bool``            ``i1``
a :class:`Struct`   ``ptr`` to fields of one 64-bit word each, those of the base class first
``Array[T]``        ``ptr`` to elements; ``T`` is a :class:`Struct`, an ``Array``, ``int``, ``float``, or one of
                    :class:`Byte`, :class:`Int8`, :class:`Int16`, :class:`Int32`, :class:`Float32`
``Address``         ``ptr``
``c("text")``         ``ptr`` to a constant that ends with a zero byte
``table(function)``   ``ptr`` to a constant with the bytes that the function returns
``None``            ``null``
==================  =====================================================================================

Statements: assignments, ``if``, ``while``, ``for`` over ``range``, ``break``, ``continue``, ``return``, calls. A name
has one type in a function. Constants are read from the globals of the function when it is compiled.
"""

from rekindle.building.lowlevel.types import (
    NULL as NULL,
    Address as Address,
    Array as Array,
    Byte as Byte,
    Float32 as Float32,
    Int8 as Int8,
    Int16 as Int16,
    Int32 as Int32,
    Struct as Struct,
    bits_of as bits_of,
    c as c,
    cold as cold,
    compare_exchange as compare_exchange,
    exchange as exchange,
    extern as extern,
    float_of as float_of,
    invoke as invoke,
    native as native,
    offset as offset,
    size_of as size_of,
    stack as stack,
    table as table,
    tabulated as tabulated,
    view as view,
)
