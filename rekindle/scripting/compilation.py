"""Compiles a Python function into a record: its source, its names, its defaults, its annotations."""

from __future__ import annotations

import enum
import inspect
import re
import types
from collections.abc import Mapping
from typing import Any, Final, ForwardRef

from rekindle.errors import CompileError, Diagnostics, UndefinedNameError
from rekindle.frontend.emitter import SelfBinding
from rekindle.frontend.functions import Known
from rekindle.frontend.signatures import TypeOrError
from rekindle.frontend.sugared_values.base import Resolver, SugaredValue
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import Type
from rekindle.program.calling import fit_value
from rekindle.program.sources.definition import define_function
from rekindle.scripting.annotations import annotations_of, find_type, type_of_annotation
from rekindle.scripting.callables import functions
from rekindle.scripting.callables.decorators import forwarding, unwrapped, within_managers
from rekindle.scripting.callables.untyped_parameters import closed
from rekindle.scripting.constants import plain
from rekindle.scripting.resolver import PythonResolver
from rekindle.syntax.python_ast import function_def
from rekindle.syntax.views import Def, Expr, Param


def compile_function(
    record: GraphFunction,
    function: types.FunctionType,
    declaration: functions.Declaration = None,
    *,
    self_binding: SelfBinding | None = None,
    forms: Mapping[str, SugaredValue] | None = None,
    names: Mapping[str, Any] | None = None,
    first: SugaredValue | None = None,
) -> None:
    """Compile ``function`` into ``record``, with the signature of ``declaration`` where it is overloaded.

    ``self_binding`` makes it a method, ``forms`` are names with a meaning of their own in it, ``names`` are objects
    that it may name though Python does not see them there, as a local class within its own annotations. ``first`` is
    what its first parameter always means, which is none of the record's then.

    Raises:
        CompileError: it cannot be compiled.
    """
    diagnostics = Diagnostics()
    with diagnostics.reporting():
        _compile(record, function, declaration, self_binding, forms, names, first, diagnostics)


def _compile(
    record: GraphFunction,
    function: types.FunctionType,
    declaration: functions.Declaration,
    self_binding: SelfBinding | None,
    forms: Mapping[str, SugaredValue] | None,
    names: Mapping[str, Any] | None,
    first: SugaredValue | None,
    diagnostics: Diagnostics,
) -> None:
    managers, function = unwrapped(function)
    forwarded = forwarding(function)
    if forwarded is not None:
        function, definition, forms = forwarded.function, forwarded.definition(record.basename), forwarded.names(forms)
    else:
        definition = function_def(function, record.basename, diagnostics=diagnostics, unwrap=False)
    if managers:
        definition, forms = within_managers(definition, managers, forms or {})
    if first is not None and definition.params:
        forms = {**(forms or {}), definition.params[0].name.name: first}
        rest = definition.params[1:]
        definition = Def.create(definition.range, definition.name, rest, definition.return_type, definition.body)
    resolver = PythonResolver.of_function(function, forms=forms, names=names)
    defaults = default_arguments(function)
    known: dict[str, Known] = {}
    if not isinstance(declaration, types.FunctionType):
        definition, only_none, known = closed(
            definition, function, defaults, resolver, is_method=self_binding is not None
        )
        parameters, result = annotated_types(function, definition, resolver)
        parameters.update({**only_none, **(declaration or {})})
    else:
        declared = function_def(declaration, signature_only=True)
        resolver_there = PythonResolver.of_function(declaration)
        parameters, result = declared_types(declaration, declared, resolver_there)
        defaults = {**defaults, **default_arguments(declaration)}
        unfit = {name for name, value in defaults.items() if not fits(value, parameters.get(name))}
        # What the implementation puts there for one overload may mean nothing to another, which then needs an argument.
        definition = without_defaults(definition, unfit)
        defaults = {name: value for name, value in defaults.items() if name not in unfit}
    define_function(
        record,
        definition,
        resolver,
        self_binding=self_binding,
        defaults=defaults,
        parameter_types=parameters,
        return_type=result,
        known=known,
        diagnostics=diagnostics,
    )


def default_arguments(function: types.FunctionType) -> dict[str, object]:
    """The values of the default arguments."""
    return {
        name: parameter.default if _takes_member(parameter) else plain(parameter.default)
        for name, parameter in inspect.signature(function, follow_wrapped=False).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


_BUILTINS: Final = frozenset({"int", "float", "complex", "str"})


def _takes_member(parameter: inspect.Parameter) -> bool:
    """Whether the default is a member of an enum and is told to be one, not the number or string that it is too."""
    if not isinstance(parameter.default, enum.Enum) or parameter.annotation is inspect.Parameter.empty:
        return False
    annotation = parameter.annotation
    told = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return _BUILTINS.isdisjoint(re.findall(r"\w+", told))


def fits(value: object, type: TypeOrError | None) -> bool:
    """Whether a default can stand for a parameter of the type, which may not be known."""
    if type is None or isinstance(type, CompileError):
        return True
    try:
        fit_value(value, type, "")
    except TypeError:
        return False
    return True


def without_defaults(definition: Def, names: set[str]) -> Def:
    """The definition in which the parameters called so have no default."""
    if not names:
        return definition
    params = [
        Param.create(param.range, param.name, param.annotation, None, param.kwarg_only)
        if param.name.name in names
        else param
        for param in definition.params
    ]
    return Def.create(definition.range, definition.name, params, definition.return_type, definition.body)


# ---------------------------------------------------------------------------------------------------------- annotations


def annotated_types(
    function: types.FunctionType, definition: Def, resolver: Resolver
) -> tuple[dict[str, TypeOrError], TypeOrError | None]:
    """The types of parameters and result that only the annotation objects tell, not the names in the source: names may
    have been imported differently, or be out of reach by now."""
    found: dict[str, TypeOrError] = {}
    for parameter in definition.params:
        if parameter.annotation is not None:
            type = _rescued(parameter.annotation, function, parameter.name.name, resolver)
            if type is not None:
                found[parameter.name.name] = type
    result = None
    if definition.return_type is not None:
        result = _rescued(definition.return_type, function, "return", resolver)
    return found, result


def _rescued(expr: Expr, function: types.FunctionType, name: str, resolver: Resolver) -> TypeOrError | None:
    try:
        return _rescue(expr, function, name, resolver)
    except CompileError as error:
        return error


def _rescue(expr: Expr, function: types.FunctionType, name: str, resolver: Resolver) -> Type | None:
    try:
        parse_type_expression(expr, resolver)
    except CompileError as error:
        annotation = _annotation(function, name)
        if annotation is None or isinstance(annotation, (str, ForwardRef)):
            raise
        if isinstance(error, UndefinedNameError):
            return type_of_annotation(annotation, expr.range, resolver)
        found = find_type(annotation, expr.range, resolver)
        if found is None:
            raise
        return found
    return None


def _annotation(function: types.FunctionType, name: str) -> Any:
    return annotations_of(function).get(name)


def declared_types(
    declaration: types.FunctionType, definition: Def, resolver: Resolver
) -> tuple[dict[str, TypeOrError], TypeOrError | None]:
    """All the types that the declaration of an overload tells."""
    rescued, result = annotated_types(declaration, definition, resolver)
    for parameter in definition.params:
        name = parameter.name.name
        if parameter.annotation is not None and name not in rescued:
            rescued[name] = _declared(parameter.annotation, resolver)
    if result is None and definition.return_type is not None:
        result = _declared(definition.return_type, resolver)
    return rescued, result


def _declared(expr: Expr, resolver: Resolver) -> TypeOrError:
    try:
        return parse_type_expression(expr, resolver)
    except CompileError as error:
        return error


functions.define_python_function = compile_function
