"""Conversion of returned values to the declared result type."""

from __future__ import annotations

from collections.abc import Callable

from rekindle.errors import SourceRange, TypeMismatchError
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.inference.usage_inference import learn_type
from rekindle.ir.node import Value
from rekindle.ir.operators.declared_bools import as_declared_bool
from rekindle.ir.operators.schema_matching import convert_value
from rekindle.ir.types import (
    NONE,
    TENSOR,
    TupleType,
    Type,
    lost_class,
    mismatch_note,
    number_beside_tensor,
    present,
    without_none,
)
from rekindle.syntax.views import Return


def as_declared(emitter: Emitter, value: Value, declared: Type, statement: Return) -> Value:
    """Return the value of a ``return`` statement, converted to the declared type. A value that may be None is checked
    at run time.

    Raises:
        TypeMismatchError: the value cannot be of that type.
    """
    if number_beside_tensor(value.type) is not None and without_none(declared) == TENSOR:
        value = emitter.present(value, statement.range, _other_result(value.type, declared))
    value = as_declared_bool(emitter.graph, value, declared, statement.range)
    if not (value.type == NONE and declared == TENSOR):
        value = convert_value(emitter.graph, value, declared, statement.range)
    if not value.type.is_subtype_of(declared) and present(value.type).is_subtype_of(declared):
        value = emitter.present(value, statement.range, _no_result(declared))
    elif isinstance(declared, TupleType) and value.node.kind == "prim::TupleConstruct":
        value = with_present_items(
            emitter, value, declared, statement.range, lambda given: _other_result(given, declared)
        )
    if not value.type.is_subtype_of(declared):
        learn_type(emitter, statement.value, declared)
        raise TypeMismatchError(
            f"the function is declared to return {declared.annotation}, "
            f"but this returns {value.type.annotation}{mismatch_note(value.type, declared)}",
            statement.range,
        )
    lost = lost_class(value.type, declared)
    if lost is not None:
        raise TypeMismatchError(f"the function gives {declared.annotation}, and {lost}", statement.range)
    return value


def _other_result(given: Type, declared: Type) -> str:
    if number_beside_tensor(given) is None:
        return _no_result(declared)
    return f"the function is declared to return {declared.annotation}, but returns a value of type NoneType"


def _no_result(declared: Type) -> str:
    return f"the function is declared to return {declared.annotation}, but returns None"


def with_present_items(
    emitter: Emitter, value: Value, declared: TupleType, range: SourceRange, message: Callable[[Type], str]
) -> Value:
    """Return a tuple with the checks that its items need to have their ``declared`` types: of items that may be None,
    or numbers instead of Tensors. ``message`` gives the error message for the type of an item."""
    items = list(value.node.inputs)
    if len(items) != len(declared.elements) or value.type.is_subtype_of(declared):
        return value
    for index, (item, wanted) in enumerate(zip(items, declared.elements, strict=True)):
        if not item.type.is_subtype_of(wanted) and present(item.type).is_subtype_of(wanted):
            items[index] = emitter.present(item, range, message(item.type))
    type = value.type.with_contained([item.type for item in items])
    return emitter.insert_node("prim::TupleConstruct", range, items, [type]).output
