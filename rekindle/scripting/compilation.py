"""Compiles a Python function into a record: its source, its names, its defaults, its annotations."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from typing import Any

from rekindle.errors import CompileError
from rekindle.frontend.emission import SelfBinding
from rekindle.frontend.sugared import Resolver, SugaredValue
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.ir.records import FunctionRecord
from rekindle.ir.types import Type
from rekindle.program.definition import define_function
from rekindle.scripting import functions
from rekindle.scripting.annotations import find_type
from rekindle.scripting.python_values import plain
from rekindle.scripting.resolver import PythonResolver
from rekindle.syntax.python_ast import function_def
from rekindle.syntax.views import Def, Expr


def compile_function(
    record: FunctionRecord, function: types.FunctionType, declaration: types.FunctionType | None = None
) -> None:
    """Compile ``function`` into ``record``, with the signature of ``declaration`` where it is overloaded."""
    compile_with(record, function, declaration)


def compile_with(
    record: FunctionRecord,
    function: types.FunctionType,
    declaration: types.FunctionType | None = None,
    *,
    self_binding: SelfBinding | None = None,
    forms: Mapping[str, SugaredValue] | None = None,
) -> None:
    """As :func:`compile_function`; ``self_binding`` makes it a method, ``forms`` are names with a meaning of their own in it."""
    function = innermost(function)
    definition = function_def(function, record.basename)
    resolver = PythonResolver.of_function(function, forms=forms)
    defaults = default_arguments(function)
    if declaration is None:
        parameters, result = annotated_types(function, definition, resolver)
    else:
        declared = function_def(declaration, signature_only=True)
        resolver_there = PythonResolver.of_function(declaration)
        parameters, result = declared_types(declaration, declared, resolver_there)
        defaults = {**defaults, **default_arguments(declaration)}
    define_function(
        record,
        definition,
        resolver,
        self_binding=self_binding,
        defaults=defaults,
        parameter_types=parameters,
        return_type=result,
    )


def innermost(function: types.FunctionType) -> types.FunctionType:
    """The function that decorators have wrapped; they are Python's affair."""
    found: Any = inspect.unwrap(function)
    return found if isinstance(found, types.FunctionType) else function


def default_arguments(function: types.FunctionType) -> dict[str, object]:
    """The values of the default arguments."""
    return {
        name: plain(parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


# ------------------------------------------------------------------------------------------------------------------ annotations


def annotated_types(
    function: types.FunctionType, definition: Def, resolver: Resolver
) -> tuple[dict[str, Type], Type | None]:
    """The types of parameters and result that only the annotation objects tell, not the names in the source: names may have been
    imported differently, or be out of reach by now."""
    found: dict[str, Type] = {}
    for parameter in definition.params:
        if parameter.annotation is not None:
            type = _rescued(parameter.annotation, function, parameter.name.name, resolver)
            if type is not None:
                found[parameter.name.name] = type
    result = None
    if definition.return_type is not None:
        result = _rescued(definition.return_type, function, "return", resolver)
    return found, result


def _rescued(expr: Expr, function: types.FunctionType, name: str, resolver: Resolver) -> Type | None:
    try:
        parse_type_expression(expr, resolver)
    except CompileError:
        annotation = _annotation(function, name)
        if annotation is None or isinstance(annotation, str):
            raise
        type = find_type(annotation, expr.range, resolver)
        if type is None:
            raise
        return type
    return None


def _annotation(function: types.FunctionType, name: str) -> Any:
    try:
        return function.__annotations__.get(name)
    except NameError:  # evaluated when asked for, since Python 3.14
        return None


def declared_types(
    declaration: types.FunctionType, definition: Def, resolver: Resolver
) -> tuple[dict[str, Type], Type | None]:
    """All the types that the declaration of an overload tells."""
    rescued, result = annotated_types(declaration, definition, resolver)
    for parameter in definition.params:
        name = parameter.name.name
        if parameter.annotation is not None and name not in rescued:
            rescued[name] = parse_type_expression(parameter.annotation, resolver)
    if result is None and definition.return_type is not None:
        result = parse_type_expression(definition.return_type, resolver)
    return rescued, result


functions.define_python_function = compile_function
