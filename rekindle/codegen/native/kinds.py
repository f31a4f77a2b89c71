"""The values that native scalar code works on."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rekindle.ir.types import BOOL, DTYPE, FLOAT, INT, STRING, ListType, Type


class Kind(IntEnum):
    """A number, a list of numbers, or a string. The code for lists knows the numbers of the first three, and of the
    last."""

    INT = 0
    FLOAT = 1
    BOOL = 2
    INTS = 3
    FLOATS = 4
    BOOLS = 5
    STRING = 6

    @property
    def llvm(self) -> str:
        """The type of such a value in code."""
        return {Kind.INT: "i64", Kind.FLOAT: "double", Kind.BOOL: "i1"}.get(self, "ptr")

    @property
    def is_list(self) -> bool:
        return Kind.INTS <= self <= Kind.BOOLS

    @property
    def element(self) -> Kind:
        """What a list is of."""
        return Kind(self - Kind.INTS)


_KINDS: Final[dict[Type, Kind]] = {
    INT: Kind.INT,
    DTYPE: Kind.INT,
    FLOAT: Kind.FLOAT,
    BOOL: Kind.BOOL,
    STRING: Kind.STRING,
}


def kind_of(type: Type) -> Kind | None:
    """The kind of values of ``type``; None if code cannot work on them."""
    if isinstance(type, ListType):
        element = _KINDS.get(type.element)
        return None if element is None or element is Kind.STRING else Kind(element + Kind.INTS)
    return _KINDS.get(type)
