"""The declarations of overloads of Python functions: ``@torch.jit._overload``.

.. code-block:: python

    @torch.jit._overload
    def size_of(x: int) -> int: ...


    @torch.jit._overload
    def size_of(x: List[int]) -> int: ...


    def size_of(x):
        return x if isinstance(x, int) else len(x)

PyTorch stores the declarations until ``torch.jit`` compiles the function, and removes them then. Declarations that were
removed before this module copied them are read from the source.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import os
import re
import types
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from rekindle.ir.types import Type
from rekindle.program import torch_jit
from rekindle.program.names import qualified_name
from rekindle.scripting.callables.current_storage import current_storage

Declaration: TypeAlias = "types.FunctionType | Mapping[str, Type] | None"
"""The difference between an overload and the function itself: a declaration with the signature, or types of
parameters."""

_declared: dict[str, list[Any]] = {}
"""Declarations that were seen, by the name of the function."""


def remember_overloads() -> None:
    """Copy the overloads that PyTorch has recorded to ``_declared``, since PyTorch removes them."""
    for name, declarations in torch_jit.overloaded_functions().items():
        known = _declared.setdefault(name, [])
        known.extend(declaration for declaration in declarations if declaration not in known)


remember_overloads()


def overloads_of(function: types.FunctionType) -> Sequence[types.FunctionType]:
    """Return the declarations of overloads that precede ``function`` in its file; empty if there are none. They are
    read from the source if PyTorch has removed its records of them."""
    remember_overloads()
    found = _declared.get(qualified_name(function), [])
    code = function.__code__
    return [
        declaration
        for declaration in found
        if declaration is not function
        and declaration.__code__.co_filename == code.co_filename
        and declaration.__qualname__ == function.__qualname__
        and declaration.__code__.co_firstlineno < code.co_firstlineno
    ] or list(_forgotten(function))


# -------------------------------------------------------------------------------------------------- those of the source

_DECLARATION: Final = re.compile(
    r"@[\w.]*\b_overload\b.*\n"  # the decorator, with a comment
    r"(?:[ \t]*(?:#.*)?\n|@.*\n)*"  # comments and other decorators
    r"def[ \t]+(\w+)"
)
_places: dict[str, tuple[list[str], list[tuple[str, int]]]] = {}
"""For each file its lines, and the declarations in it: the name, and the index of the first line."""

_FUTURES: Final = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def _forgotten(function: types.FunctionType) -> Iterator[types.FunctionType]:
    if "." in function.__qualname__:
        return
    code = function.__code__
    if function.__name__ not in _stored_names(code.co_filename, function.__globals__):
        return
    lines = linecache.getlines(code.co_filename, function.__globals__)
    for name, index in _declarations_in(code.co_filename, lines):
        if name == function.__name__ and index < code.co_firstlineno - 1:
            declaration = _declaration_at(index, lines, function)
            if declaration is not None:
                yield declaration


def _stored_names(filename: str, names: dict[str, Any]) -> Container[str]:
    """Return the names of the functions declared in a file: from disk, since a long file takes long to search in a
    process that compiles nothing."""
    if filename in _places or not current_storage:
        return _names_in(filename, names)
    try:
        status = os.stat(filename)
    except OSError:  # a file in an archive
        return _names_in(filename, names)
    key = f"overloads in {filename}, {status.st_mtime_ns}, {status.st_size}".encode()
    payload = current_storage[-1].load(key)
    if payload is not None:
        return payload.decode().split()
    found = _names_in(filename, names)
    entry = linecache.cache.get(filename, ())
    if len(entry) > 1 and tuple(entry[:2]) == (status.st_size, status.st_mtime):  # not the lines of an older file
        current_storage[-1].store(key, " ".join(sorted(found)).encode())
    return found


def _names_in(filename: str, names: dict[str, Any]) -> set[str]:
    lines = linecache.getlines(filename, names)
    return {name for name, _ in _declarations_in(filename, lines)}


def _declarations_in(filename: str, lines: list[str]) -> list[tuple[str, int]]:
    known = _places.get(filename)
    if known is None or known[0] is not lines:
        known = _places[filename] = (lines, list(_declarations("".join(lines))))
    return known[1]


def _declarations(text: str) -> Iterator[tuple[str, int]]:
    """Yield the name of each module-level function in ``text`` under a decorator called ``_overload``, and the index of
    the decorator's line."""
    line = counted = 0
    at = text.find("_overload")
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        found = _DECLARATION.match(text, start)
        if found is not None:
            line, counted = line + text.count("\n", counted, start), start
            yield found[1], line
        at = text.find("_overload", at + 1 if found is None else found.end())


def _declaration_at(index: int, lines: list[str], function: types.FunctionType) -> types.FunctionType | None:
    """Return the overload declared at a line, as a function without its decorators, whose definition is executed. None
    if no decorator is that of PyTorch's overloads, or the source cannot be parsed."""
    code, names = function.__code__, function.__globals__
    try:
        tree = ast.parse("".join(inspect.getblock(lines[index:])))
    except SyntaxError:  # the file has changed since it was imported
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return None
    if not any(torch_jit.is_overload_decorator(_value_of(decorator, names)) for decorator in definition.decorator_list):
        return None
    definition.decorator_list = []
    ast.increment_lineno(tree, index)
    made: dict[str, Any] = {}
    compiled = compile(tree, code.co_filename, "exec", code.co_flags & _FUTURES, dont_inherit=True)
    exec(compiled, names, made)  # noqa: S102 (what Python ran when it read the file)
    declaration: types.FunctionType = made[function.__name__]
    return declaration


def _value_of(expression: ast.expr, names: dict[str, Any]) -> object:
    """Return the object of a dotted name; None if it is not defined, and for other expressions."""
    if isinstance(expression, ast.Attribute):
        return getattr(_value_of(expression.value, names), expression.attr, None)
    return names.get(expression.id) if isinstance(expression, ast.Name) else None
