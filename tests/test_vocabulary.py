"""Identifiers, docstrings, comments, messages and documentation use the field's terms: one word for one concept."""

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

import pytest

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
    r"\w*(MATERIALIS|NORMALIS|SPECIALIS|OPTIMIS|INITIALIS|QUANTIS)\w*": "American spelling",
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


# --------------------------------------------------------------------------------------------------------------- prose

PROSE: Final = {
    r"\bways? (back|there)\b": "forward, backward",
    r"\bturn by turn\b": "iteration by iteration",
    r"\b(number of|first|last|next|each|every|per|many|one|a) turns?\b(?! (on|off|in|into|to|out|round))": "iteration",
    r"\bturns? (back|of (a |the )?loops?)\b|\bof turns\b|\bto turn\b(?! (it|off|on|out|into))": "iteration, trip count",
    r"\b(stand|stands|stood|standing)\b(?!-| (for|in for|in the way|alone)\b)": "is, occurs, is adjacent",
    r"\bbehind\b": "after, following",
    r"\b(tells?|told)\b": "returns, reports, specifies, determines",
    r"\b(whoever|nobody|somebody|anybody)\b": "the caller, no user, another thread",
    r"\bg(ive|ives|iving|ave) way\b": "is replaced by",
    r"\bgo(es|ing)? on\b": "continues",
    r"\bhand(s|ed|ing)? (\w+ )?(out|on|over)\b": "returns, forwards, passes",
    r"\b(tak(e|es|en|ing)|took) (\w+ )?apart\b": "unpacks, flattens, decomposes",
    r"\bput(s|ting)? (\w+ )?together\b": "packs, unflattens, builds",
    r"\banew\b|\b(is|are|be) made again\b|\bmakes? (\w+ )?again\b": "again, recomputed",
    r"(?<!there )\b(is|are|was|were) no (?!longer|more|less|larger|wider|worse|such|one)[a-z]+": "is not a",
    r"\bLLVM's language\b": "LLVM IR",
    r"\bonly the run\b|\bthe run (tells|knows|decides)\b": "data-dependent, known at run time",
    r"\bheeds?\b|\bhow manieth\b|\bin vain\b|\bmeanwhile\b": "depends on; index; failed; in between",
    r"\bof ours\b|\b(is|are|be) ours\b": "of this package",
    r"\b(lower|higher) floors?\b|\bthe (house|floors)\b": "layer, package",
    r"\bheld against\b|\bleav(e|es|ing) for\b": "compared with; exported to",
    r"\blet(s|ting)? go\b|\bknown outside\b": "escapes; in the wildcard set; released",
    r"\bmeanings\b|\ba meaning\b": "sugared value; binding",
    r"\b(function|call|it|program|node|region|graph) answers?\b": "returns",
    r"\banswers (with|to|by|as|otherwise|0|1)\b": "returns",
    r"\w*(special|optim|normal|material|initial|recogn|minim|vector)is(e[ds]?|ing|ations?)\b|\b(colo|neighbo)urs?\b": (
        "American spelling"
    ),
}
"""What prose may not say, and what to write instead. Code in backticks is not prose."""

PAGES: Final = sorted(
    [
        *(PACKAGE.parent / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
        *(PACKAGE.parent / "docs").rglob("*.md"),
    ]
)

_FENCED: Final = re.compile(r"^(\s*```+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"``[^`]+``|`[^`]+`|\[\w+\]\(\.\./tests/[^)]+\)")  # the last: names of test programs
_PROSE: Final = [(re.compile(pattern, re.IGNORECASE), term) for pattern, term in PROSE.items()]

IR_TEXT: Final = re.compile(r"^\s*(%|=|call |define |declare |store |br |ret )")
"""Lines of LLVM IR in the strings of code generators: names of registers are not prose."""

EXEMPT: Final = {
    "rekindle/transforms/vmap/rules/backward_ops.py": "TorchScript source in strings, whose names are identifiers",
    "tests/test_vocabulary.py": "the words that are not to be written",
}
"""Files whose texts are not checked, with the reason."""

FOLDERS: Final = ("rekindle", "tests", "benchmarks", "examples")
"""Folders whose docstrings, comments and messages are checked."""


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings, comments and messages of a file, each with its first line. A message is a text with blanks."""
    text = path.read_text(encoding="utf-8")
    parts: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(each) for each in node.values)
            values = [str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values]
            yield node.lineno, "".join(values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _idioms(text: str) -> Iterator[tuple[int, str]]:
    """Where a text has an idiom of :data:`PROSE`: the line, counted from 0, and what to write."""
    for number, line in enumerate(_CODE.sub("code", text).splitlines()):
        for pattern, term in _PROSE:
            found = pattern.search(line)
            if found is not None and not IR_TEXT.match(line):
                yield number, f"{found[0]!r}: write {term}"


def _files_of(folder: str) -> Iterator[Path]:
    """The Python files of a folder whose texts are checked."""
    for path in sorted((PACKAGE.parent / folder).rglob("*.py")):
        if path.relative_to(PACKAGE.parent).as_posix() not in EXEMPT:
            yield path


@pytest.mark.parametrize("folder", FOLDERS)
def test_prose_of_code(folder: str) -> None:
    assert [
        f"{path.relative_to(PACKAGE.parent)}:{first + line}: {problem}"
        for path in _files_of(folder)
        for first, text in _texts(path)
        if " " in text.strip()
        for line, problem in _idioms(text)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PACKAGE.parent).as_posix())
def test_prose_of_the_documentation(page: Path) -> None:
    text = _FENCED.sub(lambda fenced: "\n" * fenced[0].count("\n"), page.read_text(encoding="utf-8"))
    assert [f"line {line + 1}: {problem}" for line, problem in _idioms(text)] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("What stands behind it is told to whoever asks.", 4),
        ("The iteration after the loop returns what the caller passes.", 0),
        ("``behind`` is an identifier; X stands for Y, and there is no third.", 0),
        ("  %behind = pointer 1", 0),
    ],
)
def test_idioms_are_found(text: str, count: int) -> None:
    assert len(list(_idioms(text))) == count


_NOT_IMPERATIVE: Final = frozenset(
    "The A An What Whether How Where Why Which All Every Each Those These This Two Both Some Any Within, From As For "
    "Of It Here Nothing Something If".split()
)
"""First words of a summary line that are no verb: a function's docstring says what to do, not what there is."""

_VERB: Final = re.compile(r"[A-Z][a-z-]+")
"""What a summary line begins with: not with code, whose effect the reader would have to guess, or with ``Raises:``."""


def _functions(path: Path) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """The functions of a file that have docstrings, without properties: these are read as what they are."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text and not any("property" in ast.unparse(each) for each in node.decorator_list):
                yield node, text


def test_functions_begin_with_an_imperative() -> None:
    help_of_the_command = {"rekindle/cli/main.py: cli"}  # its help text: what the command is
    found = [
        f"{path.relative_to(PACKAGE.parent).as_posix()}: {node.name}"
        for path in _files_of("rekindle")
        for node, text in _functions(path)
        if text.split()[0] in _NOT_IMPERATIVE or not _VERB.fullmatch(text.split()[0].rstrip(","))
    ]
    assert set(found) == help_of_the_command
