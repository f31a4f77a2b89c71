"""Source texts, and the source locations in them that every tree, node and error has."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final
from weakref import WeakValueDictionary

LIBRARY: Final = "<rekindle library>"
"""File name of the package's own sources, such as functions of Python's library. No error is located in one: its
location is the line of the user's program that calls the function."""


@dataclass(slots=True, frozen=True)
class TextLimit:
    """Maximum number of tokens of a text, and the advice in the error about a longer one."""

    tokens: int
    hint: str


class _Referable:
    """The base of slotted classes with weak references."""

    __slots__ = ("__weakref__",)


@dataclass(slots=True, eq=False)
class Source(_Referable):
    """A text that was compiled, and where it came from.

    ``first_line`` is the number, counted from 1, that the text's first line has in ``filename``: the source of a
    function is a part of its file. ``dedent`` is the number of columns that were removed on the left of every line.

    Example:
        >>> source = rekindle.errors.Source("x + 1", "f.py", first_line=7)
        >>> source.filename, source.first_line
        ('f.py', 7)
    """

    text: str
    filename: str | None = None
    first_line: int = 1
    dedent: int = 0
    origin: Callable[[int], SourceRange | None] | None = field(default=None, repr=False)
    """For a text generated from others, as in archives: the location in the author's source of the character at an
    offset; None if there is none."""
    limit: TextLimit | None = field(default=None, repr=False)
    """Limit of an untrusted text."""
    _line_starts: Sequence[int] | None = field(default=None, repr=False)

    @property
    def is_library(self) -> bool:
        """Whether the text belongs to this package."""
        return self.filename == LIBRARY

    @property
    def package(self) -> str | None:
        """The installed package that the file belongs to, whose users cannot change it; None for other files."""
        folders = PurePath(self.filename or "").parts
        for name in ("site-packages", "dist-packages"):
            if name in folders[:-1]:
                return folders[folders.index(name) + 1].removesuffix(".py")
        return None

    @property
    def line_starts(self) -> Sequence[int]:
        """The offset of the first character of every line."""
        if self._line_starts is None:
            starts = array("L", [0])
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._line_starts = starts
        return self._line_starts

    def line_index(self, offset: int) -> int:
        """Return the index (from 0, within this text) of the line that holds ``offset``."""
        return bisect_right(self.line_starts, offset) - 1

    def line(self, index: int) -> str:
        """Return the text of line ``index`` (from 0), without its line end; empty if there is no such line."""
        return self.part_of_line(index, 0, len(self.text))

    def part_of_line(self, index: int, first: int, count: int) -> str:
        """Return up to ``count`` characters of line ``index`` (from 0) from column ``first`` on, without its line end;
        empty if there is no such line."""
        starts = self.line_starts
        if not 0 <= index < len(starts):
            return ""
        end = starts[index + 1] - 1 if index + 1 < len(starts) else len(self.text)
        return self.text[starts[index] + first : min(end, starts[index] + first + count)]

    def offset(self, line_index: int, column: int) -> int:
        """Return the offset of ``column`` (in characters, from 0) on line ``line_index`` (from 0) of this text."""
        return self.line_starts[line_index] + column

    def range(self, start: int, end: int) -> SourceRange:
        return SourceRange(self, start, end)


@dataclass(slots=True, eq=False)
class SourceRange:
    r"""The characters ``[start, end)`` of a :class:`Source`.

    Example:
        >>> f = rekindle.CompilationUnit("def f(x):\n    return x.neg()").f
        >>> f.graph.find_node("aten::neg").range.text
        'x.neg'
    """

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def is_known(self) -> bool:
        return self.source is not UNKNOWN_RANGE.source

    @property
    def original(self) -> SourceRange:
        """The location in the author's source from which the text was generated; the range itself if there is none."""
        origin = self.source.origin
        found = None if origin is None else origin(self.start)
        return self if found is None else found

    @property
    def line(self) -> int:
        """The line number in the file, counted from 1."""
        return self.source.line_index(self.start) + self.source.first_line

    @property
    def column(self) -> int:
        """The column in the file, counted from 0 in characters."""
        index = self.source.line_index(self.start)
        return self.start - self.source.line_starts[index] + self.source.dedent

    @property
    def place(self) -> str:
        """Return ``file:line:column``, as printed after ``#`` in the text form of a graph; empty if no file is known,
        and for the package's own sources."""
        original = self.original
        if original.source.filename is None or original.source.is_library:
            return ""
        return f"{original.source.filename}:{original.line}:{original.column}"

    def merge(self, other: SourceRange) -> SourceRange:
        """Return the smallest range that holds both. ``other`` is a range of the same source."""
        return SourceRange(self.source, min(self.start, other.start), max(self.end, other.end))

    def highlight(self, context: int = 3) -> str:
        """Return the file and line number of this range, its line with ``context`` lines before it, and carets under
        the range.

        Return an empty string for an unknown range. A range over several lines is marked on its first line. Of a long
        line, a part around the range is shown. For a text that was generated from another, a last line names the file
        and line that the range comes from.
        """
        if not self.is_known:
            return ""
        source = self.source
        index = source.line_index(self.start)
        out: list[str] = []
        if source.filename is not None:
            out.append(f'  File "{source.filename}", line {self.line}')
        start = source.line_starts[index]
        first = max(0, self.start - start - _SHOWN_BEFORE)
        for i in range(max(0, index - context), index + 1):
            out.append(("    " + source.part_of_line(i, first, _SHOWN)).rstrip())
        begin = self.start - start - first
        width = max(1, min(self.end - start - first, len(source.part_of_line(index, first, _SHOWN))) - begin)
        out.append("    " + " " * begin + "^" * width)
        original = self.original
        if original is not self and original.source.filename is not None:
            out.append(f'  compiled from "{original.source.filename}", line {original.line}')
        return "\n".join(line.translate(_CONTROLS) for line in out)


_SHOWN: Final = 500
"""Maximum number of characters of a line that are shown."""
_SHOWN_BEFORE: Final = 400
"""Maximum number of characters shown before the marked range, on its line."""

_CONTROLS: Final = dict.fromkeys(
    (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    "\N{REPLACEMENT CHARACTER}",
)
"""Characters that would move the cursor of a terminal, or turn its text around."""


UNKNOWN_RANGE = SourceRange(Source(""), 0, 0)
"""The range of nodes without a source: those made by passes, and graphs parsed from text."""


_SHARED: Final[WeakValueDictionary[tuple[str, str | None, int, int], Source]] = WeakValueDictionary()


def shared_source(text: str, filename: str | None, first_line: int, dedent: int = 0) -> Source:
    """Return the source of a function: the same object for equal arguments, as long as it is referenced. Keys of
    compiled code depend on which functions share a source."""
    key = text, filename, first_line, dedent
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = Source(text, filename, first_line, dedent)
    return found
