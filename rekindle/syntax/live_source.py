"""The source text of live Python objects."""

from __future__ import annotations

import inspect
from typing import Any

from rekindle.errors import NotScriptableError, Source


def describe(obj: Any) -> str:
    """``'module.name'`` of a function or class, as errors tell it."""
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if name is None:
        return repr(obj)
    module = getattr(obj, "__module__", None)
    return f"'{module}.{name}'" if module else f"'{name}'"


def source_of(obj: Any) -> Source:
    """The text of a function or class as it stands in its file, with its decorators, and where it stands there.

    The text keeps its indentation, so columns are those of the file and literals over several lines stay what they are.
    Raises NotScriptableError where Python cannot tell the source.
    """
    try:
        filename = inspect.getsourcefile(obj)
        lines, first_line = inspect.getsourcelines(obj)
    except TypeError as error:
        raise NotScriptableError(
            f"{describe(obj)} has no Python source: it is built in, or written in another language.",
            hint="Wrap what it does in a Python function, or mark the call as ignored.",
        ) from error
    except OSError as error:
        raise NotScriptableError(
            f"The source of {describe(obj)} cannot be had, and without it there is nothing to compile.",
            hint="Define it in a file: code that was typed at a prompt, or made by exec() or eval(), has no source.",
        ) from error
    return Source("".join(lines), filename, max(first_line, 1))
