"""Python functions that do not say themselves all that they take: they are compiled for what their calls give them."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rekindle.errors import SourceRange
from rekindle.frontend.generic import GenericFunction
from rekindle.frontend.sugared import Keywords, SugaredValue
from rekindle.ir.graph import Graph
from rekindle.ir.matching import CallArgument
from rekindle.ir.types import TENSOR
from rekindle.program.names import qualified_name
from rekindle.scripting import python_values
from rekindle.scripting.annotations import annotations_of
from rekindle.scripting.compilation import annotated_types, default_arguments, unwrapped
from rekindle.scripting.functions import overloads_of
from rekindle.scripting.resolver import PythonResolver
from rekindle.syntax.python_ast import function_def
from rekindle.syntax.views import Def, Param

_KEPT: Final = "__rekindle_generic__"
_known: weakref.WeakKeyDictionary[types.FunctionType, bool] = weakref.WeakKeyDictionary()


def may_be_generic(function: types.FunctionType) -> bool:
    """Whether calls may have to tell what the function takes: it has ``*args`` or ``**kwargs``, or parameters of which
    it says no type."""
    known = _known.get(function)
    if known is None:
        known = _known[function] = _ask(function)
    return known


def _ask(function: types.FunctionType) -> bool:
    managers, inner = unwrapped(function)
    if managers or overloads_of(function):
        return False
    if takes_any_number(inner):
        return True
    annotations = annotations_of(inner)
    return any(name not in annotations or is_open(annotations[name]) for name in _parameters(inner))


def takes_any_number(function: types.FunctionType) -> bool:
    """Whether it has ``*args`` or ``**kwargs``."""
    return bool(function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


def _parameters(function: types.FunctionType) -> Sequence[str]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def is_callable(annotation: object) -> bool:
    """Whether an annotation asks for a function: ``Callable[[int], int]``, also as an Optional."""
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


def is_open(annotation: object) -> bool:
    """Whether an annotation says no type: it asks for a function, or for a container of whatever it may be."""
    return is_callable(annotation) or any(annotation is kind for kind in _KINDS_OF_CONTAINERS)


def says_too_little(
    function: types.FunctionType, args: Sequence[CallArgument], kwargs: Sequence[CallArgument], skipped: int = 0
) -> bool:
    """Whether the call has to tell what the function takes: it is given something else than Tensors, or has defaults,
    where it says nothing. The first ``skipped`` parameters do not count."""
    _, inner = unwrapped(function)
    if takes_any_number(inner):
        return True
    annotations = annotations_of(inner)
    names = _parameters(inner)
    if any(is_open(annotations.get(name)) for name in names):
        return True
    definition = generic_function(function).definition
    assumed = {param.name.name for param in definition.params if param.annotation is None}
    if not assumed.isdisjoint(default_arguments(inner)):
        return True
    given = list(zip(names[skipped:], args, strict=False)) + [(item.name or "", item) for item in kwargs]
    return any(name in assumed and not item.type.is_subtype_of(TENSOR) for name, item in given)


def generic_function(function: types.FunctionType) -> GenericFunction:
    """The function as one that is compiled for what it is given; the same at each call."""
    kept = vars(function).get(_KEPT)
    if isinstance(kept, tuple) and kept[0] is function:
        found: GenericFunction = kept[1]
        return found
    made = make_generic(function, qualified_name(function))
    setattr(function, _KEPT, (function, made))
    return made


def make_generic(
    function: types.FunctionType, name: str, forms: Mapping[str, SugaredValue] | None = None
) -> GenericFunction:
    """The function as one that is compiled for what it is given, with names that mean something of their own in it."""
    _, inner = unwrapped(function)
    definition = _without_open(function_def(inner), annotations_of(inner))
    resolver = PythonResolver.of_function(inner, forms=forms)
    told, result = annotated_types(inner, definition, resolver)
    return GenericFunction(
        definition.name.name,
        definition,
        resolver,
        qualified_name=name.removeprefix("__torch__."),
        told=told,
        result=result,
    )


def _without_open(definition: Def, annotations: Mapping[str, object]) -> Def:
    """The definition without annotations that ask for a container of whatever it may be."""
    params = [
        Param.create(param.range, param.name, None, param.default, param.kwarg_only)
        if any(annotations.get(param.name.name) is kind for kind in _KINDS_OF_CONTAINERS)
        else param
        for param in definition.params
    ]
    return Def.create(definition.range, definition.name, params, definition.return_type, definition.body)


def call_generic(
    function: types.FunctionType,
    range: SourceRange,
    graph: Graph,
    args: Sequence[SugaredValue],
    kwargs: Keywords,
) -> SugaredValue:
    """Call the function, compiled for these arguments."""
    return call_bound(generic_function(function), function, range, graph, args, kwargs)


def call_bound(
    generic: GenericFunction,
    function: types.FunctionType,
    range: SourceRange,
    graph: Graph,
    args: Sequence[SugaredValue],
    kwargs: Keywords,
) -> SugaredValue:
    """Call what was made of ``function``, whose defaults count."""
    given: dict[str, Any] = default_arguments(unwrapped(function)[1])
    defaults = {
        name: python_values.sugared_value(value, range, graph, generic.resolver, name) for name, value in given.items()
    }
    return generic.call_compiled(range, graph, generic.bind(range, graph, args, kwargs, defaults))


python_values.generic = python_values.Generic(may_be_generic, says_too_little, call_generic)
