"""Delta debugging on the syntax tree: the smallest program that still fails in the same way."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

Edit = Callable[[], "ast.Module | None"]
"""A tree with a part removed or replaced. Most change the tree that they were made for and are undone by ``_UNDO``."""

_KEPT: Final = ("SUBJECT", "CALLS", "NO_GRAD", "WAYS")
_CONSTANTS: Final = tuple(ast.Constant(each) for each in (0, 1, 0.5, True, "a", None))


def shrink(source: str, fails: Callable[[str], bool], budget: int = 1500) -> str:
    """The smallest text found by removing and replacing parts of ``source`` for which ``fails`` holds; ``budget`` is
    how many texts may be tried."""
    best = _normal(source)
    tried: set[str] = {best}
    index, unchanged = 0, 0
    tree = ast.parse(best)
    edits = list(_edits(tree))
    while unchanged < len(edits) and budget > 0:
        candidate = _text_after(edits[index % len(edits)], tree)
        index, unchanged = index + 1, unchanged + 1
        if candidate is None or candidate in tried or _cost(candidate) >= _cost(best):
            continue
        tried.add(candidate)
        budget -= 1
        if fails(candidate):
            best, unchanged = candidate, 0
            tree = ast.parse(best)
            edits = list(_edits(tree))
            index = max(index - 1, 0) % max(len(edits), 1)
    return best


def only(source: str, way: str, call: int) -> str:
    """The program with one way and one call."""
    tree = ast.parse(source)
    for statement in tree.body:
        name = getattr(statement.targets[0], "id", "") if isinstance(statement, ast.Assign) else ""
        if name == "WAYS":
            statement.value = ast.Tuple([ast.Constant(way)], ast.Load())  # type: ignore[attr-defined]
        elif name == "NO_GRAD" and call >= 0:
            statement.value = ast.Tuple([], ast.Load())  # type: ignore[attr-defined]
        elif name == "CALLS" and 0 <= call < len(statement.value.elts):  # type: ignore[attr-defined]
            statement.value.elts = [statement.value.elts[call]]  # type: ignore[attr-defined]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _text_after(edit: Edit, tree: ast.Module) -> str | None:
    undo: list[Callable[[], None]] = []
    _UNDO.append(undo)
    try:
        return _written(edit() or tree)
    finally:
        _UNDO.pop()
        for each in reversed(undo):
            each()


_UNDO: Final[list[list[Callable[[], None]]]] = []


def _replace(values: list[Any], start: int, stop: int, new: list[Any]) -> None:
    """Change a list of a tree until the text of the candidate is written."""
    old = list(values)

    def undo() -> None:
        values[:] = old

    _UNDO[-1].append(undo)
    values[start:stop] = new


def _cost(source: str) -> tuple[int, int]:
    return (sum(1 for _ in ast.walk(ast.parse(source))), len(source))


def _normal(source: str) -> str:
    return ast.unparse(ast.parse(source)) + "\n"


def _written(tree: ast.Module) -> str | None:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if body == [] and isinstance(node, ast.stmt | ast.excepthandler):
            _replace(body, 0, 0, [ast.Pass()])
    try:
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        compile(text, "candidate", "exec")
    except Exception:
        return None
    return text


def _edits(tree: ast.Module) -> Iterator[Edit]:
    """All edits, those that take away most first."""
    yield from _statement_edits(tree)
    yield from _parameter_edits(tree)
    yield from _expression_edits(tree)


def _is_kept(statement: ast.stmt) -> bool:
    return (isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") in _KEPT) or isinstance(
        statement, (ast.Import, ast.ImportFrom)
    )


def _setter(values: list[Any], start: int, stop: int, new: list[Any]) -> Edit:
    return lambda: _replace(values, start, stop, new)


def _field_setter(node: ast.AST, name: str, new: Any) -> Edit:
    def edit() -> None:
        old = getattr(node, name)
        _UNDO[-1].append(lambda: setattr(node, name, old))
        setattr(node, name, new)

    return edit


def _statement_edits(tree: ast.Module) -> Iterator[Edit]:
    bodies = [
        value
        for node in ast.walk(tree)
        for _, value in ast.iter_fields(node)
        if isinstance(value, list) and value and isinstance(value[0], (ast.stmt, ast.excepthandler))
    ]
    for body in bodies:
        size = len(body)
        while size:
            for start in range(0, len(body) - size + 1, size):
                chunk = body[start : start + size]
                if not any(_is_kept(each) for each in chunk):
                    yield _setter(body, start, start + size, [])
            size //= 2
    for body in bodies:
        for index, statement in enumerate(body):
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, None)
                if isinstance(inner, list) and inner and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                    yield _setter(body, index, index + 1, inner)
            for handler in getattr(statement, "handlers", ()):
                yield _setter(body, index, index + 1, handler.body)
            if isinstance(statement, ast.AugAssign):
                yield _setter(body, index, index + 1, [ast.Assign([statement.target], statement.value)])
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(statement.value, ast.IfExp):
                for branch in (statement.value.body, statement.value.orelse):
                    yield _field_setter(statement, "value", branch)


def _parameter_edits(tree: ast.Module) -> Iterator[Edit]:
    """Take a parameter from a function, and its argument from all calls; take away annotations and defaults."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        if node.returns is not None:
            yield _field_setter(node, "returns", None)
        if node.args.defaults:
            yield _setter(node.args.defaults, 0, 1, [])
        for index, argument in enumerate(node.args.args):
            if argument.arg != "self":
                yield _without_parameter(tree, node.name, index)


def _without_parameter(original: ast.Module, name: str, index: int) -> Edit:
    def edit() -> ast.Module:
        tree = copy.deepcopy(original)
        function = next(each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name)
        arguments = function.args
        from_end = len(arguments.args) - index
        if from_end <= len(arguments.defaults):
            del arguments.defaults[-from_end]
        is_method = arguments.args[0].arg == "self"
        del arguments.args[index]
        at = index - is_method
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda) and function.name in ("f", "forward") and isinstance(node.body, ast.Tuple):
                del node.body.elts[at : at + 1]
            elif isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called == function.name:
                    del node.args[at : at + 1]
        return tree

    return edit


def _expression_edits(tree: ast.Module) -> Iterator[Edit]:
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        if _is_kept(statement) and getattr(statement.targets[0], "id", "") != "CALLS":  # type: ignore[attr-defined]
            if isinstance(statement.value, (ast.Tuple, ast.List)) and len(statement.value.elts) > 1:  # type: ignore[attr-defined]
                for index in range(len(statement.value.elts)):  # type: ignore[attr-defined]
                    yield _setter(statement.value.elts, index, index + 1, [])  # type: ignore[attr-defined]
            continue
        for node in ast.walk(statement):
            yield from _of_node(node)


def _of_node(node: ast.AST) -> Iterator[Edit]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], (ast.expr, ast.keyword, ast.comprehension)):
            is_calls = name == "elts" and isinstance(value[0], ast.Lambda)
            if not (is_calls and len(value) == 1):
                for index in range(len(value)):
                    yield _removal(node, name, value, index)
            if not is_calls:
                for index, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        for new in _simpler(item):
                            yield _setter(value, index, index + 1, [new])
        elif isinstance(value, ast.expr) and name not in ("annotation", "func", "returns"):
            for new in _simpler(value):
                yield _field_setter(node, name, new)
        elif isinstance(value, ast.Call) and name == "func":
            for new in _simpler(value):
                yield _field_setter(node, name, new)


def _removal(node: ast.AST, name: str, values: list[Any], index: int) -> Edit:
    def edit() -> None:
        _replace(values, index, index + 1, [])
        if isinstance(node, ast.Dict):
            _replace(node.keys if name == "values" else node.values, index, index + 1, [])
        elif isinstance(node, ast.Compare) and name == "comparators":
            _replace(node.ops, index, index + 1, [])

    return edit


def _simpler(expression: ast.expr) -> Iterator[ast.expr]:
    """Expressions that may take its place: its parts, constants."""
    if isinstance(getattr(expression, "ctx", None), (ast.Store, ast.Del)):
        return
    if isinstance(expression, ast.Lambda):
        return
    for child in ast.iter_child_nodes(expression):
        if isinstance(child, ast.expr) and not isinstance(getattr(child, "ctx", None), ast.Store):
            yield child
        elif isinstance(child, (ast.comprehension, ast.keyword)):
            yield child.iter if isinstance(child, ast.comprehension) else child.value
    if isinstance(expression, ast.BoolOp) and len(expression.values) == 2:
        return
    if isinstance(expression, ast.Constant):
        if isinstance(expression.value, (int, float)) and expression.value not in (0, 1):
            yield ast.Constant(type(expression.value)(1))
        return
    yield from _CONSTANTS
