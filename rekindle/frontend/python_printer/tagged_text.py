"""Text whose parts have locations in the author's source."""

from __future__ import annotations

from dataclasses import dataclass, field

from rekindle.errors import UNKNOWN_RANGE, SourceRange


@dataclass(slots=True)
class TaggedText:
    """A text with a source map: ranges of the author's source, each from an offset on (in characters). ``range`` is
    that of the text that is added next."""

    range: SourceRange = UNKNOWN_RANGE
    ranges: list[tuple[int, SourceRange]] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _length: int = 0

    def add(self, *pieces: str | TaggedText) -> TaggedText:
        """Append ``pieces``, which may have source maps of their own."""
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
        """Append ``items`` with commas between them."""
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
