"""Numbers from Python where a program declares a number.

A program compiled from Python takes a number where the declared type holds it exactly: an int for a float or a complex,
a bool for an int, 0 or 1 for a bool, a NumPy scalar for a number of its kind. It takes no Tensor: Python would compute
with the Tensor, with its dtype and its gradient.

A program compiled through the drop-in takes a Tensor of one element too, as ``torch.jit`` does, where the number that
it holds fits: not a float for an int, which ``torch.jit`` cuts off, and not a Tensor through which a gradient would
flow.

A program from an archive takes what TorchScript takes there: ints are rounded to floats, numbers and None are bools by
their truth value, and Tensors of one element are numbers, unless they require grad.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch

from rekindle.ir.scalar_types import NUMBERED_CLASSES, number_of
from rekindle.ir.types import BoolType, ComplexType, FloatType, IntType, ListType, Type

Converter: TypeAlias = Callable[[Any], Any]
"""Returns a value as the program takes it: itself where it fits. Raises :class:`NoMatch`."""


class NoMatch(Exception):
    """A value that does not fit a type. ``path`` leads to it within a container: ``[0]['key']``."""

    def __init__(self, type: Type, value: object, path: str = "") -> None:
        self.type = type
        self.value = value
        self.path = path

    @property
    def hint(self) -> str | None:
        """The hint about a number that does not fit; None if there is none."""
        wanted, value = self.type.annotation, self.value
        if isinstance(value, deque) and value.maxlen is not None and isinstance(self.type, ListType):
            return "a program does not keep the limit (maxlen) of a deque that it is given; pass a deque without one"
        if self.type.kind not in _NUMBERS:
            return None
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            if value.dtype.is_floating_point and wanted in ("int", "bool") and not value.requires_grad:
                return (
                    f"{_with_article(wanted)} does not hold what this Tensor may hold; convert it, or declare a Tensor"
                )
            if value.requires_grad:
                why = f"the Tensor requires grad, and no gradient flows through {_with_article(wanted)}"
                return f"{why}; declare a Tensor, or pass .item() if no gradient is wanted"
            return f"a Tensor is not converted to {_with_article(wanted)}; pass .item(), or declare a Tensor"
        if wanted in ("float", "complex") and isinstance(value, int) and abs(value) < _LIMIT_OF_FLOATS:
            return f"no {wanted} is equal to this int; pass {wanted}(…) to round it"
        return None


_EXACT: Final = 2**53
"""Floats hold all ints of a smaller magnitude."""
_LIMIT_OF_FLOATS: Final = 2**1023
_NUMBERS: Final = frozenset({"NumberType", IntType.kind, FloatType.kind, BoolType.kind, ComplexType.kind})


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def plain_number(value: Any) -> bool | int | float | complex | None:
    """Return the Python number equal to a number of Python or NumPy, or to an object with ``__index__``; None for other
    values."""
    if isinstance(value, _PLAIN):
        return value if type(value) in _PLAIN else _as_plain(value)
    if isinstance(value, torch.Tensor):
        return None
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "dtype"):
        item = value.item()
        return item if type(item) in _PLAIN else None
    try:
        return operator.index(value)
    except TypeError:
        return None


_PLAIN: Final = (bool, int, float, complex)


def _as_plain(value: int | float | complex) -> int | float | complex:
    """Return the number in an object of a subclass, like ``numpy.float64`` and ``IntEnum``."""
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else complex(value)


def _or_of_tensor(value: Any) -> bool | int | float | complex | None:
    """Return the number of a Tensor of one element that does not require grad, and None for other Tensors; for other
    values the result of :func:`plain_number`."""
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 and not value.requires_grad else None
    return plain_number(value)


class NumberRules:
    """Rules for numeric arguments of programs compiled from Python."""

    number: Callable[[Any], bool | int | float | complex | None] = staticmethod(plain_number)

    def to_int(self, type: Type) -> Converter:
        def convert(value: Any) -> int:
            if isinstance(value, NUMBERED_CLASSES):
                return number_of(value)
            number = self.number(value)
            if isinstance(number, int):
                return int(number)
            raise NoMatch(type, value)

        return convert

    def to_float(self, type: Type) -> Converter:
        def convert(value: Any) -> float:
            if value.__class__ is int and -_EXACT < value < _EXACT:
                return float(value)
            number = self.number(value)
            if number is None or isinstance(number, complex):
                raise NoMatch(type, value)
            try:
                result = float(number)
            except OverflowError:
                raise NoMatch(type, value) from None
            self.check_equal(result, number, type, value)
            return result

        return convert

    def to_complex(self, type: Type) -> Converter:
        def convert(value: Any) -> complex:
            number = self.number(value)
            if number is None:
                raise NoMatch(type, value)
            try:
                result = complex(number)
            except OverflowError:
                raise NoMatch(type, value) from None
            self.check_equal(result, number, type, value)
            return result

        return convert

    def check_equal(self, result: complex, number: complex, type: Type, value: object) -> None:
        """Check that ``result`` equals ``number``, if that is an int.

        Raises:
            NoMatch: the int ``number`` was rounded. ``type`` and ``value`` are for the message.
        """
        if isinstance(number, int) and result != number:
            raise NoMatch(type, value)

    def to_bool(self, type: Type) -> Converter:
        def convert(value: Any) -> bool:
            number = self.number(value)
            if isinstance(number, int) and number in (0, 1):
                return bool(number)
            raise NoMatch(type, value)

        return convert

    def to_number(self, type: Type) -> Converter:
        def convert(value: Any) -> int | float | complex:
            number = self.number(value)
            if number is None:
                raise NoMatch(type, value)
            return int(number) if isinstance(number, bool) else number

        return convert


class _TorchScriptRules(NumberRules):
    """Rules for numeric arguments of programs from an archive."""

    number = staticmethod(_or_of_tensor)

    def check_equal(self, result: complex, number: complex, type: Type, value: object) -> None:
        """Accept the nearest float, even if it does not equal the int."""

    def to_bool(self, type: Type) -> Converter:
        def convert(value: Any) -> bool:
            number = self.number(value)
            if number is None and value is not None:
                raise NoMatch(type, value)
            return bool(number)

        return convert


def _in_tensor(value: Any) -> Any:
    """Return the number in a Tensor of one element, unless it requires grad while gradients are recorded; other values
    unchanged."""
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or (value.requires_grad and torch.is_grad_enabled()):
        return value
    return value.item()


class _DropInRules(NumberRules):
    """Rules for numeric arguments of programs compiled through the drop-in."""

    number = staticmethod(lambda value: plain_number(_in_tensor(value)))


PYTHON_RULES: Final = NumberRules()
DROP_IN_RULES: Final = _DropInRules()
TORCHSCRIPT_RULES: Final = _TorchScriptRules()
