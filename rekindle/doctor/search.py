"""The static search: every use of TorchScript's names in files, folders and packages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rekindle.doctor.aliases import (
    Scope,
    ScopeNode,
    annotations_of,
    evaluated_outside,
    expand_star_imports,
    imported_module,
    scopes_of,
    through_modules,
)
from rekindle.doctor.names import is_torchscript
from rekindle.doctor.uses import Form, Found, Mention, Unread, Use

MENTION: Final = re.compile(r"torch\.jit\b|torch\._jit_internal|torch\._C\._jit_|\bmobile_optimizer\b")
"""Pattern of the lines that mention TorchScript."""
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages"})
_OUTPUT: Final = frozenset({"build", "dist"})
"""Names of folders with build outputs, unless they contain ``__init__.py``."""
_TOOLS: Final = frozenset({".git", ".hg", ".svn", ".tox", ".nox", ".eggs", ".ipynb_checkpoints"})
"""Hidden folders that hold no code, or copies. Others hold code: a package's ``.mim`` has its tools."""
_TEXTS: Final = frozenset({".ipynb", ".pyi", ".pyx", ".jinja", ".j2", ".template", ".tmpl"})
"""Endings of files with code that is not read as Python."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A parsed Python file. ``path`` is its path, and ``relative`` the path within the searched folder. ``module`` is
    the name by which it is imported, with the folder ``top`` on ``sys.path``."""

    path: Path
    relative: str
    module: str
    top: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def files_below(root: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders, or the file itself. Symbolic links, virtual environments, folders
    of tools and build outputs are skipped."""
    if root.is_file():
        yield root
        return
    for path in sorted(root.iterdir()):
        if path.is_symlink():
            continue
        if not path.is_dir():
            yield path
        elif not _is_left_out(path):
            yield from files_below(path)


def _is_left_out(folder: Path) -> bool:
    name = folder.name
    if name in _OUTPUT:
        return not (folder / "__init__.py").exists()
    if name in _SKIPPED or name in _TOOLS or name.endswith(".egg-info"):
        return True
    if name.startswith(".") and name.endswith("_cache"):
        return True
    return (folder / "pyvenv.cfg").exists()


def search(root: Path) -> tuple[Found, list[SourceFile]]:
    """Find the uses of TorchScript in a file or folder; return them, and the Python files that could be parsed.

    Mentions in other files, and files that cannot be parsed, are in the result too.
    """
    found = Found([], [], [], 0)
    files: list[SourceFile] = []
    base = root if root.is_dir() else root.parent
    for path in files_below(root):
        relative = path.relative_to(base).as_posix()
        if path.suffix == ".py":
            found.files += 1
            file = _read(path, relative, found)
            if file is not None:
                files.append(file)
        elif path.suffix in _TEXTS:
            text = path.read_text(encoding="utf-8", errors="replace")
            found.mentions += _matching_lines(relative, text)
    scopes = {file.relative: scopes_of(file.tree, file.module, file.is_package) for file in files}
    modules = {file.module: scopes[file.relative][file.tree] for file in files}
    expand_star_imports(modules)
    resolved: dict[str, frozenset[str]] = {}
    for file in files:
        uses = _Uses(file, scopes[file.relative], modules, resolved)
        uses.visit(file.tree)
        found.uses += sorted(set(uses.found), key=lambda use: (use.line, use.column, use.name))
        found.mentions += _mentions(file, uses.covered)
    return found, files


def _read(path: Path, relative: str, found: Found) -> SourceFile | None:
    """Parse a Python file. If that fails, add the file and the lines that mention TorchScript to ``found``, and return
    None."""
    try:
        text = read_source(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in strings
            tree = ast.parse(text)
    except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raw = path.read_text(encoding="utf-8", errors="replace")
        lines = list(_matching_lines(relative, raw))
        where = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        found.unread.append(Unread(relative, f"this interpreter cannot parse it{where}"))
        found.mentions += lines
        return None
    top, module = module_name(path)
    return SourceFile(path, relative, module, top, text, tree)


def read_source(path: Path) -> str:
    """Return the text of a Python file, decoded as its encoding declaration specifies.

    Raises:
        SyntaxError: the declaration is invalid.
        UnicodeDecodeError: the file has other bytes.
    """
    with tokenize.open(path) as file:
        return file.read()


def module_name(path: Path) -> tuple[Path, str]:
    """Return the folder above the outermost package of a file, and the module's dotted name from there."""
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.append(folder.name)
        folder = folder.parent
    return folder, ".".join(reversed(parts))


def _matching_lines(relative: str, text: str) -> Iterator[Mention]:
    for number, line in enumerate(text.splitlines(), 1):
        if MENTION.search(line):
            yield Mention(relative, number, "unread file", line.strip()[:200])


def _mentions(file: SourceFile, covered: set[int]) -> Iterator[Mention]:
    """Yield the lines that mention TorchScript in comments and strings alone."""
    lines = file.text.split("\n")
    matching = {number for number, line in enumerate(lines, 1) if MENTION.search(line)} - covered
    if not matching:
        return
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(file.text).readline)
        if token.type == tokenize.COMMENT and MENTION.search(token.string)
    }
    for number in sorted(matching):
        text = lines[number - 1].strip()[:200]
        yield Mention(file.relative, number, "comment" if number in comments else "string", text)


class _Uses:
    """Visitor of the syntax tree of a file that collects uses of names."""

    def __init__(
        self,
        file: SourceFile,
        scopes: dict[ast.AST, Scope],
        modules: dict[str, Scope],
        resolved: dict[str, frozenset[str]],
    ) -> None:
        self.file = file
        self.scopes = scopes
        self.modules = modules
        self.resolved = resolved
        """TorchScript names of each dotted name: a cache that all files share."""
        self.scope = scopes[file.tree]
        self.lines = file.text.split("\n")
        self.found: list[Use] = []
        self.covered: set[int] = set()
        """The lines with uses."""
        self.names: list[str] = []
        self.depth = 0
        """Number of enclosing functions."""
        self.is_skipped_at_import = 0

    def visit(self, node: ast.AST, form: Form = "reference") -> None:
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._visit_scope(node)
            case ast.Import():
                for alias in node.names:
                    self._add(node, {alias.name}, "import")
            case ast.ImportFrom():
                package = self.file.module if self.file.is_package else self.file.module.rpartition(".")[0]
                for alias in node.names:
                    self._add(node, {f"{imported_module(node, package)}.{alias.name}".removesuffix(".*")}, "import")
            case ast.Call():
                if not self._add(node, self.scope.dotted(node), form):
                    self.visit(node.func, "decorator" if form == "decorator" else "call")
                    self._visit_all([*node.args, *node.keywords])
            case ast.Name(ctx=ast.Store() | ast.Del()):
                pass
            case ast.Attribute() | ast.Name():
                if not self._add(node, self.scope.dotted(node), form) and isinstance(node, ast.Attribute):
                    self.visit(node.value)
            case ast.AnnAssign():
                self.visit(node.annotation, "annotation")
                self._visit_all([node.target] if node.value is None else [node.target, node.value])
            case ast.Constant(value=str(text)) if form == "annotation" and MENTION.search(text):
                self._visit_text(node, text)
            case ast.Subscript() | ast.BinOp() | ast.Tuple() | ast.List() if form == "annotation":
                for child in ast.iter_child_nodes(node):
                    self.visit(child, form)
            case ast.If() if _is_guard(node.test):
                self.is_skipped_at_import += 1
                self._visit_all(node.body)
                self.is_skipped_at_import -= 1
                self._visit_all(node.orelse)
            case _:
                self._visit_all(ast.iter_child_nodes(node))

    def _torchscript(self, name: str) -> frozenset[str]:
        """Return the TorchScript names to which a dotted name refers."""
        found = self.resolved.get(name)
        if found is None:
            found = frozenset(filter(is_torchscript, through_modules(name, self.modules)))
            self.resolved[name] = found
        return found

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _visit_scope(self, node: ScopeNode) -> None:
        decorators = [] if isinstance(node, ast.Module | ast.Lambda) else node.decorator_list
        bases = node.bases if isinstance(node, ast.ClassDef) else []
        annotations = list(annotations_of(node)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
        for outside in evaluated_outside(node):
            form: Form = (
                "decorator"
                if outside in decorators
                else "base class"
                if outside in bases
                else "annotation"
                if outside in annotations
                else "reference"
            )
            self.visit(outside, form)
        before = self.scope
        self.scope = self.scopes[node]
        is_function = not isinstance(node, ast.Module | ast.ClassDef)
        self.depth += is_function
        if not isinstance(node, ast.Module):
            self.names.append("<lambda>" if isinstance(node, ast.Lambda) else node.name)
        self._visit_all([node.body] if isinstance(node, ast.Lambda) else node.body)
        if not isinstance(node, ast.Module):
            self.names.pop()
        self.depth -= is_function
        self.scope = before

    def _visit_text(self, node: ast.Constant, text: str) -> None:
        """Visit an annotation that is written as a string."""
        try:
            parsed = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            return
        for each in ast.walk(parsed):
            ast.copy_location(each, node)
        self.visit(parsed, "annotation")

    def _add(self, node: ast.stmt | ast.expr, names: set[str], form: Form) -> bool:
        """Record a use for each TorchScript name that one of ``names`` refers to; return whether there is any."""
        resolved = set[str]().union(*map(self._torchscript, names))
        for name in sorted(resolved):
            line = self.lines[node.lineno - 1]
            end_line = node.end_lineno or node.lineno
            use = Use(
                path=self.file.relative,
                line=node.lineno,
                column=column_in_characters(line, node.col_offset),
                end_line=end_line,
                name=name,
                form=form,
                scope=".".join(self.names),
                at_import=self.depth == 0 and self.is_skipped_at_import == 0,
                text=line.strip()[:200],
            )
            self.found.append(use)
            self.covered.update(range(node.lineno, end_line + 1))
        return bool(resolved)


def column_in_characters(line: str, offset: int) -> int:
    """Return the number of characters in the first ``offset`` bytes of ``line``, encoded as UTF-8."""
    return len(line.encode()[:offset].decode(errors="replace"))


def _is_guard(test: ast.expr) -> bool:
    """Return whether a condition is false during imports: ``TYPE_CHECKING`` or ``__name__ == "__main__"``."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return True
    return False
