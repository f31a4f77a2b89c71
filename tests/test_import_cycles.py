"""Modules that import each other, directly or through others, are few. Imports for annotations count."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Final

import rekindle

PACKAGE: Final = Path(rekindle.__file__).parent

MAX_CYCLE: Final = 6
"""A graph, its nodes, the operator that a node calls, the builder of a graph and its arguments."""


def _imports(path: Path, modules: Set[str]) -> Iterator[str]:
    """Every module of the package that a file imports: on top, in functions and under ``TYPE_CHECKING``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield inner if inner in modules else str(node.module)


def _strong_components(edges: Mapping[str, Set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a graph: Tarjan's algorithm."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for imported in edges[module]:
            if imported not in order:
                visit(imported)
            if imported in stack:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == order[module]:
            start = stack.index(module)
            found.append(set(stack[start:]))
            del stack[start:]

    for module in edges:
        if module not in order:
            visit(module)
    return found


def test_strong_components() -> None:
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert _strong_components(edges) == [{"d", "e"}, {"a", "b", "c"}, {"f"}]


def test_cycles_are_small() -> None:
    files = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    modules = set(files)
    edges = {module: set(_imports(path, modules)) & modules - {module} for module, path in files.items()}
    assert [sorted(cycle) for cycle in _strong_components(edges) if len(cycle) > MAX_CYCLE] == []
