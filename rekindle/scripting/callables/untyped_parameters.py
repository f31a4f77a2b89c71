"""Untyped parameters of Python functions: ``*args``, ``**kwargs``, and those whose annotation is not a type of
programs, such as ``Optional[Cache]``, ``Callable`` or ``Iterable``.

Calls from programs determine their types (:mod:`rekindle.scripting.callables.generic_functions`). If Python calls the
compiled function, nothing determines them, and each has its default as a fixed value.
"""

from __future__ import annotations

import builtins
import collections.abc
import enum
import types
import typing
import weakref
from collections.abc import Mapping
from typing import Any, Final, ForwardRef

import torch

from rekindle.errors import CompileError, Source
from rekindle.frontend.functions import Known
from rekindle.frontend.statements.error_recovery import names_in
from rekindle.frontend.sugared_values.keyword_arguments import KeywordArguments
from rekindle.frontend.sugared_values.values import SugaredTuple
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.ir.types import NONE, Type
from rekindle.scripting.annotations import annotations_of, find_type
from rekindle.scripting.resolver import PythonResolver
from rekindle.syntax.parser import parse_expression
from rekindle.syntax.views import Def, Param


def is_callable(annotation: object) -> bool:
    """Return whether an annotation is a function type, ``Callable[[int], int]``, or has one as a part, such as an
    Optional of one. A string is if it contains ``Callable``."""
    if isinstance(annotation, str):
        return "Callable" in annotation
    if annotation is typing.Callable or annotation is collections.abc.Callable:
        return True
    if typing.get_origin(annotation) is collections.abc.Callable:
        return True
    return any(is_callable(part) for part in typing.get_args(annotation) if part is not type(None))


_KINDS_OF_CONTAINERS: Final = (
    *(collections.abc.Iterable, collections.abc.Sequence, collections.abc.Collection, collections.abc.Container),
    *(typing.Iterable, typing.Sequence, typing.Collection, typing.Container),
)

_PLAIN: Final = frozenset(map(id, (torch.Tensor, int, float, bool, str, complex, None, type(None))))
_MADE_OF_OTHERS: Final = (list, dict, tuple, typing.Union, types.UnionType)


def _is_plain(annotation: object) -> bool:
    """Return whether an annotation is a type of programs that needs no further lookup, such as
    ``Optional[List[Tensor]]``."""
    if id(annotation) in _PLAIN:
        return True
    if isinstance(annotation, (type, str)):
        return False
    parts = typing.get_args(annotation)
    return bool(parts) and typing.get_origin(annotation) in _MADE_OF_OTHERS and all(map(_is_plain, parts))


def is_untyped(annotation: object, resolver: PythonResolver) -> bool:
    """Return whether an annotation is not a type of programs: it denotes a function, any container, or a Python object.
    Return False for an enum, and for a string that is not an expression or has an undefined name: other code reports
    their errors."""
    if is_callable(annotation) or any(annotation is kind for kind in _KINDS_OF_CONTAINERS):
        return True
    try:
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        if not isinstance(annotation, str):
            return find_type(annotation, resolver=resolver) is None
        expr = parse_expression(Source(annotation))
    except CompileError:
        is_enum = isinstance(annotation, type) and issubclass(annotation, enum.Enum)
        return not isinstance(annotation, str) and not is_enum
    try:
        parse_type_expression(expr, resolver)
    except CompileError:
        return all(resolver.knows(name) or hasattr(builtins, name) for name in names_in(expr))
    return False


_found: weakref.WeakKeyDictionary[types.FunctionType, frozenset[str]] = weakref.WeakKeyDictionary()


def open_parameters(function: types.FunctionType) -> frozenset[str]:
    """Return the names of the parameters whose annotations do not specify a type of programs, and ``return`` if the
    return annotation does not. Parameters without an annotation are not included."""
    known = _found.get(function)
    if known is None:
        unclear = {name: item for name, item in annotations_of(function).items() if not _is_plain(item)}
        resolver = PythonResolver.of_function(function) if unclear else None
        known = _found[function] = frozenset(
            name for name, item in unclear.items() if resolver is not None and is_untyped(item, resolver)
        )
    return known


def without_open(definition: Def, function: types.FunctionType) -> Def:
    """Return the definition without the annotations that do not specify a type: those that :func:`open_parameters`
    returns, except those of ``*args`` and ``**kwargs``."""
    names = open_parameters(function)
    if not names:
        return definition
    params = [
        Param.create(param.range, param.name, None, param.default, param.kwarg_only)
        if param.name.name in names and not param.is_variadic
        else param
        for param in definition.params
    ]
    result = None if "return" in names else definition.return_type
    return Def.create(definition.range, definition.name, params, result, definition.body)


def closed(
    definition: Def,
    function: types.FunctionType,
    defaults: Mapping[str, Any],
    resolver: PythonResolver,
    *,
    is_method: bool,
) -> tuple[Def, dict[str, Type], dict[str, Known]]:
    """Return the definition with the parameters that Python can pass, the types of parameters that can only be None,
    and the values of the parameters removed from it.

    A parameter of :func:`open_parameters` is removed if it has a default, which becomes its value; with the default
    None it stays. Positional parameters after a removed one can only be passed by name. ``*args`` and ``**kwargs`` of
    methods are removed as empty, unless only ``self`` would be left: then nothing is removed. Other functions with them
    can only be called by compiled functions.
    """
    names = open_parameters(function)
    variadic = is_method and any(param.is_variadic for param in definition.params)
    if not names and not variadic:
        return definition, {}, {}
    only_none: dict[str, Type] = {}
    known: dict[str, Known] = {}
    params: list[Param] = []
    for param in definition.params:
        name = param.name.name
        if param.is_variadic and not is_method:
            params.append(param)
        elif param.takes_positional:
            known[name] = lambda range, graph: SugaredTuple([])
        elif param.takes_keywords:
            known[name] = lambda range, graph: KeywordArguments({})
        elif name in names and name in defaults and defaults[name] is None:
            only_none[name] = NONE
            params.append(param)
        elif name in names and name in defaults:
            known[name] = _default(defaults[name], resolver, name)
        elif known and not param.kwarg_only:  # the parameter before it was removed
            params.append(Param.create(param.range, param.name, param.annotation, param.default, True))
        else:
            params.append(param)
    if len(params) == 1 and variadic:
        return definition, {}, {}  # it takes nothing that it names
    result = None if "return" in names else definition.return_type
    return Def.create(definition.range, definition.name, params, result, definition.body), only_none, known


def _default(value: Any, resolver: PythonResolver, name: str) -> Known:
    return lambda range, graph: resolver.sugared(value, range, graph, name)
