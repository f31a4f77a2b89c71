"""Differences that docs/differences.md lists, and how a program that shows one is recognised.

The list is strict: each entry names the row by its beginning, and a test fails where the row is gone. A row is found by
executing the program again without what the row is about: where it then agrees with eager Python, the row is the cause.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rekindle.codegen.fusion import FuseGraph
from rekindle.passes import dead_code_elimination
from tests.fuzzing.comparison import Difference

UNUSED: Final = "an operator on Tensors whose result nobody uses"
NOT_DECLARED: Final = "`x.item()` where an int is declared"
DECLARED: Final = "an int given to a parameter, a variable or a result that is declared a float"
REORDERED: Final = "an operator on Tensors that raises, and what stands after it"
COMPLEX_POWER: Final = "`float ** float` without a real result"
NEGATIVE_POWER: Final = "`2 ** n` of ints, `n` negative"

ROWS: Final = (UNUSED, REORDERED, NOT_DECLARED, DECLARED, COMPLEX_POWER, NEGATIVE_POWER)

Agrees = Callable[[str], bool]
"""Whether a text, executed in the same way, does what eager Python does with it."""

_CONVERTED: Final = ("float instead of int", "int instead of bool", "float instead of bool", "str value")
"""What a declared float makes of an int, and an int of a bool."""
_ANY_NUMBER: Final = "Union[bool, int, float, complex]"


@contextmanager
def without_dead_code_elimination() -> Iterator[None]:
    """Keep every node, whether anybody uses its result or not."""
    elimination = dead_code_elimination._Elimination
    before = elimination._is_needed
    elimination._is_needed = lambda self, node: True  # type: ignore[method-assign]
    try:
        yield
    finally:
        elimination._is_needed = before  # type: ignore[method-assign]


@contextmanager
def without_fusion() -> Iterator[None]:
    """Run every operator where it stands, on its own."""
    before = FuseGraph.run
    FuseGraph.run = lambda self, graph: False  # type: ignore[method-assign]
    try:
        yield
    finally:
        FuseGraph.run = before  # type: ignore[method-assign]


def row_of(failure: str, what: Difference, source: str, agrees: Agrees) -> str:
    """The row that describes a failure, or an empty text."""
    if "is not a real number; make one of them complex" in what.text:
        return COMPLEX_POWER
    if "is not an int: write float(base) ** exponent where it may be negative" in what.text:
        return NEGATIVE_POWER
    if failure in ("error instead", "other error") and "TypeError: expected a" in what.text:
        if agrees(with_any_number(source)):
            return NOT_DECLARED
    if failure in ("wrong answer", "wrong state", "wrong arguments") and what.kind in _CONVERTED:
        return DECLARED if agrees(with_any_number(source)) else ""
    if failure in _OF_AN_ERROR:
        with without_fusion():
            if agrees(source):
                return REORDERED
    if failure in _OF_AN_ERROR or failure == "missing error":
        with without_fusion(), without_dead_code_elimination():
            if agrees(source):
                return UNUSED
    return ""


_OF_AN_ERROR: Final = ("other error", "other text", "wrong state after an error", "wrong arguments after an error")


def with_any_number(source: str) -> str:
    """The program with annotations that take every real number where one kind of number is declared."""
    tree = _AnyNumber().visit(ast.parse(source))
    return "from typing import Union\n" + ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _AnyNumber(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = _wider(node.annotation)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = _wider(node.annotation)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = _wider(node.returns)
        return self.generic_visit(node)


def _wider(annotation: Any) -> Any:
    match annotation:
        case ast.Name(id="bool" | "int" | "float"):
            return ast.parse(_ANY_NUMBER, mode="eval").body
        case ast.Subscript(value=ast.Name(id="Dict"), slice=ast.Tuple(elts=[key, value])):
            return ast.Subscript(annotation.value, ast.Tuple([key, _wider(value)]))
        case ast.Subscript(value=ast.Name(id="Tuple" | "Union"), slice=ast.Tuple(elts=parts)):
            return ast.Subscript(annotation.value, ast.Tuple([_wider(each) for each in parts]))
        case ast.Subscript(value=ast.Name(id="List" | "Optional"), slice=inner):
            return ast.Subscript(annotation.value, _wider(inner))
        case _:
            return annotation
