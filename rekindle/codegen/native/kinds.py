"""The values that native scalar code works on."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rekindle.ir.types import BOOL, FLOAT, INT, ListType, Type


class Kind(IntEnum):
    """A number, or a list of numbers. The numbers of the first three are those that the code for lists knows."""

    INT = 0
    FLOAT = 1
    BOOL = 2
    INTS = 3
    FLOATS = 4
    BOOLS = 5

    @property
    def llvm(self) -> str:
        """The type of such a value in code."""
        return {Kind.INT: "i64", Kind.FLOAT: "double", Kind.BOOL: "i1"}.get(self, "ptr")

    @property
    def is_list(self) -> bool:
        return self >= Kind.INTS

    @property
    def element(self) -> Kind:
        """What a list is of."""
        return Kind(self - Kind.INTS)


_KINDS: Final[dict[Type, Kind]] = {INT: Kind.INT, FLOAT: Kind.FLOAT, BOOL: Kind.BOOL}


def kind_of(type: Type) -> Kind | None:
    """The kind of values of ``type``; None if code cannot work on them."""
    if isinstance(type, ListType):
        element = _KINDS.get(type.element)
        return None if element is None else Kind(element + Kind.INTS)
    return _KINDS.get(type)
