"""Tables of the language: which function emits which expression, builtin and attribute. Statements:
``statements/simple_statements.py``.

Programs from Python and the code of archives are emitted by the same handlers. Where the semantics of the two languages
differ, handlers test whether ``emitter.graph.none_checks`` is set, as it is for Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rekindle.errors import CascadingError
from rekindle.frontend.calls import special_calls as calls
from rekindle.frontend.calls.call_expressions import emit_call_expression
from rekindle.frontend.containers import counters, python_collections, sets, variable_length_tuples
from rekindle.frontend.containers.counters import attribute_of_counter, operator_of_counters
from rekindle.frontend.containers.python_collections import attribute_of_collection, operator_of_ordered_dicts
from rekindle.frontend.containers.sets import attribute_of_set, emit_set, emit_set_comprehension, operator_of_sets
from rekindle.frontend.containers.variable_length_tuples import emit_tuple_literal, operator_of_tuples
from rekindle.frontend.emitter import Emitter, ExpressionHandler, Language
from rekindle.frontend.expressions.arithmetic import emit_binary, emit_unary
from rekindle.frontend.expressions.conditions import emit_ternary
from rekindle.frontend.expressions.literals import (
    emit_const,
    emit_dict,
    emit_false,
    emit_list,
    emit_none,
    emit_string,
    emit_true,
)
from rekindle.frontend.expressions.operator_kinds import BINARY_KINDS, UNARY_KINDS
from rekindle.frontend.expressions.primaries import emit_lambda, emit_select, emit_walrus
from rekindle.frontend.expressions.ranges import within_range
from rekindle.frontend.expressions.short_circuits import emit_condition_value
from rekindle.frontend.expressions.subscripts import emit_subscript
from rekindle.frontend.python import forms as python_forms, higher_order, library_forms, unzipping
from rekindle.frontend.python.forms import type_question
from rekindle.frontend.python.operators import operator_of_python
from rekindle.frontend.statements.assignments import assign_targets
from rekindle.frontend.statements.loops import emit_comprehension
from rekindle.frontend.statements.simple_statements import emit_statements
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.node import Value
from rekindle.ir.types import Type
from rekindle.syntax.views import (
    Apply,
    Const,
    DictComp,
    DictLiteral,
    ErrorStmt,
    Expr,
    GeneratorExpr,
    Lambda,
    ListComp,
    ListLiteral,
    NoneLiteral,
    Select,
    SetComp,
    SetLiteral,
    StringLiteral,
    Subscript,
    TernaryIf,
    TupleLiteral,
    Walrus,
)

Emit = Callable[[Emitter, Expr, "Type | None"], Value]


def _value(emit: Emit) -> ExpressionHandler:
    """Return a handler of expressions from ``emit``, which returns a value of the graph."""
    return lambda emitter, expr, targets, hint: SimpleValue(emit(emitter, expr, hint))


def _refuse_given_up(emitter: Emitter, expr: Expr, targets: int, hint: Type | None) -> SugaredValue:
    raise CascadingError("this expression is not supported")


_VALUES: Final[dict[str, Emit]] = {
    Const.KIND: emit_const,
    "true": emit_true,
    "false": emit_false,
    NoneLiteral.KIND: emit_none,
    StringLiteral.KIND: emit_string,
    **dict.fromkeys(BINARY_KINDS, emit_binary),
    **dict.fromkeys(UNARY_KINDS, emit_unary),
    **dict.fromkeys(("and", "or", "not", "is", "is_not", "not_in"), emit_condition_value),
    **dict.fromkeys((ListComp.KIND, DictComp.KIND, GeneratorExpr.KIND), emit_comprehension),
    SetComp.KIND: emit_set_comprehension,
    SetLiteral.KIND: emit_set,
}
"""Emitters of expressions that are always values of the graph."""

_EXPRESSIONS: Final[dict[str, ExpressionHandler]] = {
    Select.KIND: emit_select,
    Apply.KIND: emit_call_expression,
    Subscript.KIND: emit_subscript,
    TernaryIf.KIND: emit_ternary,
    TupleLiteral.KIND: emit_tuple_literal,
    ListLiteral.KIND: emit_list,
    DictLiteral.KIND: emit_dict,
    Lambda.KIND: emit_lambda,
    Walrus.KIND: emit_walrus,
    ErrorStmt.KIND: _refuse_given_up,
}

LANGUAGE: Final = Language(
    expressions={**{kind: _value(emit) for kind, emit in _VALUES.items()}, **_EXPRESSIONS},
    emit_statements=emit_statements,
    assign=assign_targets,
    special_forms={
        **calls.FORMS,
        **higher_order.FORMS,
        **library_forms.FORMS,
        **unzipping.FORMS,
        **sets.FORMS,
        **python_collections.FORMS,
        **counters.FORMS,
        **variable_length_tuples.FORMS,
        **python_forms.FORMS,
    },
    attributes=(attribute_of_counter, attribute_of_collection, attribute_of_set),
    operators=(
        operator_of_tuples,
        operator_of_counters,
        operator_of_ordered_dicts,
        operator_of_sets,
        operator_of_python,
    ),
    questions=(type_question, within_range),
)
"""The language of programs from Python, and of archives."""
