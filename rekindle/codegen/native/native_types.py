"""Types of the values that native code computes with."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rekindle.ir.types import (
    BOOL,
    DTYPE,
    FLOAT,
    INT,
    LAYOUT,
    MEMORY_FORMAT,
    NUMBER,
    QSCHEME_NUMBER,
    STRING,
    ListType,
    Type,
    union,
)


class NativeType(IntEnum):
    """The representation of a value in native code: an int, a float, a bool, a number of open type (NUMBER), a list of
    numbers or of such lists, or a string."""

    INT = 0
    FLOAT = 1
    BOOL = 2
    INTS = 3
    FLOATS = 4
    BOOLS = 5
    STRING = 6
    NUMBER = 7
    """An int or a float: which one is known only at run time."""
    INT_LISTS = 8
    FLOAT_LISTS = 9
    BOOL_LISTS = 10

    @property
    def llvm(self) -> str:
        """The LLVM type of a value; not defined for NUMBER, whose values have three registers."""
        return {NativeType.INT: "i64", NativeType.FLOAT: "double", NativeType.BOOL: "i1"}.get(self, "ptr")

    @property
    def registers(self) -> tuple[str, ...]:
        """The LLVM types of the registers that hold a value. For NUMBER: whether it is a float, its value if it is an
        int, and its value as a float, rounded if needed."""
        return ("i1", "i64", "double") if self is NativeType.NUMBER else (self.llvm,)

    @property
    def words(self) -> int:
        """Number of 64-bit words of a result: a NUMBER has its own kind in the second."""
        return 2 if self is NativeType.NUMBER else 1

    def fits(self, other: NativeType) -> bool:
        """Return whether a value of this representation can be used where ``other`` is expected."""
        return self is other or (other is NativeType.NUMBER and self in (NativeType.INT, NativeType.FLOAT))

    @property
    def is_list(self) -> bool:
        return self in _ELEMENTS

    @property
    def element(self) -> NativeType:
        """The element type of a list."""
        return _ELEMENTS[self]


_ELEMENTS: Final = {
    NativeType.INTS: NativeType.INT,
    NativeType.FLOATS: NativeType.FLOAT,
    NativeType.BOOLS: NativeType.BOOL,
    NativeType.INT_LISTS: NativeType.INTS,
    NativeType.FLOAT_LISTS: NativeType.FLOATS,
    NativeType.BOOL_LISTS: NativeType.BOOLS,
}
"""Element types of lists."""
_LISTS: Final = {element: kind for kind, element in _ELEMENTS.items()}

_KINDS: Final[dict[Type, NativeType]] = {
    INT: NativeType.INT,
    **dict.fromkeys((DTYPE, LAYOUT, MEMORY_FORMAT, QSCHEME_NUMBER), NativeType.INT),
    FLOAT: NativeType.FLOAT,
    BOOL: NativeType.BOOL,
    STRING: NativeType.STRING,
    union((INT, FLOAT)): NativeType.NUMBER,
    NUMBER: NativeType.NUMBER,
}


def native_type_of(type: Type) -> NativeType | None:
    """Return the native representation of values of ``type``; None if native code does not support them."""
    if isinstance(type, ListType):
        element = native_type_of(type.element)
        return None if element is None else _LISTS.get(element)
    return _KINDS.get(type)
