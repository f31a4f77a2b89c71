"""Text whose parts have locations in the author's source."""

from __future__ import annotations

from dataclasses import dataclass, field

from rekindle.errors import UNKNOWN_RANGE, SourceRange


@dataclass(slots=True)
class TaggedText:
    """A text with a source map: pairs of an offset (in characters) and the range of the author's source from there on.
    ``range`` is the source range of the text that is added next."""

    range: SourceRange = UNKNOWN_RANGE
    ranges: list[tuple[int, SourceRange]] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _length: int = 0

    def add(self, *pieces: str | TaggedText) -> TaggedText:
        """Append ``pieces`` and return this text. Pieces that are tagged texts keep their source maps; the others get
        ``range``."""
        for piece in pieces:
            if isinstance(piece, TaggedText):
                for offset, range in piece.ranges:
                    self._mark(self._length + offset, range)
                self._parts += piece._parts
                self._length += piece._length
            elif piece:
                self._mark(self._length, self.range)
                self._parts.append(piece)
                self._length += len(piece)
        return self

    def add_list(self, items: list[str | TaggedText], begin: str = "", end: str = "") -> TaggedText:
        """Append ``items`` with commas between them, within ``begin`` and ``end``, and return this text."""
        self.add(begin)
        for index, item in enumerate(items):
            self.add(", " if index else "", item)
        return self.add(end)

    def _mark(self, offset: int, range: SourceRange) -> None:
        if not self.ranges or self.ranges[-1][1] is not range:
            self.ranges.append((offset, range))

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""
