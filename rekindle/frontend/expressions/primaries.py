"""Emit names, attributes and lambdas, and helpers that several kinds of expressions share."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.errors import (
    CompileError,
    SourceRange,
    TypeMismatchError,
)
from rekindle.frontend.calls.builtin_calls import insert_builtin_call
from rekindle.frontend.calls.generic import GenericFunction
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.inference.error_diagnosis import emit_for_errors
from rekindle.frontend.python.library import library_function
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.local_functions import LocalFunction, definition_of_lambda, free_names
from rekindle.frontend.sugared_values.special_forms import NewStyleString, ToList
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Value
from rekindle.ir.types import (
    INT,
    ListType,
    StringType,
    TensorType,
    Type,
    unify,
    unshaped,
)
from rekindle.syntax.views import (
    Def,
    Expr,
    Lambda,
    Select,
    Starred,
    Walrus,
)


def emit_walrus(emitter: Emitter, expr: Expr, targets: int, hint: Type | None) -> SugaredValue:
    walrus = Walrus(expr.tree)
    found = emitter.emit_sugared(walrus.value, 1, hint)
    emitter.environment.assign(walrus.target.name.name, walrus.target.range, found)
    return found


# --------------------------------------------------------------------------------- local functions


def local_function(emitter: Emitter, definition: Def) -> LocalFunction:
    """Return the sugared value of a nested function. Its defaults are emitted here, captured variables are read when it
    is called."""
    defaults = {
        param.name.name: emitter.emit_sugared(param.default) for param in definition.params if param.default is not None
    }
    frame = emitter.environment.frame
    variables = {name: frame.variable(name) for name in free_names(definition)}
    function = GenericFunction(definition.name.name, definition, emitter.resolver, is_local=True)
    return LocalFunction(function, emitter, variables, defaults)


# ---------------------------------------------------------------------------------------- literals


def values_of(emitter: Emitter, found: Sequence[tuple[Expr, SugaredValue]]) -> list[Value]:
    return [item.as_value(expr.range, emitter.graph) for expr, item in found]


def emit_sugared_values_of(
    emitter: Emitter, items: Sequence[Expr], hints: Sequence[Type | None]
) -> list[tuple[Expr, SugaredValue]]:
    """Emit the items; return their sugared values, each with its expression. Items that must be values of the graph are
    converted at once. Starred items are expanded.

    Raises:
        CompileError: an item cannot be compiled. Errors in the items after it are recorded too.
    """
    found: list[tuple[Expr, SugaredValue]] = []
    for index, (item, hint) in enumerate(zip(items, hints, strict=True)):
        try:
            known = emitter.starred.pop(id(item.tree), None)
            if item.tree.kind == Starred.KIND:
                elements = (known or emitter.emit_sugared(Starred(item.tree).value)).as_tuple(item.range, emitter.graph)
            else:
                elements = [known or emitter.emit_sugared(item, 1, hint)]
            found += [(item, _simplified(emitter, element, item)) for element in elements]
        except CompileError as error:
            emit_for_errors(emitter, items[index + 1 :], error, item)
    return found


def _simplified(emitter: Emitter, found: SugaredValue, expr: Expr) -> SugaredValue:
    if isinstance(found, SimpleValue) or found.is_passed_sugared:
        return found
    return SimpleValue(found.as_value(expr.range, emitter.graph))


# --------------------------------------------------------------------------------- names and calls


def emit_lambda(emitter: Emitter, expr: Expr, targets: int, hint: Type | None) -> SugaredValue:
    return local_function(emitter, definition_of_lambda(Lambda(expr.tree)))


def emit_select(emitter: Emitter, select: Expr, targets: int, hint: Type | None) -> SugaredValue:
    expr = Select(select.tree)
    name = expr.selector.name
    base = emitter.emit_sugared(expr.value)
    if name == "format" and isinstance(base, SimpleValue) and isinstance(base.value.type, StringType):
        return NewStyleString(base.value)
    if name == "tolist" and isinstance(base, SimpleValue) and isinstance(base.value.type, TensorType):
        return ToList(base.value)
    return attribute_of(emitter, base, expr, name)


def attribute_of(emitter: Emitter, base: SugaredValue, expr: Select, name: str) -> SugaredValue:
    """Emit ``base.name``, at the location of ``expr``, and return its sugared value."""
    for find in emitter.language.attributes:
        found = find(emitter, base, expr, name)
        if found is not None:
            return found
    return base.attribute(expr.range, emitter.graph, name)


def call_builtin(emitter: Emitter, kind: str, range: SourceRange, *values: Value) -> Value:
    """Emit a call of the builtin ``kind``, an operator or a function written in TorchScript, and return its result."""
    return insert_builtin_call(range, emitter.graph, kind, [emitter.argument(value, range) for value in values], [])


def join_types(emitter: Emitter, range: SourceRange, true: Value, false: Value, hint: Type | None = None) -> Type:
    """Return the common supertype of the values of two branches, at most as wide as ``hint``.

    Raises:
        TypeMismatchError: there is none.
    """
    found = unify(unshaped(true.type), unshaped(false.type), hint=hint)
    if found is None:
        raise TypeMismatchError(
            f"the branches of this expression have different types: {true.type.annotation} if the condition holds, "
            f"{false.type.annotation} if not",
            range,
            hint="convert one of them, or declare the variable that it is assigned to, for example x: Union[…] = …",
        )
    return found


def _holds_ints(type: Type) -> bool:
    return isinstance(type, ListType) and type.element == INT


def from_library(emitter: Emitter, name: str, range: SourceRange, *values: Value) -> Value:
    """Emit a call of a function of the prelude; return its result."""
    arguments = [SimpleValue(value) for value in values]
    return library_function(name).call_with(range, emitter.graph, arguments, {}).as_value(range, emitter.graph)
