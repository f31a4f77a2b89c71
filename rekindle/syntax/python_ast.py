"""A live Python function or class -> the same tree that :mod:`rekindle.syntax.parser` reads from text.

Python's own parser does the reading; here its nodes become trees. The work of each half is in a file of its own:
expressions in :mod:`rekindle.syntax.python_expressions`, statements and definitions in
:mod:`rekindle.syntax.python_statements`.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from rekindle.errors import NotScriptableError, ParseError, Source
from rekindle.syntax.live_source import describe, source_of
from rekindle.syntax.python_expressions import Places
from rekindle.syntax.python_statements import StatementBuilder
from rekindle.syntax.refusals import refuse
from rekindle.syntax.views import ClassDef, Def

_D = TypeVar("_D", Def, ClassDef)


def function_def(fn: Callable[..., Any], name: str | None = None, *, signature_only: bool = False) -> Def:
    """The definition of the Python function or method ``fn``, under ``name`` where given.

    With ``signature_only`` the body is left empty, unread, and ``*args`` and ``**kwargs`` are left out: what is needed
    of a function that Python runs. Raises NotScriptableError where there is no source, UnsupportedError at what the
    language leaves out.
    """
    if getattr(fn, "__name__", "") == "<lambda>":
        raise NotScriptableError(
            f"{describe(fn)} is a lambda expression, which has no definition to compile.",
            hint="Write a named function with def.",
        )
    source = source_of(fn)
    node = _parse_definition(source, fn)
    builder = StatementBuilder(source, _places(source))
    if isinstance(node, ast.AsyncFunctionDef) and not signature_only:
        raise refuse("async_def", builder.range_of(node))
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise NotScriptableError(
            f"The source of {describe(fn)} is not a function definition.",
            source.range(0, len(source.text)),
            hint="Compile a function that is written with def.",
        )
    definition = _guarded(lambda: builder.function(node, signature_only=signature_only), builder, node)
    return definition if name is None or name == definition.name.name else definition.with_name(name)


def class_def(cls: type, name: str | None = None, *, skip: Collection[str] = ()) -> ClassDef:
    """The definition of the Python class ``cls``, under ``name`` where given, without the methods in ``skip``.

    The body holds the statements of the class in their order: assignments, annotations, methods, its docstring. What
    the class inherits is not part of it. Raises as :func:`function_def` does.
    """
    source = source_of(cls)
    node = _parse_definition(source, cls)
    builder = StatementBuilder(source, _places(source))
    if not isinstance(node, ast.ClassDef):
        raise NotScriptableError(
            f"The source of {describe(cls)} is not a class definition.", source.range(0, len(source.text))
        )
    definition = _guarded(lambda: builder.class_definition(node, skip), builder, node)
    return definition if name is None or name == definition.name.name else definition.with_name(name)


_WRAPPER = "if 1:\n"
"""Stands before the text of an indented definition, so that Python reads it as it is: taking the indentation off
would change the literals that go over several lines.
"""


def _is_indented(source: Source) -> bool:
    return source.text[:1] in (" ", "\t")


def _places(source: Source) -> Places:
    return Places(source, first_line=2 if _is_indented(source) else 1)


def _parse_definition(source: Source, obj: Any) -> ast.stmt:
    """The node of the one definition in ``source``."""
    text = _WRAPPER + source.text if _is_indented(source) else source.text
    try:
        with warnings.catch_warnings():
            # Python warned of what is odd in this file when it imported it.
            warnings.simplefilter("ignore")
            body = ast.parse(text).body
    except SyntaxError as error:
        raise NotScriptableError(
            f"The source of {describe(obj)} does not stand alone as a definition: {error.msg}.",
            source.range(0, len(source.text)),
            hint="If the file has changed since it was imported, import it again. "
            "Write functions with def, on lines of their own.",
        ) from error
    if _is_indented(source):
        assert isinstance(body[0], ast.If)
        body = body[0].body
    return body[0]


def _guarded(build: Callable[[], _D], builder: StatementBuilder, node: ast.stmt) -> _D:
    """``build()``, with a clear error where the definition nests more deeply than Python's stack allows."""
    try:
        return build()
    except RecursionError:
        # The traceback of the RecursionError holds thousands of frames and tells nothing.
        raise ParseError(
            "This definition is nested too deeply.",
            builder.range_of(node),
            hint="Give names to intermediate results, or move inner blocks into functions of their own.",
        ) from None


def has_source(obj: Any) -> bool:
    """Whether :func:`function_def` or :func:`class_def` would find source for ``obj``."""
    try:
        inspect.getsourcelines(obj)
    except (OSError, TypeError):
        return False
    return True
