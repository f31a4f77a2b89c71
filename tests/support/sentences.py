"""How long the sentences of the documentation are: words per sentence, in paragraphs and list items."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FENCED: Final = re.compile(r"^(```+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"``[^`]+``|`[^`]+`")
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_NO_PROSE: Final = re.compile(r"^\s*(\||#|<!--|---\s*$)")
_ITEM: Final = re.compile(r"^\s*([-*]|\d+\.)\s+")
_END: Final = re.compile(r"(?<=[.!?])[)\"*]*\s+|(?<=[.!?]\))\s+")
_WORD: Final = re.compile(r"[\w'’×÷%/.,-]*\w[\w'’%]*")


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of Markdown, each on one line; code is one word."""
    lines: list[str] = []
    for line in [*_FENCED.sub("\n", text).splitlines(), ""]:
        ends = not line.strip() or _NO_PROSE.match(line) or _ITEM.match(line)
        if ends and lines:
            yield _plain(" ".join(lines))
            lines = []
        if line.strip() and not _NO_PROSE.match(line):
            lines.append(_ITEM.sub("", line).strip())


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", _CODE.sub("code", text))


def sentences(path: Path) -> list[str]:
    """The sentences of a page."""
    found = [each.strip() for text in paragraphs(path.read_text(encoding="utf-8")) for each in _END.split(text)]
    return [each for each in found if _WORD.search(each)]


def words(sentence: str) -> int:
    """The number of words of a sentence."""
    return len(_WORD.findall(sentence))
