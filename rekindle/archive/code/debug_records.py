"""Debug records: source locations of a program text, which archives store beside it (``….py.debug_pkl``).

The pickle is a tuple: the word ``FORMAT_WITH_STRING_TABLE``, a table of texts (lines of sources and names of files),
and a tuple of marks ``(offset, (source, start, end), 0)``: from this byte of the text on, it corresponds to the bytes
``[start, end)`` of a source ``(lines, file name, first line)``, where ``lines`` and the file name are indices into the
table. Archives of releases before 1.12 hold the tuple of marks alone, with the text in the place of its lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, TypeVar

from rekindle.archive.pickles.encoder import Encoder
from rekindle.archive.pickles.records import Pickle, PickledTyped
from rekindle.errors import UNKNOWN_RANGE, ArchiveError, Source, SourceRange

T = TypeVar("T")

_WITH_TABLE: Final = "FORMAT_WITH_STRING_TABLE"


def write_debug_records(text: str, ranges: Sequence[tuple[int, SourceRange]]) -> bytes:
    """Return the pickle of the source locations of ``text``. Each of ``ranges`` is an offset in characters, and the
    source range of the text from there on."""
    table = _Table()
    pieces = _Pieces()
    ranges = [(offset, pieces.around(range.original)) for offset, range in ranges]
    offsets = _byte_offsets(text, [offset for offset, _ in ranges])
    marks = [(offset, table.source(range.source), range) for offset, (_, range) in zip(offsets, ranges, strict=True)]
    written: dict[int, int] = {}
    out = Encoder()
    out.mark()
    out.text(_WITH_TABLE)
    out.mark()
    for line in table.texts:
        out.text(line)
    out.close_tuple()
    out.mark()
    for offset, source, range in marks:
        out.mark()
        out.integer(offset)
        out.mark()
        known = written.get(id(source))
        if known is None:
            _write_source(out, source)
            written[id(source)] = out.remember()
        else:
            out.recall(known)
        for end in (range.start, range.end):
            out.integer(_written_offset(range.source, end))
        out.close_tuple()
        out.integer(0)
        out.close_tuple()
    out.close_tuple()
    out.close_tuple()
    return out.finish()


_CONTEXT: Final = 3
"""Number of source lines before and after a location that are stored for error messages."""


@dataclass(slots=True)
class _Pieces:
    """Cache of excerpts of sources: the lines around each location. Whole sources would be large, since those of traced
    programs are whole files."""

    known: dict[tuple[int, int, int], tuple[Source, Source]] = field(default_factory=dict)

    def around(self, range: SourceRange) -> SourceRange:
        source, starts = range.source, range.source.line_starts
        first = max(0, source.line_index(range.start) - _CONTEXT)
        behind = source.line_index(max(range.start, range.end - 1)) + _CONTEXT + 1
        begin, end = starts[first], starts[behind] if behind < len(starts) else len(source.text)
        key = (id(source), begin, end)
        if key not in self.known:
            piece = Source(source.text[begin:end], source.filename, source.first_line + first, source.dedent)
            self.known[key] = (piece, source)
        return SourceRange(self.known[key][0], range.start - begin, range.end - begin)


@dataclass(slots=True)
class _Table:
    """The table of strings of an archive, each string once, and the sources as lists of indices into it."""

    texts: dict[str, int] = field(default_factory=dict)
    sources: dict[int, tuple[Source, tuple[list[int], int, int]]] = field(default_factory=dict)

    def source(self, source: Source) -> tuple[list[int], int, int]:
        known = self.sources.get(id(source))
        if known is None:
            indent = " " * source.dedent
            lines = [self._text(indent + line) for line in source.text.splitlines(keepends=True)]
            facts = (lines, self._text(source.filename or ""), source.first_line if source.filename else 0)
            known = self.sources[id(source)] = (source, facts)
        return known[1]

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


def _write_source(out: Encoder, source: tuple[list[int], int, int]) -> None:
    lines, name, first_line = source
    out.mark()
    out.name("torch.jit._pickle", "build_intlist")
    out.mark()
    out.empty_list()
    out.mark()
    for line in lines:
        out.integer(line)
    out.close_list()
    out.close_tuple()
    out.call()
    out.integer(name)
    out.integer(first_line)
    out.close_tuple()


def _written_offset(source: Source, offset: int) -> int:
    """Convert an offset in a source to an offset in the text that is written: in bytes, with the indentation that was
    removed from its lines."""
    indents = (source.line_index(offset) + 1) * source.dedent
    return indents + (offset if source.text.isascii() else len(source.text[:offset].encode("utf-8", "replace")))


def _byte_offsets(text: str, offsets: Sequence[int]) -> list[int]:
    """Convert character offsets in ascending order to byte offsets in the UTF-8 text."""
    if text.isascii():
        return list(offsets)
    found = []
    at = bytes_before = 0
    for offset in offsets:
        bytes_before += len(text[at:offset].encode())
        at = offset
        found.append(bytes_before)
    return found


# ------------------------------------------------------------------------------------------------------------- reading

_MAX_LINES: Final = 1_000_000
"""No file that a person wrote has more lines; tracebacks fill up the lines before the one that they show."""

_MAX_LENGTH: Final = 64 << 20
"""Maximum total length of the sources: a table of few lines can refer to them any number of times."""


class DebugRecords:
    """The source locations of a text. The pickle is read when the first is needed, by an error or the text form of a
    graph."""

    def __init__(self, read: Callable[[], Pickle], text: str) -> None:
        self._read: Callable[[], Pickle] | None = read
        self._text = text
        self._offsets: list[int] = []
        self._ranges: list[SourceRange] = []

    def origin(self, offset: int) -> SourceRange | None:
        """Return the location in the author's source of the text at ``offset``, in characters; None if it is unknown,
        or the debug records are broken. The first call reads them."""
        if self._read is not None:
            read, self._read = self._read, None
            try:
                self._fill(read().value)
            except (_Unreadable, ArchiveError):  # the program means the same without
                self._offsets, self._ranges = [], []
        if not self._text.isascii():
            offset = len(self._text[:offset].encode())
        index = bisect_right(self._offsets, offset) - 1
        found = self._ranges[index] if index >= 0 else UNKNOWN_RANGE
        return found if found.is_known else None

    def _fill(self, value: object) -> None:
        table: tuple[object, ...] | None = None
        if type(value) is tuple and len(value) == 3 and value[0] == _WITH_TABLE:
            table, value = _exactly(value[1], tuple), value[2]
        sources: dict[int, _Read | None] = {}
        length = 0
        for mark in _exactly(value, tuple):
            offset, place = _parts(mark, 2, 3)
            source, start, end = _parts(place, 3, 3)
            if id(source) not in sources:
                found = _source(_exactly(source, tuple), table)
                sources[id(source)] = None if found is None else _Read(found)
                length += 0 if found is None else len(found.text)
                if length > _MAX_LENGTH:
                    raise _Unreadable
            self._offsets.append(_exactly(offset, int))
            self._ranges.append(_range(sources[id(source)], _exactly(start, int), _exactly(end, int)))
        if sorted(self._offsets) != self._offsets:
            raise _Unreadable


class _Unreadable(Exception):
    """The debug records are not of the form that PyTorch writes."""


def _exactly(value: object, kind: type[T]) -> T:
    if type(value) is not kind:
        raise _Unreadable
    return value


def _parts(value: object, count: int, most: int) -> tuple[object, ...]:
    """Return the first ``count`` items of a tuple.

    Raises:
        _Unreadable: the value is not a tuple of ``count`` to ``most`` items.
    """
    found = _exactly(value, tuple)
    if not count <= len(found) <= most:
        raise _Unreadable
    return found[:count]


def _source(facts: tuple[object, ...], table: tuple[object, ...] | None) -> Source | None:
    """Return the source that ``(text, file name, first line)`` describes; None if its text is empty.

    With ``table``, the text is a list of indices into the table of strings, and the name is an index.

    Raises:
        _Unreadable: the description has another form, or, with ``table``, the text is longer than
            :data:`_MAX_LENGTH`.
    """
    if len(facts) != 3:
        raise _Unreadable
    text, name, first_line = facts
    if table is not None:
        lines = _exactly(text.value if isinstance(text, PickledTyped) else text, list)
        if sum(len(_entry(table, line)) for line in lines) > _MAX_LENGTH:
            raise _Unreadable
        text = "".join(_entry(table, line) for line in lines)
        name = _entry(table, name)
    first = _exactly(first_line, int)
    if not text:
        return None
    in_range = 1 <= first <= _MAX_LINES
    return Source(_exactly(text, str), _exactly(name, str) or None, first if in_range else 1)


def _entry(table: tuple[object, ...], index: object) -> str:
    place = _exactly(index, int)
    if not 0 <= place < len(table):
        raise _Unreadable
    return _exactly(table[place], str)


_BLOCK: Final = 4096
_LATER_BYTES: Final = bytes(range(0x80, 0xC0))
"""Continuation bytes of UTF-8, with which no character begins."""


class _Read:
    """A source of the archive, with conversion of byte offsets to character offsets."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._encoded = b"" if source.text.isascii() else source.text.encode("utf-8", "replace")
        blocks = range(0, len(self._encoded), _BLOCK)
        self._before = [0, *accumulate(self._characters(at, at + _BLOCK) for at in blocks)]

    def character(self, offset: int) -> int:
        """Convert an offset in bytes to one in characters."""
        if not self._encoded:
            return offset
        offset = min(offset, len(self._encoded))
        block = offset // _BLOCK
        return self._before[block] + self._characters(block * _BLOCK, offset)

    def _characters(self, start: int, end: int) -> int:
        return len(self._encoded[start:end].translate(None, _LATER_BYTES))


def _range(read: _Read | None, start: int, end: int) -> SourceRange:
    if read is None or not 0 <= start <= end:
        return UNKNOWN_RANGE
    start, end = read.character(start), read.character(end)
    return UNKNOWN_RANGE if end > len(read.source.text) else SourceRange(read.source, start, end)
