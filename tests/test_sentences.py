"""The documentation has short sentences: at most 15 words in the median of each page. The changelog is a record."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Final

import pytest

from tests.support.sentences import sentences, words

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAX_MEDIAN: Final = 15


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_sentences_are_short(page: Path) -> None:
    lengths = [words(each) for each in sentences(page)]
    assert statistics.median(lengths) <= MAX_MEDIAN, [each for each in sentences(page) if words(each) > 2 * MAX_MEDIAN]


def test_words_are_counted(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading\n\nOne [two](link.md) `three four` three. Second: it continues,\nhere.\n\n"
        "- An item. Another?\n- 1.5 of 2\n\n| a | table |\n| --- | --- |\n\n```python\nno.prose = here\n```\n"
    )
    assert sentences(page) == ["One two code three.", "Second: it continues, here.", "An item.", "Another?", "1.5 of 2"]
    assert [words(each) for each in sentences(page)] == [4, 4, 2, 1, 3]
