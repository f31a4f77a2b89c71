"""The lambda expression behind a function that one made: found in its file by where it stands."""

from __future__ import annotations

import ast
import linecache
import sys
from types import CodeType
from typing import Any

from rekindle.errors import Diagnostics, Source
from rekindle.syntax.python_expressions import OffsetTable
from rekindle.syntax.python_statements import StatementBuilder
from rekindle.syntax.views import Def, Ident, Lambda, Return


def lambda_def(fn: Any, diagnostics: Diagnostics | None = None) -> Def | None:
    """A definition that does what the lambda does; None where it cannot be told from others on its line."""
    code: CodeType = fn.__code__
    text = "".join(linecache.getlines(code.co_filename))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and _may_be(node, code)]
    if len(found) > 1:
        found = [node for node in found if _is_there(node, code)]
    if len(found) != 1:
        return None
    source = Source(text, code.co_filename, 1)
    builder = StatementBuilder(source, OffsetTable(source, first_line=1), diagnostics)
    expr = Lambda(builder.expr(found[0]).tree)
    body = [Return.create(expr.body.range, expr.body)]
    return Def.create(expr.range, Ident.create(expr.range, "_lambda"), expr.params, None, body)


def _may_be(node: ast.Lambda, code: CodeType) -> bool:
    names = [item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return node.lineno == code.co_firstlineno and list(code.co_varnames[: len(names)]) == names


def _is_there(node: ast.Lambda, code: CodeType) -> bool:
    """Whether the code is made of what stands behind the colon, as it tells since Python 3.11."""
    if sys.version_info < (3, 11):
        return False
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column is not None]
    body = node.body
    end = (body.end_lineno or body.lineno, body.end_col_offset or body.col_offset)
    behind = [place for place in places if place >= (body.lineno, body.col_offset)]
    return bool(behind) and all(place < end for place in behind)
