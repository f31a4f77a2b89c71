"""The types and built-in functions of the low-level language, as mypy sees them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeAlias, TypeVar

T = TypeVar("T")
P = TypeVar("P", bound=Callable[..., Any])


class Address:
    """An address in memory, of any type."""


class Struct(Address):
    """A structure in memory; the annotations of a subclass are its fields."""


if TYPE_CHECKING:
    Byte: TypeAlias = int
    Int8: TypeAlias = int
    Int16: TypeAlias = int
    Int32: TypeAlias = int
    Float32: TypeAlias = float
else:

    class Byte(int):
        """An element of 8 bits, read without a sign."""

    class Int8(int):
        """An element of 8 bits, read with its sign."""

    class Int16(int):
        """An element of 16 bits, read with its sign."""

    class Int32(int):
        """An element, a parameter or a result of 32 bits, read with its sign."""

    class Float32(float):
        """An element of 32 bits."""


class Array(Address, Generic[T]):
    """Elements in memory, one after the other."""

    def __getitem__(self, index: int) -> T:
        not_python()

    def __setitem__(self, index: int, value: T) -> None:
        not_python()


NULL: Final[Any] = None
"""The null pointer, of any type."""

FUNCTIONS: Final[dict[str, dict[str, Callable[..., Any]]]] = {}
"""The functions of the low-level language by Python module and name."""

TABLES: Final[dict[str, dict[str, Callable[[], bytes]]]] = {}
"""The functions that compute constant tables, by Python module and name."""


def native(function: P) -> P:
    """Mark a function as one of the low-level language, and register it in :data:`FUNCTIONS`."""
    FUNCTIONS.setdefault(function.__module__, {})[function.__name__] = function
    function.__native__ = True  # type: ignore[attr-defined]
    return function


def cold(function: P) -> P:
    """Mark a function that is seldom called: it is not inlined, and callers are laid out for the other path."""
    function.__cold__ = True  # type: ignore[attr-defined]
    return function


def extern(function: P) -> P:
    """Declare a C function of the same name; ``*arguments`` makes it variadic."""
    function.__extern__ = True  # type: ignore[attr-defined]
    return function


def tabulated(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """Mark a function that computes a constant table, for :func:`table`, and register it in :data:`TABLES`. It runs
    in Python, once."""
    found = cache(make)
    TABLES.setdefault(make.__module__, {})[make.__name__] = found
    return found


def not_python() -> NoReturn:
    """Reject a call in Python of a built-in function of the low-level language.

    Raises:
        TypeError: always.
    """
    raise TypeError("a function of the low-level language has to be compiled")


def offset(address: Address, bytes: int) -> Address:
    """Return the address ``bytes`` after ``address``."""
    not_python()


def size_of(struct: type[Struct]) -> int:
    """Return the size of a structure in bytes."""
    not_python()


def view(type: type[T], word: int) -> T:
    """Return the integer ``word`` as a pointer of this type."""
    not_python()


def stack(bytes: int) -> Address:
    """Return memory of a constant size that lives until the function returns."""
    not_python()


def bits_of(value: float | Address | None) -> int:
    """Return the 64 bits of a float or of a pointer."""
    not_python()


def float_of(bits: int) -> float:
    """Return the float with these 64 bits."""
    not_python()


def c(text: str) -> Array[Byte]:
    """Return the address of a constant C string."""
    not_python()


def table(make: Callable[[], bytes]) -> Array[Int32]:
    """Return the address of a constant table of 32-bit ints, which ``make`` computes in Python when the function is
    compiled."""
    not_python()


def exchange(array: Array[int], index: int, value: int) -> int:
    """Write an element atomically, and return its previous value."""
    not_python()


def compare_exchange(array: Array[int], index: int, expected: int, value: int) -> int:
    """Write an element if it is ``expected``, atomically, and return its previous value."""
    not_python()


def invoke(function: Address, first: Address, second: Address, third: Address) -> int:
    """Call the function at an address with three addresses; return its 32-bit result."""
    not_python()
