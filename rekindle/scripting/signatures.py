"""Declared parameters and results of Python functions: default arguments and annotations."""

from __future__ import annotations

import enum
import inspect
import re
import types
from typing import Any, Final, ForwardRef

from rekindle.errors import CompileError, UndefinedNameError
from rekindle.frontend.signatures import TypeOrError
from rekindle.frontend.sugared_values.base import Resolver
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.ir.types import Type
from rekindle.program.calling import fit_value
from rekindle.scripting.annotations import annotations_of, find_type, type_of_annotation
from rekindle.scripting.constants import plain
from rekindle.syntax.views import Def, Expr, Param


def default_arguments(function: types.FunctionType) -> dict[str, object]:
    """Return the values of the default arguments, by parameter. An enum member that is a number or a string is
    converted to it, unless the parameter is annotated as an enum."""
    return {
        name: parameter.default if _takes_member(parameter) else plain(parameter.default)
        for name, parameter in inspect.signature(function, follow_wrapped=False).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


_BUILTINS: Final = frozenset({"int", "float", "complex", "str"})


def _takes_member(parameter: inspect.Parameter) -> bool:
    """Return whether the default is an enum member that stays one, even if it is also a number or a string: the
    parameter has an annotation, which does not name ``int``, ``float``, ``complex`` or ``str``."""
    if not isinstance(parameter.default, enum.Enum) or parameter.annotation is inspect.Parameter.empty:
        return False
    annotation = parameter.annotation
    spelling = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return _BUILTINS.isdisjoint(re.findall(r"\w+", spelling))


def fits(value: object, type: TypeOrError | None) -> bool:
    """Return whether ``value``, a default, can be a value of ``type``; True if ``type`` is None or an error."""
    if type is None or isinstance(type, CompileError):
        return True
    try:
        fit_value(value, type, "")
    except TypeError:
        return False
    return True


def without_defaults(definition: Def, names: set[str]) -> Def:
    """Return the definition without the defaults of the parameters in ``names``."""
    if not names:
        return definition
    params = [
        Param.create(param.range, param.name, param.annotation, None, param.kwarg_only)
        if param.name.name in names
        else param
        for param in definition.params
    ]
    return Def.create(definition.range, definition.name, params, definition.return_type, definition.body)


def annotated_types(
    function: types.FunctionType, definition: Def, resolver: Resolver
) -> tuple[dict[str, TypeOrError], TypeOrError | None]:
    """Return the types of the parameters, by name, and of the result, as far as only the annotation objects determine
    them. The names in the source may have been imported differently, or be out of scope. Types that the source
    determines are left out. An annotation that is not a type is represented by its error."""
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
    """Return the types of all annotated parameters in the declaration of an overload, by name, and of its result. An
    annotation that is not a type is represented by its error."""
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
