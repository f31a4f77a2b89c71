"""Identifiers use the field's terms: one word for one concept."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import rekindle

PACKAGE: Final = Path(rekindle.__file__).parent

INSTEAD: Final = {
    r"_?(MOST|FEWEST|LEAST)(_[A-Z]\w*)?|_?(DEEPEST|LONGEST|FEW)": "MAX_…, MIN_…",
    r"_?(ENDLESS|FOREVER)": "MAX_TRIP_COUNT",
    r"\w*_behind": "…_after for a position, underlying_… for what is wrapped",
    r"\w*_told|told_\w*|TOLD": "declared, reported, or describe",
    r"\w*_meanings?|takes_meanings": "sugared value",
    r"_?stands_\w+|\w*_stands_\w+": "is_…, occurs_…",
    r"\w*_anew": "re…, restart",
    r"turns_of|number_of_turns|through_turns": "iterations, trip_count",
    r"passes_on|stays_itself|heeds_\w+": "may_alias_inputs, is_passed_sugared, reads_… or depends_on_…",
    r"let_go|go_apart|go_on_\w+": "escapes, split_paths, follow_…",
    r"taken_apart|put_together": "flatten, unflatten",
    r"hand_out|way_back": "stash, backward",
    r"is_calm|is_secret|no_place": "is_effect_free, is_unaliased, is_opaque",
}
"""What an identifier may not be, as a whole, and what it is called instead."""


def _banned(path: Path) -> Iterator[str]:
    """Where a file has an identifier of :data:`INSTEAD`, and what to write; words in texts and comments may stay."""
    text = path.read_text(encoding="utf-8")
    if not any(re.search(rf"\b({pattern})\b", text) for pattern in INSTEAD):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            for pattern, term in INSTEAD.items():
                if re.fullmatch(pattern, token.string):
                    yield f"{path.relative_to(PACKAGE.parent)}:{token.start[0]}: {token.string}: use {term}"


def test_identifiers() -> None:
    assert [each for path in sorted(PACKAGE.rglob("*.py")) for each in _banned(path)] == []


def test_no_class_name_has_two_meanings_in_one_folder() -> None:
    """A folder is read as one text: a name in it is one class."""
    files: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files.setdefault(f"{path.parent.relative_to(PACKAGE)}/{node.name}", []).append(path.name)
    assert {name: found for name, found in files.items() if len(found) > 1} == {}
