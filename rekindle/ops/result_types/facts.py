"""Abstract values of the type analysis: what is known of a value before the graph runs.

============================  ==========================================================================================
:class:`TensorType`           a tensor; what is None in it is not known
:class:`Constant`             a number, string, None or device whose value is known
:class:`Unknown`              a bool, int, float, complex or Scalar whose value is not known
``tuple`` of facts            a tuple, or a list that nothing writes to, of known length
:class:`Every`                such a list of unknown length: a fact that holds for each item
``None``                      nothing is known
============================  ==========================================================================================
"""

from __future__ import annotations

from typing import Any, TypeAlias

from rekindle.ir.types import TensorType


class Constant:
    """A known Python value. Equal only to a constant of the same class: 1, 1.0 and True are different constants."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and type(other.value) is type(self.value) and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


class Unknown:
    """A number of which only the class is known: ``bool``, ``int``, ``float``, ``complex``, or ``number`` (any)."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown) and other.kind == self.kind

    def __hash__(self) -> int:
        return hash(self.kind)


class Every:
    """A list of unknown length. ``item`` holds for each of its items."""

    __slots__ = ("item",)

    def __init__(self, item: Fact) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Every) and self.item == other.item

    def __hash__(self) -> int:
        return hash(self.item)


Fact: TypeAlias = TensorType | Constant | Unknown | Every | tuple[Any, ...] | None


def join(a: Fact, b: Fact) -> Fact:
    """Return a fact that holds for both ``a`` and ``b``: tensor types are merged, and tuples of one length item by
    item. Other facts must be equal; else the result is None."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.merge(b)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(join(x, y) for x, y in zip(a, b, strict=True))
    return a if isinstance(a, (Constant, Every, Unknown)) and a == b else None
