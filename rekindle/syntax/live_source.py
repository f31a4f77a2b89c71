"""The source text of live Python objects."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from rekindle.errors import NotScriptableError, ParseError, Source, shared_source
from rekindle.syntax.lexer import PYTHON
from rekindle.syntax.strings import string_end


def describe(obj: Any) -> str:
    """Return ``'module.name'`` of a function or class, with the quotes, for error messages; the repr of other
    objects."""
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if name is None:
        return repr(obj)
    module = getattr(obj, "__module__", None)
    return f"'{module}.{name}'" if module else f"'{name}'"


def source_of(obj: Any, *, unwrap: bool = True) -> Source:
    """Return the source of a function or class from its file, with its decorators and its location.

    The text keeps its indentation, so columns are those of the file, and multi-line literals are unchanged. For a
    wrapper, return the source of the wrapped function, unless ``unwrap`` is False.

    Raises:
        NotScriptableError: Python does not know the source.
        ParseError: a string literal in the source is never closed, or has an invalid prefix.
    """
    if unwrap:
        obj = inspect.unwrap(obj)
    try:
        filename = inspect.getsourcefile(obj)
        lines, index = inspect.findsource(obj)
        if str(filename).startswith("<") and not _begins(lines[index], obj):
            raise OSError("text of the same name is of something else")  # as that of python -c, since Python 3.13
    except (OSError, TypeError) as error:
        # Of a class whose module is not to be found, inspect says too that it is built in.
        if isinstance(error, TypeError) and not isinstance(obj, type):
            raise NotScriptableError(
                f"{describe(obj)} has no Python source: it is built in, or written in another language.",
                hint="Wrap what it does in a Python function, or mark the call as ignored.",
            ) from error
        raise NotScriptableError(
            f"The source of {describe(obj)} cannot be had, and without it there is nothing to compile.",
            hint="Define it in a file or in IPython, or give the text of a function to CompilationUnit: code that was "
            "typed at Python's prompt, or made by exec() or eval(), has no source.",
        ) from error
    return shared_source(_definition_text(lines, index, filename), filename, index + 1)


_FIRST_LINES: Final = 256
"""Number of lines that are searched first for the end of a definition: most are shorter, in files of thousands."""


def _definition_text(lines: Sequence[str], index: int, filename: str | None) -> str:
    """Return the text of the definition that begins with line ``index`` of a file.

    Raises:
        ParseError: a string literal is never closed, or has an invalid prefix.
    """
    count = _FIRST_LINES
    while index + count < len(lines):
        part = Source("".join(lines[index : index + count]), filename, index + 1)
        with suppress(ParseError):  # a literal may be closed in a later line
            end = _definition_end(part, is_part=True)
            if end is not None:
                return part.text[:end]
        count *= 8
    rest = Source("".join(lines[index:]), filename, index + 1)
    return rest.text[: _definition_end(rest, is_part=False)]


def _begins(line: str, obj: Any) -> bool:
    """Return whether the definition of ``obj`` may begin with ``line``."""
    return re.match(rf"\s*(@|(async\s+def|def|class)\s+{obj.__name__}\b|.*\blambda\b)", line) is not None


_LINE_START = re.compile(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n?|\n))*([ \t\f]*)(@)?")


def _definition_end(source: Source, *, is_part: bool) -> int | None:
    """Return the offset of the end of the definition with which ``source`` begins, including its decorators. If
    ``source`` is a part of a file, return None unless it has a line of code after the definition.

    The result is that of ``inspect.getblock``, in a third of its time: a definition ends with the first line end,
    outside of brackets and strings, after which a line is indented no more than the definition itself.

    Raises:
        ParseError: a string literal is never closed, or has an invalid prefix.
    """
    text = source.text
    match = PYTHON.pattern.match
    first = _LINE_START.match(text)
    assert first is not None
    column = len(first.group(1).expandtabs())
    in_head = first.group(2) == "@"
    at = first.end(1)
    depth = 0
    while True:
        found = match(text, at)
        assert found is not None
        kind = found.lastgroup
        at = found.end()
        if kind == "OP":
            op = text[at - 1]
            depth += (op in "([{") - (op in ")]}")
        elif kind == "STRING":
            at = string_end(source, found.start(kind), len(text), PYTHON.pattern)
        elif kind == "NEWLINE" and depth <= 0:
            line = _LINE_START.match(text, at)
            assert line is not None
            if in_head:
                # A decorator is followed by another one, or by what is decorated.
                in_head = line.group(2) == "@"
            elif is_part and line.end(1) == len(text):
                return None
            elif len(line.group(1).expandtabs()) <= column:
                return at
            at = line.start(1)
        elif kind == "EOF":
            return None if is_part else at
