"""Emit ``n in range(…)`` as a comparison with the bounds."""

from __future__ import annotations

from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.primaries import from_library
from rekindle.frontend.scopes.refinement import CondValue
from rekindle.frontend.sugared_values.iterables import RangeValue
from rekindle.ir.types import INT
from rekindle.syntax.views import Apply, BinOp, Expr, Var


def within_range(emitter: Emitter, expr: BinOp) -> CondValue | None:
    """Emit ``n in range(…)``; return None for other comparisons, and in programs that do not follow Python.

    Raises:
        UnsupportedError: ``n`` is not an int.
    """
    if expr.operator != "in" or not emitter.graph.follows_python or not _may_be_range(emitter, expr.rhs):
        return None
    item = emitter.emit_expression(expr.lhs)
    container = emitter.emit_sugared(expr.rhs)
    assert isinstance(container, RangeValue)
    if item.type != INT:
        container.as_value(expr.rhs.range, emitter.graph)
    bounds = (container.start, container.stop, container.step)
    return CondValue(from_library(emitter, "range_contains", expr.range, item, *bounds))


def _may_be_range(emitter: Emitter, expr: Expr) -> bool:
    """Return whether ``expr`` is a call of ``range`` or a variable that holds one."""
    if expr.tree.kind == Var.KIND:
        return isinstance(emitter.environment.find_static(Var(expr.tree).name.name), RangeValue)
    if expr.tree.kind != Apply.KIND or Apply(expr.tree).callee.tree.kind != Var.KIND:
        return False
    name = Var(Apply(expr.tree).callee.tree).name
    return name.name == "range" and emitter.environment.is_builtin(name.name, name.range)
