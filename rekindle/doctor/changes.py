"""Changes of sources: edits, the diffs that show them, and the files after them."""

from __future__ import annotations

import ast
import difflib
import itertools
import shutil
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rekindle.doctor.search import SourceFile, column_in_characters, read_source
from rekindle.doctor.uses import Use


@dataclass(frozen=True, slots=True, order=True)
class SourceEdit:
    """A replacement of the text ``old`` at a position by ``new``. The path is relative to the examined folder, lines
    count from 1, columns from 0 in characters."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    old: str
    new: str


class StaleEdit(Exception):
    """The file does not have the text that an edit replaces, or two edits overlap."""


def edited(text: str, edits: Iterable[SourceEdit]) -> str:
    """Return a text with edits applied, which must not overlap.

    Raises:
        StaleEdit: the text at the position of an edit is not its ``old``, or two edits overlap.
    """
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    result = text
    before = len(text) + 1
    for edit in sorted(set(edits), reverse=True):
        if edit.end_line >= len(starts):
            raise StaleEdit(f"{edit.path} has no line {edit.end_line}")
        start, end = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
        if text[start:end] != edit.old or end > before:
            raise StaleEdit(f"{edit.path}:{edit.line} is not {edit.old!r}")
        result = result[:start] + edit.new + result[end:]
        before = start
    return result


def diff_of(root: Path, edits: Iterable[SourceEdit]) -> str:
    """Return the unified diff of edits of files below ``root``, which are not written.

    Raises:
        StaleEdit: the text at the position of an edit is not its ``old``, or two edits overlap.
    """
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
    """Write edits into files below ``root``; return the relative paths of these files.

    Raises:
        StaleEdit: the text at the position of an edit is not its ``old``, or two edits overlap. No file is written
            then.
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
    """Copy the file or folder ``root`` into ``folder``, with the package that it belongs to, and apply edits to the
    copy; return the path of the copy of ``root``. Hidden files are not copied.

    Raises:
        StaleEdit: the text at the position of an edit is not its ``old``, or two edits overlap.
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
    """Return the edit that a compile error suggests; None if it has none, or is in a file that is not examined.

    ``problem`` is a compile error as :mod:`rekindle.doctor.problems` describes it. ``paths`` maps the absolute paths of
    the examined files to relative ones.
    """
    edit = problem.get("edit")
    if not edit or edit["file"] not in paths:
        return None
    line, column, old = edit["line"], edit["column"], edit["old"]
    return SourceEdit(paths[edit["file"]], line, column, line, column + len(old), old, edit["new"])


# ------------------------------------------------------------------------------------------------------------- switches


def without_switches(file: SourceFile, uses: Sequence[Use]) -> dict[Use, list[SourceEdit]]:
    """Return, for each use that can be removed, the edits that remove it. ``uses`` are calls of switches of PyTorch's
    executor, such as ``torch._C._jit_set_profiling_executor``.

    A statement is removed, and a context manager is replaced by ``contextlib.nullcontext()``. A call whose result is
    used stays. If the edited file would not parse, nothing is removed.
    """
    parents = {child: node for node in ast.walk(file.tree) for child in ast.iter_child_nodes(node)}
    lines = file.text.split("\n")
    calls = {
        (node.func.lineno, _column(lines, node.func.lineno, node.func.col_offset)): node
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call)
    }
    found: dict[Use, list[SourceEdit]] = {}
    statements: dict[Use, ast.stmt] = {}
    for use in uses:
        node = calls.get((use.line, use.column))
        parent = None if node is None else parents[node]
        if isinstance(parent, ast.Expr):
            statements[use] = parent
        elif node is not None and isinstance(parent, ast.withitem) and parent.optional_vars is None:
            edit = _replacement(file, lines, node, "contextlib.nullcontext()")
            found[use] = [edit, *_import_of_contextlib(file)]
    removed = set(statements.values())
    for use, statement in statements.items():
        block = _block_of(statement, parents[statement])
        is_left_empty = (
            removed.issuperset(block) and statement is block[0] and not isinstance(parents[statement], ast.Module)
        )
        found[use] = [_removal(file, lines, statement, is_left_empty)]
    try:
        ast.parse(edited(file.text, [edit for edits in found.values() for edit in edits]))
    except (SyntaxError, StaleEdit):
        return {}
    return found


def _block_of(statement: ast.stmt, parent: ast.AST) -> list[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def _removal(file: SourceFile, lines: list[str], statement: ast.stmt, is_left_empty: bool) -> SourceEdit:
    """Return the edit that removes a statement with its lines. It becomes ``pass`` if its block would be empty, other
    statements share its lines, or it ends on the last line."""
    end = statement.end_lineno or statement.lineno
    before = lines[statement.lineno - 1][: _column(lines, statement.lineno, statement.col_offset)]
    after = lines[end - 1][_column(lines, end, statement.end_col_offset or 0) :]
    is_shared = before.strip() or (after.strip() and not after.strip().startswith("#"))
    if is_left_empty or is_shared or end == len(lines):
        return _replacement(file, lines, statement, "pass")
    text = "".join(f"{line}\n" for line in lines[statement.lineno - 1 : end])
    return SourceEdit(file.relative, statement.lineno, 0, end + 1, 0, text, "")


def _replacement(file: SourceFile, lines: list[str], node: ast.expr | ast.stmt, new: str) -> SourceEdit:
    end_line = node.end_lineno or node.lineno
    start, end = _column(lines, node.lineno, node.col_offset), _column(lines, end_line, node.end_col_offset or 0)
    if node.lineno == end_line:
        old = lines[node.lineno - 1][start:end]
    else:
        old = "\n".join([lines[node.lineno - 1][start:], *lines[node.lineno : end_line - 1], lines[end_line - 1][:end]])
    return SourceEdit(file.relative, node.lineno, start, end_line, end, old, new)


def _import_of_contextlib(file: SourceFile) -> list[SourceEdit]:
    """Return the edit that imports ``contextlib`` before the first import other than of ``__future__``; without one,
    after the docstring and the imports of ``__future__``. Return none if the module imports it."""
    imports = [node for node in file.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias for node in imports if isinstance(node, ast.Import) for alias in node.names]
    if any(alias.name == "contextlib" and alias.asname is None for alias in names):
        return []
    later = next((node for node in imports if not _is_of_future(node)), None)
    head = [node.end_lineno or node.lineno for node in itertools.takewhile(_is_in_head, file.tree.body)]
    line = later.lineno if later is not None else 1 + max(head, default=0)
    return [SourceEdit(file.relative, line, 0, line, 0, "", "import contextlib\n")]


def _is_of_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_in_head(node: ast.stmt) -> bool:
    """Return whether a statement must precede all others in a module: its docstring, or an import of ``__future__``."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return is_text or _is_of_future(node)


def _column(lines: list[str], line: int, offset: int) -> int:
    return column_in_characters(lines[line - 1], offset)
