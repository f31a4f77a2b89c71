"""Numbers of programs that differ between examples: a tensor with one dimension, of int64, float64 or bool."""

from __future__ import annotations

from rekindle.ir.types import BOOL, FLOAT, INT, Type


def is_number(type: Type) -> bool:
    """Return whether a batched value of this type is represented by a tensor with one number for each example."""
    return type in (INT, FLOAT, BOOL)


def word_of(type: Type) -> str:
    """Return the name of the type in the names of helpers: ``ints``, ``floats`` or ``bools``."""
    return f"{type}s"
