"""Conversion of values to text as in archives: ``str(5.0)`` is ``5.``, and a tensor is formatted as by C++.

A program of an archive means what it meant in the release that wrote it, and its releases wrote text by C++. These
operators are theirs, with the schemas of ``aten::str``, ``aten::format``, ``aten::percentFormat`` and ``prim::Print``,
which mean what Python means.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import torch

from rekindle.ops.archive.tensors import text_of_tensor
from rekindle.ops.registration.declare import implements


@implements("archive::str(t elem) -> str")
def text_of(value: object) -> str:
    """Return ``str(value)`` as in archives. Strings have no quotes, at any depth."""
    if isinstance(value, str) or value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return _text_of_float(value)
    if isinstance(value, complex):
        sign = "" if str(value.imag).startswith("-") else "+"
        return f"{_text_of_float(value.real)}{sign}{_text_of_float(value.imag)}j"
    if isinstance(value, torch.Tensor):
        return text_of_tensor(value)
    if isinstance(value, Enum):
        return f"Enum<{type(value).__name__}.{value.name}>"
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(text_of, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(key)}: {text_of(item)}' for key, item in value.items())}}}"
    return str(value)


def _text_of_float(value: float) -> str:
    """Format a float: a whole number with a trailing point, if 64 bits hold it; else with seventeen digits."""
    if value.is_integer() and -(2**63) <= value < 2**63:
        return f"{int(value)}."
    return f"{value:.17g}"


@implements("archive::format(str self, ...) -> str")
def format_values(self: str, *values: object) -> str:
    """Replace every ``{}`` with the next of the values; other braces are kept, and superfluous values are ignored.

    Raises:
        RuntimeError: there are more ``{}`` than values.
    """
    parts = self.split("{}")
    if len(parts) - 1 > len(values):
        raise RuntimeError(f"Too few arguments for format string: {self}")
    texts = [text_of(value) for value in values[: len(parts) - 1]]
    return "".join(text for pair in zip(parts, [*texts, ""], strict=True) for text in pair)


_NUMBERS: Final = "difeEF"


@implements("archive::percentFormat(str self, ...) -> str")
def percent_format(self: str, *values: object) -> str:
    """Return ``self % values`` for the specifiers ``%d %i %f %F %e %E %s %c %%``; a tuple supplies its elements.

    Raises:
        RuntimeError: the number of values is not that of the specifiers, a specifier is incomplete or another one, or a
            value does not fit it.
    """
    if len(values) == 1 and isinstance(values[0], tuple):
        values = values[0]
    parts: list[str] = []
    used = position = 0
    while (found := self.find("%", position)) >= 0:
        parts.append(self[position:found])
        specifier = self[found + 1 : found + 2]
        position = found + 2
        if not specifier:
            raise RuntimeError("Incomplete format specifier")
        if specifier == "%":
            parts.append("%")
            continue
        if used >= len(values):
            raise RuntimeError("Too few arguments for format string")
        parts.append(_formatted(specifier, values[used]))
        used += 1
    if used < len(values):
        raise RuntimeError("Too many arguments for format string")
    return "".join(parts) + self[position:]


def _formatted(specifier: str, value: object) -> str:
    if specifier == "s":
        return text_of(value)
    if specifier in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise RuntimeError(f"%{specifier} requires a number for formatting, but got {type(value).__name__}")
        return f"%{specifier}" % value
    if specifier == "c":
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise RuntimeError(f"%c requires an int or char for formatting, but got {type(value).__name__}")
        return f"%{specifier}" % value
    raise RuntimeError(f"The specifier %{specifier} is not supported in TorchScript format strings")


@implements("archive::Print(...) -> ()", side_effects=True)
def print_values(*values: object) -> None:
    """Print the texts of the values, separated by spaces, as a line."""
    print(*map(text_of, values))  # noqa: T201 (the program prints)
