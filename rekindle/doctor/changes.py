"""Changes of sources: edits, the diffs that show them, and the files after them."""

from __future__ import annotations

import ast
import difflib
import shutil
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rekindle.doctor.search import SourceFile
from rekindle.doctor.uses import Use


@dataclass(frozen=True, slots=True, order=True)
class SourceEdit:
    """The text ``old`` at a place gives way to ``new``. The path is relative to what is examined, lines count from 1,
    columns from 0 in characters."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    old: str
    new: str


class StaleEdit(Exception):
    """The file does not have the text that an edit replaces."""


def edited(text: str, edits: Iterable[SourceEdit]) -> str:
    """Return a text after edits, none of which may overlap.

    Raises:
        StaleEdit: it has another text at the place of an edit, or two overlap.
    """
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    result = text
    before = len(text) + 1
    for edit in sorted(set(edits), reverse=True):
        if edit.end_line > len(starts):
            raise StaleEdit(f"{edit.path} has no line {edit.end_line}")
        start, end = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
        if text[start:end] != edit.old or end > before:
            raise StaleEdit(f"{edit.path}:{edit.line} is not {edit.old!r}")
        result = result[:start] + edit.new + result[end:]
        before = start
    return result


def read_source(path: Path) -> str:
    """Return the text of a file of Python, in the encoding that it declares."""
    with tokenize.open(path) as file:
        return file.read()


def diff_of(root: Path, edits: Iterable[SourceEdit]) -> str:
    """Return the unified diff of edits of files below ``root``."""
    parts: list[str] = []
    for path, group in _by_file(edits).items():
        before = read_source(root / path)
        after = edited(before, group)
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}", n=1
        )
        parts += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(parts)


def apply(root: Path, edits: Iterable[SourceEdit]) -> list[str]:
    """Write edits into files below ``root``; return the paths of those that changed.

    Raises:
        StaleEdit: a file has another text; none has been written then.
    """
    texts: dict[Path, tuple[str, str, str]] = {}
    groups = _by_file(edits)
    for path, group in groups.items():
        target = root / path
        with tokenize.open(target) as file:
            after = edited(file.read(), group)
            newline = file.newlines if isinstance(file.newlines, str) else "\n"
            texts[target] = after, file.encoding, newline
    for target, (after, encoding, newline) in texts.items():
        target.write_text(after, encoding=encoding, newline=newline)
    return sorted(groups)


def copied_with(root: Path, edits: Iterable[SourceEdit], folder: Path) -> Path:
    """Copy what is examined, with the packages that it is a part of, and edit the copy; return its path.

    Raises:
        StaleEdit: a file has another text.
    """
    top = root if root.is_dir() else root.parent
    while (top / "__init__.py").exists():
        top = top.parent
    # Of a folder with many packages (site-packages), the one that is examined.
    inner = root.relative_to(top)
    first = inner.parts[0] if inner.parts else None
    if first is None:
        shutil.copytree(top, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    elif (top / first).is_dir():
        shutil.copytree(top / first, folder / first, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    else:
        shutil.copy2(top / first, folder / first)
    base = folder / inner
    apply(base if root.is_dir() else base.parent, edits)
    return base


def _by_file(edits: Iterable[SourceEdit]) -> dict[str, list[SourceEdit]]:
    found: dict[str, list[SourceEdit]] = {}
    for edit in sorted(set(edits)):
        found.setdefault(edit.path, []).append(edit)
    return found


def of_problem(problem: Mapping[str, Any], paths: Mapping[str, str]) -> SourceEdit | None:
    """Return the edit that a compile error suggests, if it is in a file that is examined: ``paths`` has their relative
    paths by the real ones."""
    edit = problem.get("edit")
    if not edit or edit["file"] not in paths:
        return None
    line, column, old = edit["line"], edit["column"], edit["old"]
    return SourceEdit(paths[edit["file"]], line, column, line, column + len(old), old, edit["new"])


# ------------------------------------------------------------------------------------------------------------- switches


def without_switch(file: SourceFile, use: Use) -> list[SourceEdit] | None:
    """Return the edits that take out a call of a switch: a statement of its own, or a context manager. None where its
    result is used."""
    parents = {child: node for node in ast.walk(file.tree) for child in ast.iter_child_nodes(node)}
    lines = file.text.split("\n")
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.Call) or node.func.lineno != use.line or node.func.end_lineno != use.end_line:
            continue
        if _column(lines, node.func.lineno, node.func.col_offset) != use.column:
            continue
        parent = parents[node]
        if isinstance(parent, ast.Expr):
            return [_removal(file, lines, parent, parents)]
        if isinstance(parent, ast.withitem) and parent.optional_vars is None:
            edit = _replacement(file, lines, node, "contextlib.nullcontext()")
            return [edit, *_import_of_contextlib(file, lines)]
    return None


def _removal(
    file: SourceFile, lines: list[str], statement: ast.stmt, parents: Mapping[ast.AST, ast.AST]
) -> SourceEdit:
    """Remove a statement with its lines; leave ``pass`` where it is the only one of a block or shares its lines."""
    siblings = _siblings(statement, parents[statement])
    end = statement.end_lineno or statement.lineno
    before = lines[statement.lineno - 1][: _column(lines, statement.lineno, statement.col_offset)]
    after = lines[end - 1][_column(lines, end, statement.end_col_offset or 0) :]
    if len(siblings) == 1 and not isinstance(parents[statement], ast.Module) or before.strip() or after.strip():
        return _replacement(file, lines, statement, "pass")
    if end == len(lines):  # the file does not end with a line end
        return SourceEdit(file.relative, statement.lineno, 0, end, len(lines[end - 1]), "\n".join(lines[statement.lineno - 1 : end]), "")
    text = "".join(f"{line}\n" for line in lines[statement.lineno - 1 : end])
    return SourceEdit(file.relative, statement.lineno, 0, end + 1, 0, text, "")


def _siblings(statement: ast.stmt, parent: ast.AST) -> list[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def _replacement(file: SourceFile, lines: list[str], node: ast.expr | ast.stmt, new: str) -> SourceEdit:
    end_line = node.end_lineno or node.lineno
    start, end = _column(lines, node.lineno, node.col_offset), _column(lines, end_line, node.end_col_offset or 0)
    if node.lineno == end_line:
        old = lines[node.lineno - 1][start:end]
    else:
        old = "\n".join([lines[node.lineno - 1][start:], *lines[node.lineno : end_line - 1], lines[end_line - 1][:end]])
    return SourceEdit(file.relative, node.lineno, start, end_line, end, old, new)


def _import_of_contextlib(file: SourceFile, lines: list[str]) -> list[SourceEdit]:
    """Return the edit that imports ``contextlib`` before the first import, unless the module does."""
    imports = [node for node in file.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(isinstance(node, ast.Import) and any(a.name == "contextlib" and not a.asname for a in node.names) for node in imports):
        return []
    later = [node for node in imports if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    line = later[0].lineno if later else 1
    return [SourceEdit(file.relative, line, 0, line, 0, "", "import contextlib\n")]


def _column(lines: list[str], line: int, offset: int) -> int:
    return len(lines[line - 1].encode()[:offset].decode(errors="replace"))
