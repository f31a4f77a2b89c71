"""Which names of PyTorch's TorchScript a file of source refers to, found by reading its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tests.support.torchscript_names import KNOWN_BY_IDENTITY, is_forbidden

Code: TypeAlias = Sequence[ast.expr | ast.stmt]
"""All expressions and statements of a file."""


def forbidden_references(source: str) -> list[tuple[int, str]]:
    """The forbidden names that ``source`` uses as code, each with its line. Strings and comments are not code.

    Follows imports and their aliases (``from torch import _C as c``), plain assignments of a dotted name to a name,
    ``getattr`` with a literal name, and ``import_module`` with a literal path. A name means the same in the whole file;
    where it is bound twice, either meaning counts.
    """
    code = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr | ast.stmt)]
    meanings = _meanings(code)
    compared = _compared(code)
    # `torch.jit` within `torch.jit.annotate` is part of a name that may be used, not a use of its own.
    parts = {
        id(node.value)
        for node in code
        if isinstance(node, ast.Attribute) and id(node) in compared and _dotted(node, meanings) & KNOWN_BY_IDENTITY
    }
    found = {
        (node.lineno, name)
        for node in code
        if id(node) not in parts
        for name in _names_of(node, meanings)
        if is_forbidden(name) and (name not in KNOWN_BY_IDENTITY or id(node) not in compared)
    }
    # torch.jit.script is reported once, not once more as torch.jit.
    return sorted(
        (line, name)
        for line, name in found
        if not any(other_line == line and other.startswith(f"{name}.") for other_line, other in found)
    )


def programs_in_strings(source: str) -> dict[str, list[str]]:
    """Return the forbidden names in strings of ``source`` that are programs themselves, by the first lines of these."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
            try:
                names = [name for _, name in forbidden_references(node.value)]
            except (SyntaxError, ValueError):  # text
                continue
            if names:
                found[node.value.partition("\n")[0]] = names
    return found


def dotted_names(source: str) -> set[str]:
    """Return the names with their modules that ``source`` uses as code: ``torch.jit.fork``, ``torch.jit``."""
    code = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr | ast.stmt)]
    meanings = _meanings(code)
    return {name for node in code for name in _names_of(node, meanings)}


def _compared(code: Code) -> set[int]:
    """The ids of the expressions of which only the identity is asked: in ``id(x)``, ``isinstance(_, x)`` and
    ``issubclass(_, x)``, as keys of a dict, and first in the rows of a table ``[(x, …), …]``. Nothing can be called,
    inherited or decorated by these."""
    found: set[int] = set()
    for node in code:
        match node:
            case (
                ast.Call(func=ast.Name(id="id"), args=[value])
                | ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, value])
            ):
                found.update(map(id, value.elts if isinstance(value, ast.Tuple) else [value]))
            case ast.Dict(keys=keys):
                found.update(id(key) for key in keys if key is not None)
            case ast.List(elts=rows) | ast.Tuple(elts=rows):
                found.update(id(row.elts[0]) for row in rows if isinstance(row, ast.Tuple) and row.elts)
    return found


def _meanings(code: Code) -> dict[str, set[str]]:
    """What each name of the file may stand for, as dotted names that begin with a module."""
    meanings: dict[str, set[str]] = {}
    for node in code:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                meanings.setdefault(alias.asname or root, set()).add(alias.name if alias.asname else root)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            for alias in node.names:
                meanings.setdefault(alias.asname or alias.name, set()).add(f"{node.module}.{alias.name}")
    assignments = [node for node in code if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)]
    grown = True
    while grown:
        grown = False
        for node in assignments:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and node.value is not None:
                    known = meanings.setdefault(target.id, set())
                    # A chain that leads back to its own name would grow for ever.
                    new = {name for name in _dotted(node.value, meanings) if name.count(".") < 8} - known
                    known |= new
                    grown = grown or bool(new)
    return meanings


def _names_of(node: ast.expr | ast.stmt, meanings: dict[str, set[str]]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.expr):
        yield from _dotted(node, meanings)


def _dotted(node: ast.expr, meanings: dict[str, set[str]]) -> set[str]:
    """The dotted names that an expression may stand for: none unless it is a chain that begins with a known name."""
    match node:
        case ast.Name(id=name):
            return meanings.get(name, set())
        case ast.Attribute(value=value, attr=attribute):
            return {f"{base}.{attribute}" for base in _dotted(value, meanings)}
        case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(attribute)), *_]):
            return {f"{base}.{attribute}" for base in _dotted(value, meanings)}
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(path)), *_],
        ):
            return {path}
    return set()
