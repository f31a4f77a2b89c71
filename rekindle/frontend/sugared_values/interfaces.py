"""Declarations of interfaces: classes whose methods have signatures, but no bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rekindle.errors import Cause, SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.signatures import TypeOrError, declare_schema
from rekindle.frontend.sugared_values.base import Resolver, SugaredValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import InterfaceType, Type
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import Apply, Def, ExprStmt, Raise, Stmt, Var

_NO_BODY: Final = ("pass", "string_literal", "dots")


def interface_schema(
    owner: InterfaceType,
    definition: Def,
    resolver: Resolver,
    *,
    defaults: Mapping[str, object] | None = None,
    parameter_types: Mapping[str, TypeOrError] | None = None,
    return_type: TypeOrError | None = None,
) -> FunctionSchema:
    """Return the schema of a method of the interface ``owner``, whose first parameter is an object of the interface.

    Raises:
        UnsupportedError: the method has a body, takes no self, or does not declare its result type.
        CompileError: an annotation is not a type, or a default is not a literal.
    """
    name, range = definition.name.name, definition.name.range
    if not definition.params:
        raise UnsupportedError(f"the method '{name}' takes no self", range, cause=Cause.INVALID_CLASS)
    if return_type is None and definition.return_type is None:
        raise UnsupportedError(
            f"the method '{name}' of the interface '{basename(owner)}' does not say what it returns",
            range,
            hint=f"annotate the result: def {name}(self, …) -> Tensor",
            cause=Cause.INVALID_CLASS,
        )
    for statement in definition.body:
        if not _says_nothing(statement):
            raise UnsupportedError(
                f"the method '{name}' of the interface '{basename(owner)}' has a body, which nothing would run",
                statement.range,
                hint="write 'pass' for it, and the body in the classes that have the method",
                cause=Cause.INVALID_CLASS,
            )
    schema = declare_schema(
        definition, resolver, defaults=defaults, parameter_types=parameter_types, return_type=return_type
    )
    itself = Argument(definition.params[0].name.name, owner)
    return FunctionSchema(name, "", (itself, *schema.arguments[1:]), schema.returns)


def basename(interface: InterfaceType) -> str:
    """Return the name of an interface without its module."""
    return interface.name.rpartition(".")[2]


def _says_nothing(statement: Stmt) -> bool:
    """Return whether a statement may be the body of an interface's method: ``pass``, ``...``, a docstring or ``raise
    NotImplementedError``."""
    tree = statement.tree
    if tree.kind == Raise.KIND:
        return _is_not_implemented(Raise(tree).value.tree)
    if tree.kind == ExprStmt.KIND:
        tree = ExprStmt(tree).expr.tree
    return tree.kind in _NO_BODY


def _is_not_implemented(tree: Tree) -> bool:
    if tree.kind == Apply.KIND:
        tree = Apply(tree).callee.tree
    return tree.kind == Var.KIND and Var(tree).name.name == "NotImplementedError"


class InterfaceValue(SugaredValue):
    """An interface that the program refers to by name: a type without a constructor."""

    def __init__(self, type: InterfaceType) -> None:
        self.type = type

    @property
    def description(self) -> str:
        return f"the interface '{basename(self.type)}'"

    def as_type(self, range: SourceRange) -> Type:
        return self.type

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise TypeMismatchError(f"{self.description} cannot be used as a value", range)
