"""Differences between releases of PyTorch and of Python that tests have to know, by the release that brought them."""

from __future__ import annotations

import re
import sys
from typing import Final

import torch

RELEASE: Final = tuple(int(part) for part in torch.__version__.split(".")[:2])

NEW_DTYPES: Final = frozenset(getattr(torch, name) for name in ("bcomplex32",) if hasattr(torch, name))
"""Dtypes since 2.15."""

_REMOVED: Final = {(2, 14): {"aten::cholesky", "aten::qr"}}
_NEW_IN_DISPATCHER: Final = {
    (2, 12): {
        f"aten::{name}"
        for name in ("dim", "get_device", "is_contiguous", "is_contiguous.memory_format", "numel", "storage_offset")
    }
}
_NEW_IN_TORCHSCRIPT: Final = {(2, 13): {"aten::broadcast_shapes"}, (2, 15): {"aten::_is_tracing"}}

_MESSAGES: Final = {(2, 15): {"addmm: mat1 and mat2": "mat1 and mat2"}}
"""Messages of later releases, and what the release that the pages were written with says."""


def as_documented(text: str) -> str:
    """Return a text with the messages of PyTorch that pages show."""
    for release, messages in _MESSAGES.items():
        if release <= RELEASE:
            for later, shown in messages.items():
                text = text.replace(later, shown)
    return text


NO_FLOOR_DIVISION: Final = "division by zero" if sys.version_info >= (3, 14) else "integer division or modulo by zero"
"""Python's message of ``1 // 0``."""

NO_ROOT: Final = "expected a nonnegative input, got -2.0" if sys.version_info >= (3, 14) else "math domain error"
"""Python's message of ``math.sqrt(-2.0)``."""

NO_LOGARITHM: Final = "expected a positive input" if sys.version_info >= (3, 14) else "math domain error"
"""Python's message of ``math.log(0)``."""

_BEFORE_PYTHON_3_11: Final = (
    (
        r"free variable (\\?')(\w+)\1 referenced before assignment in enclosing scope",
        r"cannot access free variable \1\2\1 where it is not associated with a value in enclosing scope",
    ),
    (
        r"local variable (\\?')(\w+)\1 referenced before assignment",
        r"cannot access local variable \1\2\1 where it is not associated with a value",
    ),
)
"""Messages of Python 3.10, whose quotes are escaped in constants of graphs, and those of later releases."""


def with_later_messages(text: str, python: tuple[int, ...] = sys.version_info[:2]) -> str:
    """Return the text of a graph or an error, as ``python`` has it, with the messages of Python 3.11 and later, which
    the golden texts have."""
    if python < (3, 11):
        for pattern, later in _BEFORE_PYTHON_3_11:
            text = re.sub(pattern, later, text)
    return text


def removed_operators() -> set[str]:
    """Return the operators for which the package has rules and that this release has no longer."""
    return {name for release, names in _REMOVED.items() if release <= RELEASE for name in names}


def not_yet_in_dispatcher() -> set[str]:
    """Return the operators that the package declares where the dispatcher of this release lacks them."""
    return {name for release, names in _NEW_IN_DISPATCHER.items() if release > RELEASE for name in names}


def not_yet_in_torchscript() -> set[str]:
    """Return the operators that the package declares and TorchScript has in later releases."""
    return {name for release, names in _NEW_IN_TORCHSCRIPT.items() if release > RELEASE for name in names}
