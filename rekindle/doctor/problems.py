"""Errors as data: messages, places, hints and edits, for the process that writes the report."""

from __future__ import annotations

import os
import traceback
from typing import Any, Final

from rekindle.errors import CompileError, Edit

_MAX_PROBLEMS: Final = 10
_MAX_TEXT: Final = 500


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 300 characters; the name of its class if it is empty."""
    return (str(error).strip().partition("\n")[0] or type(error).__name__)[:300]


def problems_of(error: BaseException) -> list[dict[str, Any]]:
    """Return the problems that an error reports, as dicts for JSON.

    Of a compile error, these are its first ten problems, with ``message``, ``hint``, ``cause``, and if known ``file``,
    ``line``, ``column`` and ``edit``. Of another error, it is one dict with ``message``, ``file`` and ``line``.
    """
    if isinstance(error, CompileError):
        return [_of_compilation(each) for each in error.errors[:_MAX_PROBLEMS]]
    return [{"message": f"{type(error).__name__}: {_shortened(str(error))}", **_place_in_traceback(error)}]


def _of_compilation(error: CompileError) -> dict[str, Any]:
    found: dict[str, Any] = {"message": _shortened(error.message), "hint": error.hint, "cause": str(error.cause)}
    if error.range is not None and error.range.is_known:
        place = error.range.original
        found |= {"file": _real(place.source.filename), "line": place.line, "column": place.column}
    if error.edit is not None:
        found["edit"] = _edit(error.edit)
    return found


def _edit(edit: Edit) -> dict[str, Any] | None:
    range = edit.range
    if range.source.filename is None or "\n" in range.text:
        return None
    return {
        "file": _real(range.source.filename),
        "line": range.line,
        "column": range.column,
        "old": range.text,
        "new": edit.replacement,
    }


def _place_in_traceback(error: BaseException) -> dict[str, Any]:
    """Return ``file`` and ``line`` of the innermost frame of a traceback that is in no file of torch or this package;
    an empty dict if there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        folders = frame.filename.replace(os.sep, "/").split("/")
        if "rekindle" not in folders and "torch" not in folders and not frame.filename.startswith("<"):
            return {"file": _real(frame.filename), "line": frame.lineno}
    return {}


def _real(filename: str | None) -> str | None:
    return None if filename is None or filename.startswith("<") else os.path.realpath(filename)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} …"
