"""The names that a node of Python's ``ast`` binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

_NAMED: Final = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler),
    *(ast.MatchAs, ast.MatchStar),
)


def names_bound_by(node: ast.AST) -> list[str]:
    """Return the names that ``node`` assigns, imports, defines or declares by ``global`` or ``nonlocal``, each once,
    excluding those within nested functions, lambdas and classes. Variables of comprehensions are included."""
    return list(dict.fromkeys(_bound(node)))


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    yield from _assigned_by(node)
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _bound(child)


def _assigned_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that ``node`` itself assigns, imports or defines, without those of its children."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, _NAMED):
        if node.name is not None:
            yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest


def assigned_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the names that the statements of ``function`` assign, import or define. Names that are only declared by
    ``global`` or ``nonlocal``, and those within nested functions and classes, are not included; variables of
    comprehensions are."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        found.update(_assigned_by(node))
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def names_read_in(function: ast.AST, *, without: ast.AST) -> set[str]:
    """Return the names that ``function`` reads or declares by ``nonlocal``, also within nested functions, except in
    the part ``without``."""
    found: set[str] = set()
    waiting = [function]
    while waiting:
        node = waiting.pop()
        if node is without:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Nonlocal):
            found.update(node.names)
        waiting.extend(ast.iter_child_nodes(node))
    return found


FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    """Return the names of the parameters, ``*args`` and ``**kwargs`` included."""
    given = function.args
    found = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    found += [item for item in (given.vararg, given.kwarg) if item is not None]
    return [item.arg for item in found]


def names_within(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Return the parameters and variables of a function."""
    assigned = set() if isinstance(function, ast.Lambda) else assigned_names(function)
    return assigned.union(parameters_of(function))
