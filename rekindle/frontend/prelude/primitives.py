"""Operators and constants that the functions of the prelude use by name, as a reader and a linter see them.

Nothing here runs: :mod:`rekindle.frontend.python.library` says which operator or constant each name is.
"""

from typing import Any

from torch import Tensor

number = float
"""An int or a float, whichever it is at run time."""

MIN_OF_NOTHING = "min() arg is an empty sequence"
MAX_OF_NOTHING = "max() arg is an empty sequence"
"""The messages of ``min([])`` and ``max([])``, which differ between releases of Python."""


NOT_IN_LIST = "{} is not in list"
"""The message of ``xs.index(x)``, with the ``repr`` of ``x``, which differs between releases of Python."""


def put(items: Any, key: Any, value: Any) -> None:
    """Run ``items[key] = value``."""


def put_at(items: list[Any], index: int, value: Any) -> None:
    """Run ``items.insert(index, value)``."""


def drop(items: Any, key: Any) -> None:
    """Run ``del items[key]``."""


def removed(items: Any, key: Any) -> Any:
    """Return ``items.pop(key)``."""


def members(items: Any) -> list[Any]:
    """Return the elements of a set, or the keys of a dict."""


def indexed(x: Tensor, indices: list[Tensor | None]) -> Tensor:
    """Return ``x[indices]``."""


def put_indexed(x: Tensor, indices: list[Tensor | None], values: Tensor) -> Tensor:
    """Run ``x[indices] = values``; return ``x``."""


def scalar_tensor(x: number, dtype: int) -> Tensor:
    """Return a Tensor without dimensions that holds ``x``; 10 is the dtype ``complex128``."""


def int_of_tensor(x: Tensor) -> int:
    """Return the int that a Tensor without dimensions holds."""


def unchecked_cast(type: Any, value: Any) -> Any:
    """Return ``value``, which is known to be of ``type``."""


def isinf(x: float) -> bool:
    """Return ``math.isinf(x)``."""


def isnan(x: float) -> bool:
    """Return ``math.isnan(x)``."""


def norm(xs: list[float]) -> float:
    """Return ``math.hypot(*xs)``."""


def nextafter(x: float, towards: float) -> float:
    """Return ``math.nextafter(x, towards)``."""


def exact_sum(xs: list[float]) -> float:
    """Return ``math.fsum(xs)``."""


def float_power(base: float, exponent: float) -> float:
    """Return ``base ** exponent`` as a float."""


def phase(x: complex) -> float:
    """Return ``cmath.phase(x)``."""
