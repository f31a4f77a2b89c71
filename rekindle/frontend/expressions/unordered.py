"""Emit iterations whose order is unobservable, so that they may iterate over sets."""

from __future__ import annotations

from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.statements.loops import list_of
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.node import Value
from rekindle.ir.types import DictType, ListType
from rekindle.syntax.views import Apply, Expr, GeneratorExpr, ListComp, SetComp

COMPREHENSIONS: Final = {view.KIND: view for view in (GeneratorExpr, ListComp, SetComp)}


def elements_in_any_order(emitter: Emitter, expr: Expr) -> Value:
    """Emit the elements of ``expr`` as a list, in arbitrary order, and return it. The caller must not depend on the
    order."""
    if expr.tree.kind in COMPREHENSIONS:
        emitter.order_free.update(iterables_of(expr))
    return elements_of_value(emitter, emitter.emit_sugared(expr), expr.range)


def elements_of_value(emitter: Emitter, found: SugaredValue, range: SourceRange) -> Value:
    if isinstance(found, SimpleValue):
        type = found.value.type
        if isinstance(type, DictType):
            return emitter.insert("aten::keys", range, found.value)
        if isinstance(type, ListType):
            return found.value
    return list_of(emitter, range, found, None)


def iterables_of(expr: Expr) -> set[int]:
    """Return the ids of the trees of the iterables in a comprehension."""
    view = COMPREHENSIONS[expr.tree.kind](expr.tree)
    return {id(item.iterable.tree) for item in view.generators}


def has_key(call: Apply) -> bool:
    return any(item.name.name == "key" for item in call.attributes)


def list_from(emitter: Emitter, value: SugaredValue, range: SourceRange) -> Value:
    """Emit the conversion of an iterable to a list, and return it; a list is returned as it is."""
    if isinstance(value, SimpleValue) and isinstance(value.value.type, ListType):
        return value.value
    return list_of(emitter, range, value, None)


def unordered_list(emitter: Emitter, call: Apply, source: Expr) -> Value:
    """Emit the elements of ``source`` as a list, and return it: in any order, unless the call has a ``key``, since of
    elements with equal keys the first counts."""
    if has_key(call):
        return list_from(emitter, emitter.emit_sugared(source), source.range)
    return elements_in_any_order(emitter, source)
