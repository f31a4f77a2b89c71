"""Identifiers use the field's terms: one word for one concept."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import rekindle

PACKAGE: Final = Path(rekindle.__file__).parent

INSTEAD: Final = {
    r"_?(MOST|FEWEST|LEAST)(_[A-Z]\w*)?|_?(DEEPEST|LONGEST|FEW)": "MAX_…, MIN_…",
    r"_?(ENDLESS|FOREVER)": "MAX_TRIP_COUNT",
    r"\w*_behind": "…_after for a position, underlying_… for what is wrapped",
    r"(\w*_)?told(_\w*)?|TOLD": "declared, reported, or describe",
    r"_?(is_)?asked(_\w*)?|_?(is_|un)?watched(_\w*)?|touched|_?apart": "queried, tested, observed, reachable, distinct",
    r"(\w*_)?meanings?(_\w*)?|_?MEANINGS?": "sugared value, or what a table maps to",
    r"_?stands_\w+|\w*_stands_\w+": "is_…, occurs_…",
    r"\w*_anew": "re…, restart",
    r"(\w*_)?turns?(_\w*)?": "iteration, trip_count",
    r"passes_on|stays_itself|heeds_\w+": "may_alias_inputs, is_passed_sugared, reads_… or depends_on_…",
    r"let_go|go_apart|go_on_\w+": "escapes, split_paths, follow_…",
    r"_?taken_apart|put_together|_?make_again": "flatten, unflatten, recompile",
    r"hand_out|way_back": "stash, backward",
    r"is_calm|is_secret|no_place": "is_effect_free, is_unaliased, is_opaque",
    r"_?(LEFT_ALONE|TELLS_APART|TELL_VIEWS|ANSWERS|DEEDS|OWN)": "what the kinds are: _NOT_FOLDED, _IDENTITY_TESTS",
    r"_?(KEEPS_LATE|LATE_USES)": "unbacked",
    r"check_initialised|was_specialised": "…ized",
    r"\w*(materialis|normalis|specialis|optimis|initialis|quantis|neighbour|behaviour|colour)\w*": "American spelling",
}
"""What an identifier may not be, as a whole, and what it is called instead."""


@cache
def _term_for(word: str) -> str | None:
    """Return what to write for an identifier of :data:`INSTEAD`; None for others."""
    return next((term for pattern, term in INSTEAD.items() if re.fullmatch(pattern, word)), None)


def _banned(path: Path) -> Iterator[str]:
    """Where a file has an identifier of :data:`INSTEAD`, and what to write; words in texts and comments may stay."""
    text = path.read_text(encoding="utf-8")
    if not any(map(_term_for, set(re.findall(r"\w+", text)))):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        term = _term_for(token.string) if token.type == tokenize.NAME else None
        if term is not None:
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


_MODULE_ROLE: Final = re.compile(r":mod:`~?([\w.]+)`")


def _is_module(name: str, folder: Path) -> bool:
    """Whether ``name`` is a module of the package, or beside the file in ``folder``, or one of another library."""
    path = PACKAGE.parent.joinpath(*name.split(".")) if name.startswith("rekindle.") else folder / name
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists() or name in sys.stdlib_module_names


def test_modules_that_docstrings_name_exist() -> None:
    named = [
        (path, name)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in _MODULE_ROLE.findall(path.read_text(encoding="utf-8"))
        if name.partition(".")[0] not in ("torch", "tests")
    ]
    assert len(named) > 100
    assert [f"{path}: {name}" for path, name in named if not _is_module(name, path.parent)] == []
