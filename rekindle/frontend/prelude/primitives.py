"""Operators that the functions of the prelude call by name, as a reader and a linter see them.

Nothing here runs: :mod:`rekindle.frontend.python.library` says which operator each name is.
"""

from typing import Any

from torch import Tensor

number = float
"""An int or a float, whichever it is at run time."""


def put(items: Any, key: Any, value: Any) -> None:
    """``items[key] = value``."""


def put_at(items: list[Any], index: int, value: Any) -> None:
    """``items.insert(index, value)``."""


def drop(items: Any, key: Any) -> None:
    """``del items[key]``."""


def removed(items: Any, key: Any) -> Any:
    """``items.pop(key)``."""


def members(items: Any) -> list[Any]:
    """Return the elements of a set, or the keys of a dict."""


def indexed(x: Tensor, indices: list[Tensor | None]) -> Tensor:
    """``x[indices]``."""


def put_indexed(x: Tensor, indices: list[Tensor | None], values: Tensor) -> Tensor:
    """``x[indices] = values``."""


def int_of_tensor(x: Tensor) -> int:
    """Return the int that a Tensor without dimensions holds."""


def unchecked_cast(type: Any, value: Any) -> Any:
    """``value``, which is known to be of ``type``."""


def isinf(x: float) -> bool:
    """``math.isinf``."""


def isnan(x: float) -> bool:
    """``math.isnan``."""


def norm(xs: list[float]) -> float:
    """``math.hypot`` of a list."""


def nextafter(x: float, towards: float) -> float:
    """``math.nextafter`` by one step."""


def exact_sum(xs: list[float]) -> float:
    """``math.fsum``."""


def float_power(base: float, exponent: float) -> float:
    """``base ** exponent`` as a float."""


def phase(x: complex) -> float:
    """``cmath.phase``."""
