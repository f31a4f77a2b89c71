"""Tracebacks of compiled programs: the lines that the user wrote, instead of the interpreter's.

When a program fails, each of its running functions gets a frame located at the node that was running, so that Python
prints

      File "user.py", line 7, in f
        y = x + z
            ~~^~~

Python cannot construct a frame, but an error leaves one in its traceback: a line of code that raises is compiled with
the location in the user's file, and run.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from rekindle.errors import InternalError, Source, SourceRange

_PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep
_DISPATCHER = os.path.join("torch", "_ops.py")
KEEP_INTERNAL_FRAMES = bool(os.environ.get("REKINDLE_INTERNAL_FRAMES"))
"""Whether tracebacks keep the frames of this package, for debugging it."""


@dataclass(slots=True)
class SourceFrame:
    """A running function of a program, and its current position in the source."""

    function: str
    range: SourceRange


class _Left(Exception):
    """Exception that is raised to obtain a frame."""


def foreign_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package and of torch's dispatcher, unless
    :data:`KEEP_INTERNAL_FRAMES`. The result is None if no frame remains.

    What remains are Python functions that the program called: those that compilation ignored, and operators that users
    registered.
    """
    kept: list[TracebackType] = []
    # The entries after the last removed frame are shared: an error that passes through a thousand futures, each of
    # which adds its frames, does not copy those of all before.
    result = traceback
    pending: list[TracebackType] = []
    while traceback is not None:
        if KEEP_INTERNAL_FRAMES or not _is_internal(traceback.tb_frame.f_code.co_filename):
            pending.append(traceback)
        else:
            kept += pending
            pending = []
            result = traceback.tb_next
        traceback = traceback.tb_next
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _is_internal(filename: str) -> bool:
    return filename.startswith((_PACKAGE, "<rekindle ")) or filename.endswith(_DISPATCHER)


def traceback_through(places: Sequence[SourceFrame], tail: TracebackType | None = None) -> TracebackType | None:
    """Return a traceback with one entry for each of ``places``, the outermost first, and ``tail`` after them. The
    result is None if there is no entry.

    Functions of the package's own texts have no entry, as those of Python that are written in C have none.
    """
    result = tail
    for place in reversed(places):
        if place.range.original.source.is_library and not KEEP_INTERNAL_FRAMES:
            continue
        _show_to_linecache(place.range)
        result = TracebackType(result, *_frame_at(place))
    try:
        return result
    finally:
        del result  # its frames know those that they were made in, among them this one, which must not know them


def _frame_at(place: SourceFrame) -> tuple[FrameType, int, int]:
    """Return a frame of a function with that name at that location, with its current instruction and line."""
    code = _code_at(place)
    try:
        exec(code, {"__builtins__": {}, "__name__": place.function, "left": _Left})  # noqa: S102 (made right above)
    except _Left as left:
        entry = left.__traceback__.tb_next if left.__traceback__ is not None else None
        if entry is not None:
            try:
                return entry.tb_frame, entry.tb_lasti, entry.tb_lineno
            finally:
                del entry  # as above
    raise InternalError("a statement that raises did not")


def _code_at(place: SourceFrame) -> CodeType:
    """Return code that raises, with the name of the function and the range of the location."""
    range = place.range.original
    source, start = range.source, range.start
    stop = max(range.end, start + 1)
    first, last = source.line_index(start), source.line_index(stop - 1)
    begin, end = _bytes(source, first, start), _bytes(source, last, stop)
    name = ast.Name("left", ast.Load())
    statement = ast.Raise(exc=name)
    for node in (name, statement):
        node.lineno, node.col_offset = source.first_line + first, begin
        node.end_lineno, node.end_col_offset = source.first_line + last, end
    code = compile(ast.Module([statement], []), source.filename or "<unknown>", "exec")
    if sys.version_info >= (3, 11):
        return code.replace(co_name=place.function, co_qualname=place.function)
    return code.replace(co_name=place.function)


def _bytes(source: Source, line: int, offset: int) -> int:
    """Return the column of ``offset`` on ``line`` of the file, counted in bytes of UTF-8, as Python counts them."""
    text = source.line(line)[: offset - source.line_starts[line]]
    return source.dedent + len(text.encode("utf-8", "surrogatepass"))


def _show_to_linecache(place: SourceRange) -> None:
    """Add the source of ``place`` to ``linecache`` if it is not in a file, so that tracebacks show its line: the source
    of an archive, a string or a notebook."""
    place = place.original
    source = place.source
    filename = source.filename or "<unknown>"
    index = source.line_index(place.start)
    known = linecache.getline(filename, source.first_line + index)
    if known.strip() == source.line(index).strip() or os.path.exists(filename):
        return
    lines = list(linecache.getlines(filename))
    start, count = source.first_line - 1, len(source.line_starts)
    lines += ["\n"] * (start + count - len(lines))
    lines[start : start + count] = [f"{' ' * source.dedent}{source.line(i)}\n" for i in range(count)]
    linecache.cache[filename] = (sum(map(len, lines)), None, lines, filename)
