"""Emit expressions of binary and unary operators."""

from __future__ import annotations

from typing import Final

from rekindle.errors import CompileError, TypeMismatchError
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.operator_kinds import BINARY_KINDS, UNARY_KINDS
from rekindle.frontend.expressions.operators import binary
from rekindle.frontend.expressions.primaries import from_library
from rekindle.frontend.inference.error_diagnosis import emit_for_errors
from rekindle.frontend.inference.usage_inference import infer_element, infer_item
from rekindle.frontend.python.operators import power
from rekindle.frontend.sugared_values.base import CallSite
from rekindle.frontend.sugared_values.special_forms import MagicMethod
from rekindle.frontend.sugared_values.values import BuiltinFunction
from rekindle.ir.node import Value
from rekindle.ir.types import (
    BOOL,
    FLOAT,
    INT,
    ClassType,
    DictType,
    ListType,
    TensorType,
    Type,
    is_open_number,
    may_be_bool,
    number_beside_tensor,
    number_members,
)
from rekindle.syntax.views import BinOp, Const, Expr, ListLiteral, UnaryOp


def emit_binary(emitter: Emitter, expression: Expr, hint: Type | None) -> Value:
    expr = BinOp(expression.tree)
    if expr.operator in _ASKED:
        for answer in emitter.language.questions:
            found = answer(emitter, expr)
            if found is not None:
                return found.value
    # A long sum is a deep tree that leans to the left: go down in a loop, and emit on the way up.
    chain = [expr]
    while chain[-1].lhs.tree.kind in BINARY_KINDS and id(chain[-1].lhs.tree) not in emitter.shared:
        chain.append(BinOp(chain[-1].lhs.tree))
    position = len(chain)
    try:
        first = chain[-1].lhs
        repeated = len(chain) == 1 and expr.operator == "*" and first.tree.kind == ListLiteral.KIND
        value = emitter.emit_expression(first, hint if repeated else None)
        while position:
            position -= 1
            each = chain[position]
            rhs = emitter.emit_expression(each.rhs, FLOAT if is_scaled(each.operator, value, each.rhs) else None)
            if each.operator == "**":
                value = power(emitter, value, rhs, each, hint if position == 0 else float_beside(chain[position - 1]))
                continue
            if each.operator == "in" and isinstance(rhs.type, DictType):
                infer_item(emitter, each.rhs, value)
            elif each.operator == "+" and isinstance(rhs.type, ListType):
                infer_element(emitter, each.lhs, rhs)
            value = binary(emitter, each.operator, value, rhs, each)
        return value
    except CompileError as error:
        failed = chain[position].tree if position < len(chain) else chain[-1].lhs.tree
        emit_for_errors(emitter, [each.rhs for each in reversed(chain[:position])], error, Expr(failed))


def emit_unary(emitter: Emitter, expression: Expr, hint: Type | None) -> Value:
    expr = UnaryOp(expression.tree)
    if expr.operator == "unary_minus" and expr.operand.tree.kind == Const.KIND:
        return emitter.graph.insert_constant(-Const(expr.operand.tree).value, range=expr.range)
    return _unary(emitter, expr, emitter.emit_expression(expr.operand))


def _unary(emitter: Emitter, expr: UnaryOp, operand: Value) -> Value:
    if number_beside_tensor(operand.type) is not None:
        return emitter.split(operand, expr.range, lambda part: _unary(emitter, expr, part))
    result = _operated(emitter, expr, operand)
    if expr.operator == "unary_plus" and may_be_bool(result.type):
        return from_library(emitter, "positive_number", expr.range, result)  # an int, where it is a bool
    return result


def _operated(emitter: Emitter, expr: UnaryOp, operand: Value) -> Value:
    kind, method = UNARY_KINDS[expr.operator]
    if operand.type.is_optional:
        sign = _SIGNS[expr.operator]
        operand = emitter.present(operand, expr.range, f"bad operand type for unary {sign}: 'NoneType'")
    if operand.type == BOOL:
        operand = emitter.insert("aten::Int", expr.range, operand)
    if expr.operator == "unary_plus" and not isinstance(operand.type, (TensorType, ClassType)):
        if number_members(operand.type) is None:
            raise TypeMismatchError(f"unary + cannot be applied to {operand.type.annotation}", expr.range)
        return operand
    checks = emitter.graph.none_checks
    if expr.operator == "~" and checks is not None and is_open_number(operand.type):
        operand = checks.number_as(operand, INT, expr.range)
    if expr.operator == "~" and operand.type == INT:
        return emitter.insert("aten::__xor__", expr.range, operand, -1)  # there is no such operator of ints
    target = MagicMethod(method, BuiltinFunction(kind))
    result = target.call(CallSite(expr.range, emitter.graph, [emitter.argument(operand, expr.operand.range)]))
    return result.as_value(expr.range, emitter.graph)


_ASKED: Final = frozenset({"==", "!=", "in"})
"""Operators for which the handlers of :attr:`Language.questions` are tried."""

_SIGNS: Final = {"unary_minus": "-", "unary_plus": "+", "~": "~"}


_SCALES: Final = ("+", "-", "*", "/")


def is_scaled(operator: str, lhs: Value, rhs: Expr) -> bool:
    """Return whether ``rhs`` is a power that ``lhs operator rhs`` converts to a float at once, as in ``0.5 * 2 **
    n``."""
    return rhs.tree.kind == "**" and operator in _SCALES and lhs.type == FLOAT


def float_beside(expr: BinOp) -> Type | None:
    """Return ``FLOAT`` if the operator of ``expr`` converts its left operand to a float at once, as in ``2 ** n *
    0.5``; else None."""
    rhs = expr.rhs.tree
    is_float = rhs.kind == Const.KIND and isinstance(Const(rhs).value, float)
    return FLOAT if is_float and expr.operator in _SCALES else None
