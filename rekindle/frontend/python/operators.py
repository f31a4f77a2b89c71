"""Emit Python's binary operators on types for which TorchScript has no operator, as compositions of other operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.calls.insertion import constant_int
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.number_arithmetic import (
    INT_OR_FLOAT,
    as_float,
    emit_open_arithmetic,
    is_real,
)
from rekindle.frontend.expressions.operators import binary
from rekindle.frontend.expressions.primaries import from_library
from rekindle.frontend.scopes.refinement import RefinementSet
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import unpack_tuple
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUMBER,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    ListType,
    NoneType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionBase,
    is_open_number,
    join_values,
    union_members,
    unshaped,
    without_none,
)
from rekindle.syntax.views import (
    BinOp,
    Expr,
)

_LISTS_COMPARED: Final = {"<": (False, False), "<=": (False, True), ">": (True, False), ">=": (True, True)}
"""For a comparison of lists as ``less_lists``: whether the operands are exchanged, and the result for equal lists."""


_CHANGED_PLACES: Final = {"+": "+", "*": "*", "==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""For ``x operator y``, the operator with which ``y operator x`` has the same result."""

_WHOLE: Final = (INT, BOOL)
_TYPED_NUMBERS: Final = (INT, FLOAT, COMPLEX)
REAL_KINDS: Final = frozenset({"BoolType", "IntType", "FloatType", "NumberType"})

_NO_VALUES: Final = frozenset({"starred", "generator", "list_comp", "set_comp"})
"""Kinds of argument expressions that have no value of their own: the function called emits them."""


def joined_element(types: Sequence[Type]) -> Type | None:
    """Return the common type of numbers or Tensors of these types; None if they have none."""
    found: Type | None = unshaped(types[0])
    for type in types[1:]:
        found = None if found is None else join_values(found, unshaped(type))
    return found


# ------------------------------------------------------------------------------------------------------- operators


def operator_of_python(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    range = expr.range
    if operator == "**":
        return _int_power(emitter, lhs, rhs, expr.rhs, range)
    if emitter.graph.follows_python:
        number = emit_open_arithmetic(emitter, operator, lhs, rhs, expr)
        if number is not None:
            return number
        if operator == "*" and (is_open_number(lhs.type) or is_open_number(rhs.type)):
            return _repeated(emitter, lhs, rhs, expr)
    if isinstance(rhs.type, TensorType) and emitter.graph.follows_python:
        if lhs.type == BOOL and operator == "//":
            return binary(emitter, operator, emitter.insert("aten::Int", range, lhs), rhs, expr)
        if is_open_number(lhs.type) or lhs.type == BOOL or (operator == "-" and lhs.type in _TYPED_NUMBERS):
            return _number_and_tensor(emitter, operator, lhs, rhs, expr)
    if operator == "*" and STRING in (lhs.type, rhs.type) and not {INT, BOOL}.isdisjoint((lhs.type, rhs.type)):
        text, count = (lhs, rhs) if lhs.type == STRING else (rhs, lhs)
        count = emitter.insert("aten::Int", range, count) if count.type == BOOL else count
        return from_library(emitter, "repeated_text", range, text, count)
    if operator == "in":
        if isinstance(rhs.type, TensorType):
            return from_library(emitter, "tensor_contains", range, rhs, lhs)
        return _among(emitter, lhs, rhs, expr)
    if operator == "|" and isinstance(lhs.type, DictType) and lhs.type == rhs.type:
        return from_library(emitter, "merged_dicts", range, lhs, rhs)
    if operator in ("==", "!="):
        return _special_equality(emitter, operator, lhs, rhs, expr)
    if operator in _LISTS_COMPARED and isinstance(lhs.type, ListType) and isinstance(rhs.type, ListType):
        changed, if_equal = _LISTS_COMPARED[operator]
        first, second = (rhs, lhs) if changed else (lhs, rhs)
        equal = emitter.graph.insert_constant(if_equal, range=range)
        return from_library(emitter, "less_lists", range, first, second, equal)
    return None


def _repeated(emitter: Emitter, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    """Emit ``xs * n`` or ``n * xs`` of a list or a string ``xs`` and a number ``n`` that is an int or a float, which is
    known only at run time. The emitted code raises a TypeError if ``n`` is not an int. Return None if ``xs`` has
    another type."""
    checks = emitter.graph.none_checks
    other, number = (rhs, lhs) if is_open_number(lhs.type) else (lhs, rhs)
    if checks is None or not isinstance(other.type, (ListType, StringType)):
        return None
    return binary(emitter, "*", other, checks.number_as(number, INT, expr.range), expr)


def power(emitter: Emitter, base: Value, exponent: Value, expr: BinOp, hint: Type | None) -> Value:
    if base.type != INT or exponent.type != INT or hint != FLOAT:
        return binary(emitter, "**", base, exponent, expr)
    if constant_int(exponent) is None:
        return as_float(emitter, _number_power(emitter, base, exponent, expr.range), expr.range)
    return as_float(emitter, binary(emitter, "**", base, exponent, expr), expr.range)


def _number_power(emitter: Emitter, base: Value, exponent: Value, range: SourceRange) -> Value:
    """Emit ``base ** exponent``. Of real numbers it is an int or a float, which is known only at run time: an int if
    both are ints and the exponent is not negative."""
    result = from_library(emitter, "number_power", range, base, exponent)
    return (
        emitter.environment.cast(result, INT_OR_FLOAT, range)
        if is_real(base.type) and is_real(exponent.type)
        else result
    )


def _number_and_tensor(emitter: Emitter, operator: str, number: Value, tensor: Value, expr: BinOp) -> Value | None:
    """Emit ``number operator tensor`` as an operation that has the Tensor first, since the operators of Tensors take a
    number only on their right. Return None if the operator has no such form.

    TorchScript's ``1.5 - y`` is ``neg(y) + 1.5``, which wraps in the dtype of ``y`` before it promotes.
    """
    if operator == "-":
        return emitter.insert("aten::rsub", expr.range, tensor, number)
    if operator == "/":
        return emitter.insert("aten::mul", expr.range, emitter.insert("aten::reciprocal", expr.range, tensor), number)
    changed = _CHANGED_PLACES.get(operator)
    return None if changed is None else binary(emitter, changed, tensor, number, expr)


def _int_power(emitter: Emitter, base: Value, exponent: Value, written: Expr, range: SourceRange) -> Value | None:
    """Emit the power of two ints: an int, except that a negative constant exponent gives a float, and one written with
    a minus sign an int or a float that is known only at run time. An operand of an open type, such as a Scalar, gives
    such a number, too. Return None for operands of other types, and if the program does not follow Python."""
    kinds = {part.kind for value in (base, exponent) for part in union_members(value.type)}
    is_open = any(value.type == NUMBER or isinstance(value.type, UnionBase) for value in (base, exponent))
    if is_open and kinds <= REAL_KINDS and emitter.graph.follows_python:
        return _number_power(emitter, base, exponent, range)
    if base.type not in _WHOLE or exponent.type not in _WHOLE or not emitter.graph.follows_python:
        return None
    base, exponent = (emitter.insert("aten::Int", range, x) if x.type == BOOL else x for x in (base, exponent))
    if (constant_int(exponent) or 0) < 0:
        return emitter.insert("aten::pow", range, base, exponent)
    if written.tree.kind == "unary_minus":
        return _number_power(emitter, base, exponent, range)
    return from_library(emitter, "int_power", range, base, exponent)


def _among(emitter: Emitter, item: Value, container: Value, expr: BinOp) -> Value | None:
    """Emit ``x in (1, "a", None)`` as comparisons with each element, or as a search in the library for lists of
    containers. Return None for other containers, and if an operator compares all elements: they have the type of ``x``,
    or there are none."""
    if isinstance(container.type, TupleType):
        parts = unpack_tuple(emitter.graph, container, expr.range)
    elif isinstance(container.type, ListType) and isinstance(container.type.element, _COMPARED_ONE_BY_ONE):
        return from_library(emitter, "list_contains", expr.range, container, item)
    elif container.node.kind == "prim::ListConstruct":
        parts = list(container.node.inputs)
    else:
        return None
    if not parts or all(part.type == item.type for part in parts):
        return None
    found = emitter.graph.insert_constant(False, range=expr.range)
    for part in reversed(parts):
        found = _either_equal(emitter, item, part, found, expr)
    return found


def _either_equal(emitter: Emitter, item: Value, part: Value, otherwise: Value, expr: BinOp) -> Value:
    if _never_equal(item.type, part.type):
        return otherwise
    if isinstance(part.type, NoneType):
        equal = emitter.insert("aten::__is__", expr.range, item, part)
    else:
        equal = emitter.to_bool(binary(emitter, "==", item, part, expr), expr.range)
    node, _, _ = emitter.branch(
        expr.range,
        equal,
        RefinementSet(),
        lambda: emitter.graph.insert_constant(True, range=expr.range),
        lambda: otherwise,
    )
    return node.add_output(BOOL)


def _equal_if_present(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    """Emit ``lhs == rhs`` or ``lhs != rhs`` if the type of an operand includes None, which equals only None. Return
    None if neither does, or if an operand is a Tensor."""
    may_be_none = [_is_optional_plain(value.type) for value in (lhs, rhs)]
    if not any(may_be_none) or TENSOR in (lhs.type, rhs.type):
        return None
    optional, other = (lhs, rhs) if may_be_none[0] else (rhs, lhs)
    range = expr.range
    nothing = emitter.graph.insert_constant(None, range=range)

    def both_none() -> Value:
        if not _is_optional_plain(other.type):
            return emitter.graph.insert_constant(operator == "!=", range=range)
        return emitter.insert("aten::__is__" if operator == "==" else "aten::__isnot__", range, other, nothing)

    node, _, _ = emitter.branch(
        range,
        emitter.insert("aten::__isnot__", range, optional, nothing),
        RefinementSet(),
        lambda: emitter.to_bool(binary(emitter, operator, emitter.without_none(optional, range), other, expr), range),
        both_none,
    )
    return node.add_output(BOOL)


def _special_equality(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    range = expr.range
    if _have_items_alike(lhs.type, rhs.type):
        equal = from_library(emitter, "equal_dicts", range, lhs, rhs)
        return equal if operator == "==" else emitter.insert("aten::__not__", range, equal)
    if _compared_by_items(lhs.type, rhs.type):
        equal = from_library(emitter, "equal_items", range, lhs, rhs)
        return equal if operator == "==" else emitter.insert("aten::__not__", range, equal)
    if STRING in (lhs.type, rhs.type) and _never_equal(lhs.type, rhs.type):
        return emitter.graph.insert_constant(operator == "!=", range=range)
    return _equal_if_present(emitter, operator, lhs, rhs, expr)


_COMPARED_ONE_BY_ONE: Final = (ListType, TupleType, DictType, EnumType, ClassType)
"""Types of elements for which ``in`` of a list has no operator."""

_NUMBERS: Final = ("BoolType", "IntType", "FloatType", "ComplexType", "NumberType")


def is_literal(items: Value) -> bool:
    return items.node.kind == "prim::ListConstruct"


def _never_equal(one: Type, other: Type) -> bool:
    """Return whether values of the two types are never equal: a string and a number, or None and a type that excludes
    None."""
    if isinstance(one, NoneType) or isinstance(other, NoneType):
        return not one.is_optional or not other.is_optional
    return STRING in (one, other) and (one.kind in _NUMBERS or other.kind in _NUMBERS)


def _compared_by_items(one: Type, other: Type) -> bool:
    """Return whether both types are lists whose elements must be compared one by one, since no operator compares such
    lists."""
    if not isinstance(one, ListType) or not isinstance(other, ListType):
        return False
    return one.element != other.element or isinstance(one.element, (ListType, TupleType, DictType))


def _have_items_alike(one: Type, other: Type) -> bool:
    """Return whether both types are dicts with the same types of keys and values other than tensors, possibly of two
    classes, such as ``Counter`` and ``dict``."""
    if not isinstance(one, DictType) or not isinstance(other, DictType) or one.is_set != other.is_set:
        return False
    return one.contained == other.contained and not isinstance(one.value, TensorType)


def _is_optional_plain(type: Type) -> bool:
    """Return whether the type is an Optional of one type that is not a Tensor, so that a comparison of its values is a
    bool."""
    inner = without_none(type)
    return isinstance(type, UnionBase) and type.is_optional and not isinstance(inner, (TensorType, UnionBase))
