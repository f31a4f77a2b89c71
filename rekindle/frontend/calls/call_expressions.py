"""Emit calls: of Python's builtins, of higher-order functions, and of any other callee."""

from __future__ import annotations

from typing import Final

from rekindle.frontend.calls.special_calls import emit_call
from rekindle.frontend.containers.set_values import check_sum
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.unordered import COMPREHENSIONS, has_key, iterables_of
from rekindle.frontend.python.builtins import emit_builtin
from rekindle.frontend.python.higher_order import emit_with_functions
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.ir.types import Type
from rekindle.syntax.views import Apply, Expr

_TAKE_ALL: Final = frozenset({"sorted", "min", "max", "sum", "any", "all"})


def emit_call_expression(emitter: Emitter, expr: Expr, targets: int, hint: Type | None) -> SugaredValue:
    call = Apply(expr.tree)
    comprehension = _comprehension_in_any_order(emitter, call)
    if comprehension is None:
        return _emit_call(emitter, call, targets, hint)
    # ``sorted(… for x in s)``, ``any(…)``: the result does not depend on the order of the iteration over ``s``
    own = iterables_of(comprehension)
    emitter.order_free |= own
    found = _emit_call(emitter, call, targets, hint)
    had_set = not own <= emitter.order_free
    emitter.order_free -= own
    if had_set and call.callee_name == "sum":
        check_sum(found.as_value(call.range, emitter.graph).type, call.range)
    return found


def _comprehension_in_any_order(emitter: Emitter, call: Apply) -> Expr | None:
    """Return the comprehension that is the only argument of a call whose result does not depend on the order of the
    elements, such as ``sorted`` or ``any``; None for other calls."""
    name = call.callee_name
    if name is None or name not in _TAKE_ALL or len(call.inputs) != 1 or has_key(call):
        return None
    (item,) = call.inputs
    takes_all = item.tree.kind in COMPREHENSIONS and emitter.environment.is_builtin(name, call.callee.range)
    return item if takes_all else None


def _emit_call(emitter: Emitter, call: Apply, targets: int, hint: Type | None) -> SugaredValue:
    found = emit_builtin(emitter, call, hint)
    if found is None:
        found = emit_with_functions(emitter, call)
    return emit_call(emitter, call, targets, hint) if found is None else found
