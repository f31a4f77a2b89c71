"""Python functions whose signatures do not specify all types of their parameters: they are compiled for the types of
the arguments of their calls."""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from rekindle.errors import SourceRange
from rekindle.frontend.calls.generic import GenericFunction
from rekindle.frontend.sugared_values.base import Keywords, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.attributes import infer_type
from rekindle.ir.graph import Graph
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import TENSOR, differs_in_python, unshaped
from rekindle.program.names import qualified_name
from rekindle.scripting.annotations import annotations_of
from rekindle.scripting.callables.decorators import check_decorators, unwrapped, within_managers
from rekindle.scripting.callables.overloads import overloads_of
from rekindle.scripting.callables.untyped_parameters import open_parameters, without_open
from rekindle.scripting.resolver import PythonResolver
from rekindle.scripting.signatures import annotated_types, default_arguments
from rekindle.syntax.python_ast import function_def

_CACHE: Final = "__rekindle_generic__"
ANY_ANNOTATIONS: Final = (Any, "Any", "typing.Any")
"""How a parameter is declared Any."""
_known: weakref.WeakKeyDictionary[types.FunctionType, bool] = weakref.WeakKeyDictionary()


def may_be_generic(function: types.FunctionType) -> bool:
    """Return whether parameter types may depend on the call: the function has no overloads, and has ``*args`` or
    ``**kwargs``, or parameters without a type or declared Any."""
    known = _known.get(function)
    if known is None:
        known = _known[function] = _ask(function)
    return known


def _ask(function: types.FunctionType) -> bool:
    _, inner = unwrapped(function)
    if overloads_of(function):
        return False
    if takes_any_number(inner):
        return True
    annotations, unsaid = annotations_of(inner), open_parameters(inner)
    return any(name in unsaid or annotations.get(name, Any) in ANY_ANNOTATIONS for name in _parameters(inner))


def takes_any_number(function: types.FunctionType) -> bool:
    """Return whether the function has ``*args`` or ``**kwargs``."""
    return bool(function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


def _parameters(function: types.FunctionType) -> Sequence[str]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def needs_call_types(
    function: types.FunctionType, args: Sequence[NamedValue], kwargs: Sequence[NamedValue], skipped: int = 0
) -> bool:
    """Return whether a call with these arguments determines parameter types: the function has ``*args``, ``**kwargs``
    or an annotation that is not a type, or a parameter without annotation gets an argument other than a tensor, or has
    a default, or one declared Any gets a value whose class only its type determines. The arguments start at parameter
    ``skipped``."""
    _, inner = unwrapped(function)
    if takes_any_number(inner):
        return True
    names = _parameters(inner)
    if not open_parameters(inner).isdisjoint(names):
        return True
    annotations = annotations_of(inner)
    given = list(zip(names[skipped:], args, strict=False)) + [(item.name or "", item) for item in kwargs]
    if any(_loses_class(annotations.get(name), item) for name, item in given):
        return True
    if annotations.keys() >= {*names[skipped:]}:
        return False  # the source need not be read
    definition = generic_function(function).definition
    assumed = {param.name.name for param in definition.params if param.annotation is None}
    if not assumed.isdisjoint(default_arguments(inner)):
        return True
    return any(name in assumed and not item.type.is_subtype_of(TENSOR) for name, item in given)


def _loses_class(annotation: object, given: NamedValue) -> bool:
    """Return whether a parameter with this annotation is declared Any, and the Python class of ``given`` would be
    unknown: a ``torch.Size`` is a list in programs, a dtype an int."""
    return annotation in ANY_ANNOTATIONS and differs_in_python(given.type)


def fits_assumptions(function: types.FunctionType, args: Sequence[NamedValue], kwargs: Sequence[NamedValue]) -> bool:
    """Return whether the arguments of a method call, ``self`` excluded, have the types that parameters without
    annotation are assumed to have: a tensor, or the type of the default. Return False if the method has ``*args``,
    ``**kwargs``, an annotation that is not a type, or the default None for a parameter without annotation."""
    _, inner = unwrapped(function)
    names = _parameters(inner)
    if takes_any_number(inner) or not open_parameters(inner).isdisjoint(names):
        return False
    defaults, annotated = default_arguments(inner), annotations_of(inner)
    if any(defaults[name] is None and name not in annotated for name in defaults):
        return False
    given = [*zip(names[1:], args, strict=False), *((item.name or "", item) for item in kwargs)]
    if any(_loses_class(annotated.get(name), item) for name, item in given):
        return False
    return all(
        item.type.is_subtype_of(TENSOR) if name not in defaults else unshaped(item.type) == infer_type(defaults[name])
        for name, item in given
        if name not in annotated
    )


def generic_function(function: types.FunctionType) -> GenericFunction:
    """Return the object that compiles ``function`` separately for each combination of argument types; always the same
    object for a function."""
    cached = vars(function).get(_CACHE)
    if isinstance(cached, tuple) and cached[0] is function:
        found: GenericFunction = cached[1]
        return found
    made = make_generic(function, qualified_name(function))
    setattr(function, _CACHE, (function, made))
    return made


def make_generic(
    function: types.FunctionType,
    name: str,
    forms: Mapping[str, SugaredValue] | None = None,
    names: Mapping[str, object] | None = None,
) -> GenericFunction:
    """Return a new object that compiles ``function`` separately for each combination of argument types, under ``name``.
    The function sees the sugared values ``forms`` and the Python objects ``names`` in addition to its scope."""
    check_decorators(function)
    managers, inner = unwrapped(function)
    definition = without_open(function_def(inner, unwrap=False), inner)
    if managers:
        definition, forms = within_managers(definition, managers, forms or {})
    resolver = PythonResolver.of_function(inner, forms=forms, names=names)
    declared, result = annotated_types(inner, definition, resolver)
    return GenericFunction(
        definition.name.name,
        definition,
        resolver,
        qualified_name=name.removeprefix("__torch__."),
        declared_types=declared,
        result=result,
    )


def call_generic(
    function: types.FunctionType,
    range: SourceRange,
    graph: Graph,
    args: Sequence[SugaredValue],
    kwargs: Keywords,
) -> SugaredValue:
    """Emit a call of the function, compiled for the types of these arguments; return the result.

    Raises:
        CompileError: the arguments do not fit the signature, or the function cannot be compiled for them.
    """
    return call_bound(generic_function(function), function, range, graph, args, kwargs)


def _default(value: object, name: str, range: SourceRange, graph: Graph, resolver: PythonResolver) -> SugaredValue:
    """Return the sugared value of the default of the parameter ``name``. A Tensor is a constant, as in a schema."""
    if isinstance(value, torch.Tensor) and not value.requires_grad:
        return SimpleValue(graph.insert_constant(value, range=range))
    return resolver.sugared(value, range, graph, name)


def call_bound(
    generic: GenericFunction,
    function: types.FunctionType,
    range: SourceRange,
    graph: Graph,
    args: Sequence[SugaredValue],
    kwargs: Keywords,
) -> SugaredValue:
    """Emit a call of the compiled version of ``function`` for the types of these arguments and its defaults; return the
    result. ``generic`` holds the versions, and compiles a new one if none fits."""
    resolver = generic.resolver
    assert isinstance(resolver, PythonResolver)
    given = default_arguments(unwrapped(function)[1])
    defaults = {name: _default(value, name, range, graph, resolver) for name, value in given.items()}
    return generic.call_compiled(range, graph, generic.bind(range, graph, args, kwargs, defaults))
