"""Convert a live Python function or class to the tree that :mod:`rekindle.syntax.parser` would parse from its text.

Python's own parser parses the source, and its nodes are converted to trees: expressions in
:mod:`rekindle.syntax.python_expressions`, statements and definitions in :mod:`rekindle.syntax.python_statements`.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import warnings
from collections.abc import Callable, Collection
from types import CodeType, FunctionType
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from rekindle.errors import Diagnostics, NotScriptableError, Source
from rekindle.syntax.live_source import describe, source_of
from rekindle.syntax.nesting_limit import too_deep
from rekindle.syntax.private_names import mangle_private_names
from rekindle.syntax.python_expressions import OffsetTable
from rekindle.syntax.python_statements import StatementBuilder
from rekindle.syntax.unsupported_syntax import refuse
from rekindle.syntax.views import ClassDef, Def, Ident, Lambda, Return

_DEFINITIONS: Final[WeakKeyDictionary[Callable[..., Any], tuple[CodeType, Def]]] = WeakKeyDictionary()
"""The definitions of functions that were read whole: a method is compiled for each type of module that has it."""


def function_def(
    fn: Callable[..., Any],
    name: str | None = None,
    *,
    signature_only: bool = False,
    diagnostics: Diagnostics | None = None,
    unwrap: bool = True,
) -> Def:
    """Return the definition of the Python function or method ``fn``, named ``name`` if given. For a wrapper, return
    that of the wrapped function, unless ``unwrap`` is False.

    With ``signature_only`` the body is empty, and ``*args`` and ``**kwargs`` are omitted: Python runs
    the function. Errors of unsupported constructs are added to ``diagnostics``, and the tree has a placeholder
    (:class:`~rekindle.syntax.views.statements.ErrorStmt`) for each; without ``diagnostics`` the first is raised.

    Raises:
        NotScriptableError: the source is not found, has changed, or is not a function definition.
        ParseError: the source is nested too deeply, or a type comment in it is invalid.
        UnsupportedError: there are no ``diagnostics``, and the function has Python that programs cannot have, or it is
            asynchronous or has type parameters.
    """
    is_kept = isinstance(fn, FunctionType) and not unwrap and not signature_only
    if is_kept:
        known = _DEFINITIONS.get(fn)
        if known is not None and known[0] is fn.__code__:
            return known[1] if name is None or name == known[1].name.name else known[1].with_name(name)
    if getattr(fn, "__name__", "") == "<lambda>":
        found = lambda_def(fn, diagnostics)
        if found is not None:
            return found if name is None else found.with_name(name)
        raise NotScriptableError(
            f"{describe(fn)} is a lambda expression whose source cannot be found.",
            hint="Write a named function with def.",
        )

    def build(node: ast.stmt, builder: StatementBuilder) -> Def:
        original = inspect.unwrap(fn)
        if isinstance(original, FunctionType):
            builder.is_dict_builtin = "dict" not in original.__globals__ and "dict" not in original.__code__.co_freevars
        if isinstance(node, ast.AsyncFunctionDef) and not signature_only:
            raise refuse("async_def", builder.range_of(node))
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            raise NotScriptableError(
                f"The source of {describe(fn)} is not a function definition.",
                builder.range_of(node),
                hint="Compile a function that is written with def.",
            )
        _check_unchanged(inspect.unwrap(fn) if unwrap else fn, node, builder)
        return builder.function(node, signature_only=signature_only)

    problems = 0 if diagnostics is None else len(diagnostics.problems)
    definition = _read(fn, build, diagnostics, unwrap=unwrap)
    if is_kept and (diagnostics is None or len(diagnostics.problems) == problems):
        _DEFINITIONS[fn] = fn.__code__, definition
    return definition if name is None or name == definition.name.name else definition.with_name(name)


def _check_unchanged(
    fn: Callable[..., Any], node: ast.FunctionDef | ast.AsyncFunctionDef, builder: StatementBuilder
) -> None:
    """Check that ``node`` may be the definition of ``fn``. Python finds the source by its line, where another function
    is if lines were added to the file since it was imported.

    Raises:
        NotScriptableError: ``node`` has another name, or other parameters.
    """
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return
    parameters = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    # Private names are mangled in the tree and in the parameters of the code, but not in its name.
    if not node.name.endswith(code.co_name) or list(known) != parameters:
        raise NotScriptableError(
            f"The source of {describe(fn)} is not where it was: there is the function '{node.name}' now.",
            builder.range_of(node),
            hint="The file has changed since it was imported: import it again.",
        )


def class_def(cls: type, name: str | None = None, *, skip: Collection[str] = ()) -> ClassDef:
    """Return the definition of the Python class ``cls``, renamed to ``name`` if given, without the methods in ``skip``.

    The body holds the statements of the class in their order: assignments, annotations, methods, its docstring.
    Inherited members are not part of it.

    Raises:
        NotScriptableError: the source is not found, or is not a class definition.
        ParseError: the source is nested too deeply, or a type comment in it is invalid.
        UnsupportedError: the class has Python that programs cannot have.
    """

    def build(node: ast.stmt, builder: StatementBuilder) -> ClassDef:
        if not isinstance(node, ast.ClassDef):
            raise NotScriptableError(
                f"The source of {describe(cls)} is not a class definition.", builder.range_of(node)
            )
        return builder.class_definition(node, skip)

    definition = _read(cls, build)
    return definition if name is None or name == definition.name.name else definition.with_name(name)


_D = TypeVar("_D", Def, ClassDef)


def _read(
    obj: Any,
    build: Callable[[ast.stmt, StatementBuilder], _D],
    diagnostics: Diagnostics | None = None,
    *,
    unwrap: bool = True,
) -> _D:
    """Return the result of ``build`` on the one definition in the source of ``obj``.

    Raises:
        NotScriptableError: the source is not found, or is not a definition.
        ParseError: the source is nested too deeply.
    """
    source = source_of(obj, unwrap=unwrap)
    try:
        node = _parse(source, obj)
        mangle_private_names(node, source.text, obj)
        places = OffsetTable(source, first_line=2 if _is_indented(source) else 1)
        return build(node, StatementBuilder(source, places, diagnostics))
    except RecursionError:
        # Its traceback has a thousand frames and no information.
        raise too_deep(source.range(0, len(source.text))) from None


_WRAPPER = "if 1:\n"
"""Text before an indented definition, so that Python parses it unchanged: dedenting it would change multi-line
literals.
"""


def _is_indented(source: Source) -> bool:
    return source.text[:1] in (" ", "\t")


def _parse(source: Source, obj: Any) -> ast.stmt:
    """Return the node of the one definition in ``source``, which is that of ``obj``.

    Raises:
        NotScriptableError: Python cannot parse the source by itself.
    """
    indented = _is_indented(source)
    text = _WRAPPER + source.text if indented else source.text
    try:
        body = _parse_quietly(text).body if "\\" in text else ast.parse(text).body
    except SyntaxError as error:
        raise NotScriptableError(
            f"The source of {describe(obj)} does not stand alone as a definition: {error.msg}.",
            source.range(0, len(source.text)),
            hint="If the file has changed since it was imported, import it again. "
            "Write functions with def, on lines of their own.",
        ) from error
    if indented:
        assert isinstance(body[0], ast.If)
        body = body[0].body
    return body[0]


def _parse_quietly(text: str) -> ast.Module:
    """Return ``ast.parse`` without its warnings of invalid escapes: Python reported them when it imported the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


# -------------------------------------------------------------------------------------------------------------- lambdas


def lambda_def(fn: Any, diagnostics: Diagnostics | None = None) -> Def | None:
    """Return a function definition equivalent to the lambda ``fn``. Return None if its file cannot be parsed or has no
    such lambda on its line, or if another one there cannot be distinguished from it."""
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
    """Return whether the code object was compiled from the body of this lambda, according to the positions that code
    objects store since Python 3.11; False before."""
    if sys.version_info < (3, 11):
        return False
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column is not None]
    body = node.body
    end = (body.end_lineno or body.lineno, body.end_col_offset or body.col_offset)
    behind = [place for place in places if place >= (body.lineno, body.col_offset)]
    return bool(behind) and all(place < end for place in behind)
