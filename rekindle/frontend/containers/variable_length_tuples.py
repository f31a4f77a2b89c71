"""Tuples whose length is known at run time only: ``x.shape``, ``tuple(xs)``, ``outs = outs + (x,)`` in a loop.

In the IR they are lists, as in TorchScript; their types record that they are tuples in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError
from rekindle.frontend.calls.insertion import constant_int
from rekindle.frontend.calls.special_calls import emit_tuple_call, expect_arguments
from rekindle.frontend.containers.set_values import check_shown, is_shown_otherwise
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.literals import emit_tuple
from rekindle.frontend.expressions.primaries import call_builtin
from rekindle.frontend.python.formatting import text_of
from rekindle.frontend.statements.loops import list_of
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import convert_value, unpack_tuple
from rekindle.ir.types import INT, NONE, ListType, TupleType, Type, unify_all, unshaped, without_none
from rekindle.syntax.views import Apply, BinOp, Expr, TupleLiteral


def _tuple_call(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``tuple(xs)``. The tuple has a length known at compile time if ``xs`` has one."""
    inputs = expect_arguments(emitter, call, 0, 1)
    if not inputs:
        return emit_tuple_call(emitter, call, hint)
    wanted = None if hint is None else without_none(hint)
    wanted = ListType(wanted.element) if isinstance(wanted, ListType) else None
    item = inputs[0]
    source = emitter.emit_sugared(item, 1, wanted)
    if isinstance(source, SimpleValue) and isinstance(source.value.type, ListType):
        if source.value.type.python == "tuple":
            return source
        if source.value.node.kind == "prim::ListConstruct" and item.tree.kind == "list_literal":
            return _of_items(emitter, source.value.node.inputs, call.range)
    elif source.static_length is not None or (isinstance(source, SimpleValue) and _is_tuple(source.value.type)):
        elements = source.as_tuple(item.range, emitter.graph)
        return _of_items(emitter, [element.as_value(item.range, emitter.graph) for element in elements], call.range)
    made = list_of(emitter, call.range, source, wanted)
    if made.node.kind == "prim::ListConstruct" and made.node.inputs:
        return _of_items(emitter, made.node.inputs, call.range)
    return SimpleValue(as_tuple_type(made))


def _size_call(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``torch.Size(xs)``.

    Raises:
        TypeMismatchError: the elements are not ints.
    """
    inputs = expect_arguments(emitter, call, 0, 1)
    if not inputs:
        return SimpleValue(emitter.insert_node("prim::ListConstruct", call.range, [], [ListType(INT, "Size")]).output)
    made = list_of(emitter, call.range, emitter.emit_sugared(inputs[0], 1, ListType(INT)), ListType(INT))
    if made.type != ListType(INT):
        if made.node.kind == "prim::ListConstruct" and not made.node.inputs:
            made.set_type(ListType(INT))
        else:
            raise TypeMismatchError(f"torch.Size takes ints, got {made.type.annotation}", call.range)
    return SimpleValue(as_tuple_type(made, "Size"))


def _of_items(emitter: Emitter, items: Sequence[Value], range: SourceRange) -> SugaredValue:
    type = TupleType(tuple(item.type for item in items))
    return SimpleValue(emitter.insert_node("prim::TupleConstruct", range, list(items), [type]).output)


def emit_tuple_literal(emitter: Emitter, expr: Expr, targets: int, hint: Type | None) -> SugaredValue:
    wanted = None if hint is None else without_none(hint)
    open_type = wanted if isinstance(wanted, ListType) and wanted.is_tuple else None
    if open_type is not None and not TupleLiteral(expr.tree).items:
        return SimpleValue(emitter.insert_node("prim::ListConstruct", expr.range, [], [open_type]).output)
    found = emit_tuple(emitter, expr, hint)
    if not isinstance(found, SimpleValue):
        return found
    if isinstance(found.value.type, ListType):
        return SimpleValue(as_tuple_type(found.value))  # (*xs, 1)
    return found if open_type is None else SimpleValue(convert_value(emitter.graph, found.value, open_type, expr.range))


def operator_of_tuples(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    if is_open_tuple(lhs.type) or is_open_tuple(rhs.type):
        return _of_tuples(emitter, operator, lhs, rhs, expr)
    if operator == "*" and INT in (lhs.type, rhs.type) and emitter.graph.follows_python:
        repeated = lhs if rhs.type == INT else rhs
        return _repeated(emitter, repeated, rhs if repeated is lhs else lhs, expr.range)
    return None


def _repeated(emitter: Emitter, value: Value, times: Value, range: SourceRange) -> Value | None:
    """Emit ``value * times``, and return it. Return None if ``value`` is not a tuple, or has elements of several types
    and ``times`` is not a constant."""
    if not isinstance(value.type, TupleType):
        return None
    elements = tuple(map(unshaped, value.type.elements))
    if not elements:
        return value
    items = unpack_tuple(emitter.graph, value, range)
    common, count = unify_all(elements), constant_int(times)
    if common is not None and (common != NONE or count is None):
        made = emitter.insert_node("prim::ListConstruct", range, items, [ListType(common)]).output
        return as_tuple_type(call_builtin(emitter, "aten::mul", range, made, times))
    if count is None or count * len(items) > _MAX_ITEMS:
        return None
    return emitter.insert_node(
        "prim::TupleConstruct", range, items * count, [TupleType(elements * max(count, 0))]
    ).output


def _of_tuples(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    open_type = lhs.type if is_open_tuple(lhs.type) else rhs.type
    assert isinstance(open_type, ListType)
    sides = [_beside(emitter, value, open_type, expr.range) for value in (lhs, rhs)]
    lists = [side for side in sides if side is not None]
    if operator == "+" and len(lists) == 2:
        joined = call_builtin(emitter, "aten::add", expr.range, *lists)
        is_size = any(isinstance(v.type, ListType) and v.type.python == "Size" for v in (lhs, rhs))
        return as_tuple_type(joined, "Size" if is_size else "tuple")
    if operator in ("==", "!=") and len(lists) == 2:
        return call_builtin(emitter, "aten::eq" if operator == "==" else "aten::ne", expr.range, *lists)
    if operator == "*" and INT in (lhs.type, rhs.type):
        return as_tuple_type(call_builtin(emitter, "aten::mul", expr.range, lhs, rhs), open_type.python)
    return None


def _beside(emitter: Emitter, value: Value, other: ListType, range: SourceRange) -> Value | None:
    """Return a tuple as a list of the type ``other``, for an operator on both; None if it is a NamedTuple, not a tuple,
    or has elements of other types."""
    if is_open_tuple(value.type):
        return value
    if not isinstance(value.type, TupleType) or value.type.fields is not None:
        return None
    elements = value.type.elements
    common = unify_all([unshaped(other.element), *map(unshaped, elements)])
    if common is None or common != unshaped(other.element):
        return None
    return emitter.insert_node(
        "prim::ListConstruct", range, unpack_tuple(emitter.graph, value, range), [ListType(common)]
    ).output


def text_of_value(emitter: Emitter, value: Value, range: SourceRange) -> Value:
    """Emit ``str(value)``, and return it.

    Raises:
        UnsupportedError: the string that Python has for the value cannot be computed.
    """
    if emitter.graph.follows_python and is_shown_otherwise(value.type):
        return text_of(emitter.graph, value, range)
    if emitter.graph.follows_python:
        check_shown("aten::str", [value.type], range)
    return call_builtin(emitter, "aten::str", range, value)


_MAX_ITEMS: Final = 100
"""The largest number of items of a repeated tuple whose length is known at compile time."""

FORMS: Final[dict[str, FormHandler]] = {
    "tuple": _tuple_call,
    "Size": _size_call,
}


def is_open_tuple(type: Type) -> bool:
    """Return whether ``type`` is a list type whose values are tuples of variable length in Python."""
    return isinstance(type, ListType) and type.is_tuple


def as_tuple_type(made: Value, python: str = "tuple") -> Value:
    """Change the type of ``made``, a new list, to that of a Python tuple of variable length; return it."""
    assert isinstance(made.type, ListType)
    return made.set_type(ListType(made.type.element, python))


def _is_tuple(type: Type) -> bool:
    return isinstance(type, TupleType)
