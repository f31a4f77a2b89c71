"""The page of passes names passes that are there."""

from __future__ import annotations

import re
from pathlib import Path

import rekindle.passes

PAGE = Path(__file__).parents[2] / "docs" / "passes.md"


def test_passes_of_the_page_are_there() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 20
    assert [name for name in names if not hasattr(rekindle.passes, name)] == []
