"""Signatures: the parameters of a definition, with their types and defaults, and the type of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rekindle.errors import CompileError, Diagnostics, UnsupportedError
from rekindle.frontend.emitter import SelfBinding
from rekindle.frontend.sugared_values.base import Resolver
from rekindle.frontend.type_expressions import broadcast_size, parse_type_expression
from rekindle.ir.attributes import infer_type
from rekindle.ir.operators.schema import MISSING, Argument, FunctionSchema
from rekindle.ir.types import TENSOR, Type, optional
from rekindle.syntax.unsupported_syntax import refuse
from rekindle.syntax.views import Const, Def, Expr, Param


def declare_schema(
    definition: Def,
    resolver: Resolver,
    *,
    name: str | None = None,
    self_binding: SelfBinding | None = None,
    defaults: Mapping[str, object] | None = None,
    parameter_types: Mapping[str, TypeOrError] | None = None,
    return_type: TypeOrError | None = None,
) -> FunctionSchema:
    """Return the declared schema of the definition, before its body is compiled.

    A parameter without a type has that of its default (``Optional[Tensor]`` for None), and is a Tensor without one.
    Without a declared result type the schema has no result. ``defaults``, ``parameter_types`` and ``return_type`` take
    precedence over the source.

    Raises:
        CompileError: an annotation is not a type, a default is not a literal, or a parameter is variadic.
            ``parameter_types`` and ``return_type`` may contain such an error, too.
    """
    diagnostics = Diagnostics()
    signature = read_signature(
        definition,
        resolver,
        diagnostics,
        name=name,
        self_binding=self_binding,
        defaults=defaults,
        parameter_types=parameter_types,
        return_type=return_type,
    )
    diagnostics.raise_all()
    return signature.schema


TypeOrError: TypeAlias = "Type | CompileError"
"""A type supplied by the caller, or the error of determining it."""

RESULT: Final = "return"
"""Key of the result among the names of parameters."""


@dataclass(slots=True)
class Signature:
    """A schema, and the names of the parameters whose types could not be determined; :data:`RESULT` stands for the
    result."""

    schema: FunctionSchema
    unresolved: set[str]


def read_signature(
    definition: Def,
    resolver: Resolver,
    diagnostics: Diagnostics,
    *,
    name: str | None = None,
    self_binding: SelfBinding | None = None,
    defaults: Mapping[str, object] | None = None,
    parameter_types: Mapping[str, TypeOrError] | None = None,
    return_type: TypeOrError | None = None,
) -> Signature:
    """Read a signature as :func:`declare_schema` does, but record errors in ``diagnostics``. A parameter with an error
    is a Tensor in the schema."""
    arguments: list[Argument] = []
    unresolved: set[str] = set()
    for position, param in enumerate(definition.params):
        name_of_param = param.name.name
        if position == 0 and self_binding is not None:
            arguments.append(Argument(name_of_param, self_binding.type))
            continue
        made = Argument(name_of_param, TENSOR, kwarg_only=param.kwarg_only)
        if param.is_variadic:
            diagnostics.add(refuse("varargs" if param.takes_positional else "kwargs", param.range))
            unresolved.add(name_of_param)
            arguments.append(made)
            continue
        declared = (parameter_types or {}).get(name_of_param)
        try:
            made = _declare_parameter(param, declared, resolver, defaults)
        except CompileError as error:
            diagnostics.add(error)
            unresolved.add(name_of_param)
        arguments.append(made)
    returns: tuple[Argument, ...] = ()
    try:
        type = _declared(return_type, definition.return_type, resolver)
        returns = () if type is None else (Argument("", type),)
    except CompileError as error:
        diagnostics.add(error)
        unresolved.add(RESULT)
    return Signature(FunctionSchema(name or definition.name.name, "", tuple(arguments), returns), unresolved)


def _declare_parameter(
    param: Param, declared: TypeOrError | None, resolver: Resolver, defaults: Mapping[str, object] | None
) -> Argument:
    type = _declared(declared, param.annotation, resolver)
    default = _default_of(param, defaults)
    if type is None and default is not MISSING:
        type = optional(TENSOR) if default is None else infer_type(default)
    size = None if param.annotation is None else broadcast_size(param.annotation)
    return Argument(param.name.name, type or TENSOR, default, param.kwarg_only, size=size, assumed=type is None)


def _declared(declared: TypeOrError | None, annotation: Expr | None, resolver: Resolver) -> Type | None:
    """Return the type that the caller supplies, or else that of the annotation; None if there is neither.

    Raises:
        CompileError: the caller supplies an error, or the annotation is not a type.
    """
    if isinstance(declared, CompileError):
        raise declared
    if declared is not None or annotation is None:
        return declared
    return parse_type_expression(annotation, resolver)


def _default_of(param: Param, defaults: Mapping[str, object] | None) -> object:
    if defaults is not None and param.name.name in defaults:
        return defaults[param.name.name]
    if param.default is None:
        return MISSING
    return literal_value(param.default)


def literal_value(expr: Expr) -> object:
    """Return the value of a literal as a Python object: a number, which may be negative, a string, a bool, None, or a
    list or tuple of literals.

    Raises:
        UnsupportedError: ``expr`` is not a literal.
    """
    kind = expr.tree.kind
    simple: dict[str, object] = {"none": None, "true": True, "false": False}
    if kind in simple:
        return simple[kind]
    if kind == "const":
        return Const(expr.tree).value
    if kind == "string_literal":
        return expr.tree.string(0)
    if kind == "unary_minus":
        value = literal_value(Expr(expr.tree.subtree(0)))
        if isinstance(value, (int, float, complex)):
            return -value
    if kind in ("list_literal", "tuple_literal"):
        items = [literal_value(Expr(item)) for item in expr.tree.subtree(0).subtrees()]
        return items if kind == "list_literal" else tuple(items)
    raise UnsupportedError("a default argument must be a literal here", expr.range)
