"""Emit ``a and b`` and ``a or b`` as values: one of the operands, as in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.conditions import (
    asks,
    compares,
    emit_condition,
    is_chain,
    joined,
    of_chain,
    truth_of,
)
from rekindle.frontend.scopes.refinement import CondValue, RefinementSet
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import (
    BOOL,
    DictType,
    ListType,
    TensorType,
    Type,
    UnionBase,
    UnionType,
    number_beside_tensor,
    unify,
    unshaped,
    without_none,
)
from rekindle.syntax.views import BinOp, Expr


@dataclass(slots=True)
class _Operand:
    """An operand of ``and`` or ``or``: its value, the type refinements of its truth, and that truth if known at compile
    time (``static``). ``truth`` is its bool in the graph; None if that has not been emitted."""

    value: Value
    truth: Value | None = None
    refinements: RefinementSet = field(default_factory=RefinementSet)
    static: bool | None = None


def _short_circuit(emitter: Emitter, expr: BinOp, hint: Type | None) -> Value:
    return _choose(emitter, expr, hint).value


def _choose(emitter: Emitter, expr: BinOp, hint: Type | None) -> _Operand:
    # `a and b and c` leans to the left: go down in a loop, and emit on the way up.
    chain = [expr]
    while chain[-1].lhs.tree.kind in ("and", "or") and not is_chain(chain[-1].lhs.tree):
        chain.append(BinOp(chain[-1].lhs.tree))
    found = _operand(emitter, chain[-1].lhs, hint)
    for each in reversed(chain):
        found = _one_of(emitter, each, found, hint)
    return found


def _operand(emitter: Emitter, expr: Expr, hint: Type | None) -> _Operand:
    if expr.tree.kind in ("and", "or") and not is_chain(expr.tree):
        return _choose(emitter, BinOp(expr.tree), hint)
    if compares(expr):
        value = emitter.emit_expression(expr)
        if isinstance(value.type, TensorType) or number_beside_tensor(value.type) is not None:
            return _Operand(value)
        found = truth_of(emitter, expr, value)
        return _Operand(found.value, found.value, found.refinements, found.static)
    if asks(expr):
        known = emit_condition(emitter, expr)
        return _Operand(known.value, known.value, known.refinements, known.static)
    return _Operand(emitter.emit_expression(expr, hint))


def _truth_of_operand(emitter: Emitter, expr: Expr, operand: _Operand) -> CondValue:
    if operand.truth is not None:
        return CondValue(operand.truth, operand.refinements, operand.static)
    found = truth_of(emitter, expr, operand.value)
    return found if expr.tree.kind not in ("and", "or") else CondValue(found.value, operand.refinements, found.static)


def _one_of(emitter: Emitter, expr: BinOp, operand: _Operand, hint: Type | None) -> _Operand:
    """Emit ``operand and expr.rhs`` or ``operand or expr.rhs`` as a value. The right side runs only if the left one
    does not decide."""
    is_or = expr.operator == "or"
    lhs = _truth_of_operand(emitter, expr.lhs, operand)
    value = operand.value
    if hint is None and isinstance(without_none(value.type), (ListType, DictType)):
        hint = without_none(value.type)  # [] is a list of what the other one holds
    if lhs.static is is_or:
        return operand  # the right side is never asked, and need not even compile
    if lhs.static is not None:
        emitter.refine(lhs.refinements.if_false if is_or else lhs.refinements.if_true, expr.range)
        return _operand(emitter, expr.rhs, hint)
    others: list[_Operand] = []

    def decided() -> Value:
        if value.type == BOOL:
            return emitter.graph.insert_constant(is_or, range=expr.range)
        return emitter.without_none(value, expr.range) if is_or and _may_be_none(value.type) else value

    def evaluated() -> Value:
        others.append(_operand(emitter, expr.rhs, hint))
        return others[0].value

    branches = (decided, evaluated) if is_or else (evaluated, decided)
    node, true, false = emitter.branch(expr.range, lhs.value, lhs.refinements, *branches)
    common = unify(unshaped(true.type), unshaped(false.type), default_to_union=True, hint=hint)
    assert common is not None
    if isinstance(common, UnionType):  # TorchScript looks for a smaller type unless both are said to be this one
        _cast_all(emitter, node, (true, false), common)
    result = node.add_output(common)
    rhs = others[0]
    known = joined(expr, lhs, CondValue(rhs.value, rhs.refinements))
    return _Operand(result, result if common == BOOL else None, known, is_or if rhs.static is is_or else None)


def _compare_all(emitter: Emitter, comparisons: list[BinOp]) -> Value:
    first, *rest = comparisons
    value = emitter.emit_expression(Expr(first.tree))
    if not rest:
        return value

    def decided() -> Value:
        return emitter.graph.insert_constant(False, range=first.range) if value.type == BOOL else value

    truth = emitter.to_bool(value, first.range)
    node, true, false = emitter.branch(
        first.range, truth, RefinementSet(), lambda: _compare_all(emitter, rest), decided
    )
    common = unify(unshaped(true.type), unshaped(false.type), default_to_union=True)
    assert common is not None
    if isinstance(common, UnionType):
        _cast_all(emitter, node, (true, false), common)
    return node.add_output(common)


def _cast_all(emitter: Emitter, node: Node, values: Sequence[Value], type: Type) -> None:
    for block, value in zip(node.blocks, values, strict=True):
        if value.type != type:
            with emitter.graph.inserting_at_end(block):
                cast = emitter.insert_node("prim::unchecked_cast", node.range, [value], [type])
            block.replace_output(0, cast.output)


def _may_be_none(type: Type) -> bool:
    return isinstance(type, UnionBase) and type.is_optional


def emit_condition_value(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    if expr.tree.kind in ("and", "or") and hint != BOOL and not is_chain(expr.tree):
        return _short_circuit(emitter, BinOp(expr.tree), hint)
    if is_chain(expr.tree) and hint != BOOL and emitter.graph.follows_python:
        return of_chain(emitter, BinOp(expr.tree), partial(_compare_all, emitter))
    return emit_condition(emitter, expr).value
