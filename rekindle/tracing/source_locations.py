"""Source locations in the user's code while it runs, from Python's frames."""

from __future__ import annotations

import dis
import linecache
import os
import sys
from functools import lru_cache
from types import FrameType
from typing import Final

import torch

from rekindle.errors import UNKNOWN_RANGE, Source, SourceRange

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY: Final = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_SITE: Final = os.path.join(_LIBRARY, "site-packages") + os.sep
_TORCH: Final = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_TESTING: Final = os.path.join(_TORCH, "testing") + os.sep
"""PyTorch's tools for tests, which wrap the functions that ``torch.jit`` compiled in Python of their own."""
_FUNCTORCH: Final = os.path.join(_TORCH, "_functorch") + os.sep


def current_place() -> SourceRange:
    """Return the source location of the current line in the innermost frame outside this package; the unknown range if
    there is none."""
    return _place(_innermost((_PACKAGE,)))


def users_place() -> SourceRange:
    """Return the source location of the current line in the innermost frame that belongs neither to this package, nor
    to PyTorch or Python's library; the unknown range if there is none."""
    frame = _innermost((_PACKAGE, _TORCH))
    while frame is not None and _is_of_library(frame.f_code.co_filename):
        frame = frame.f_back
    return _place(frame)


def _is_of_library(filename: str) -> bool:
    return filename.startswith((_PACKAGE, _TORCH)) or (filename.startswith(_LIBRARY) and not filename.startswith(_SITE))


def innermost_frame() -> FrameType | None:
    """Return the innermost frame outside this package; None if there is none."""
    return _innermost((_PACKAGE,))


def module_in_torch() -> str | None:
    """Return the name of the PyTorch module whose code runs in the innermost frame outside this package; None if that
    code is not PyTorch's."""
    frame = _innermost((_PACKAGE,))
    if frame is None or not frame.f_code.co_filename.startswith(_TORCH):
        return None
    return str(frame.f_globals.get("__name__", "torch"))


def is_foreign_code() -> bool:
    """Return whether an operator was called from compiled code other than PyTorch's, such as a function compiled by
    ``torch.jit`` or an extension: the innermost frame outside this package is not PyTorch's. Setters of tensor
    attributes and functions transformed by ``torch.func`` do not count."""
    frame = _innermost((_PACKAGE, _TESTING))
    if frame is None or frame.f_code.co_filename.startswith(_TORCH):
        return False
    if dis.opname[frame.f_code.co_code[frame.f_lasti]] == "STORE_ATTR":
        return False
    while frame is not None and not frame.f_code.co_filename.startswith(_FUNCTORCH):
        frame = frame.f_back
    return frame is None


def name_of_local(thing: object) -> str:
    """Return the name of a local variable other than ``self`` that holds ``thing`` in the innermost frame outside this
    package; empty if there is none."""
    frame = _innermost((_PACKAGE,))
    if frame is None:
        return ""
    names = (name for name, held in frame.f_locals.items() if held is thing)
    return next((name for name in names if name != "self" and name.isidentifier()), "")


def _innermost(excluded: tuple[str, ...]) -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(excluded):
        frame = frame.f_back
    return frame


def _place(frame: FrameType | None) -> SourceRange:
    return UNKNOWN_RANGE if frame is None else line_of(frame.f_code.co_filename, frame.f_lineno)


@lru_cache(maxsize=4096)
def line_of(filename: str, number: int) -> SourceRange:
    """Return the source range of line ``number`` (from 1) of a file, without leading and trailing blanks; the unknown
    range if the file cannot be read or has no such line."""
    source = _source(filename)
    if not 1 <= number <= len(source.line_starts):
        return UNKNOWN_RANGE
    text = source.line(number - 1)
    start = source.offset(number - 1, len(text) - len(text.lstrip()))
    return source.range(start, start + len(text.strip()))


@lru_cache(maxsize=256)
def _source(filename: str) -> Source:
    return Source("".join(linecache.getlines(filename)), filename)
