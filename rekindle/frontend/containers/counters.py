"""``collections.Counter``: a dict of counts, in which a missing key has the count 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.arguments import emit_sugared_args
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.primaries import call_builtin, from_library
from rekindle.frontend.python.library import library_function
from rekindle.frontend.statements.loops import list_of
from rekindle.frontend.sugared_values.base import Keywords, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.keyword_arguments import KeywordArguments
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import INT, STRING, DictType, ListType, Type, is_open_number, without_none
from rekindle.syntax.views import Apply, BinOp, Expr, Select

_METHODS: Final = frozenset({"most_common", "total", "elements", "update", "subtract"})

_OPERATORS: Final = {
    "+": "counters_added",
    "-": "counters_subtracted",
    "|": "counters_joined",
    "&": "counters_shared",
}
"""Prelude functions for binary operators on counters: each updates its first argument, a copy of the left operand."""


def _element(type: Type) -> Type:
    """Return the type of the elements that are counted: the keys of a dict, or the elements of a list."""
    assert isinstance(type, (DictType, ListType))
    return type.key if isinstance(type, DictType) else type.element


def is_counter(value: Value) -> bool:
    return isinstance(value.type, DictType) and value.type.python == "Counter"


class CounterMethod(SugaredFunction):
    """A method of a Counter that dicts do not have, such as ``c.update`` or ``c.most_common``."""

    def __init__(self, emitter: Emitter, counter: Value, name: str, expr: Expr) -> None:
        self.emitter = emitter
        self.counter = counter
        self.name = name
        self.expr = expr

    @property
    def description(self) -> str:
        return f"the method '{self.name}' of a Counter"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if self.name not in ("update", "subtract"):
            return library_function(self.name).call_with(range, graph, [SimpleValue(self.counter), *args], kwargs)
        if kwargs or len(args) != 1:
            raise UnsupportedError(f"{self.description} takes one iterable or dict here", range)
        return count(self.emitter, range, self.counter, args[0], self.name == "subtract", self.expr)


def _counter(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    wanted = None if hint is None else without_none(hint)
    key = wanted.key if isinstance(wanted, DictType) else STRING
    args, kwargs = emit_sugared_args(emitter, call)
    if len(args) > 1:
        raise TypeMismatchError(f"Counter takes at most one argument, got {len(args)}", call.range)
    source = _counted(emitter, args[0], call.range) if args else None
    if source is not None:
        key = _element(source.value.type)
    counts = wanted.value if isinstance(wanted, DictType) and is_open_number(wanted.value) else INT
    made = emitter.insert_node("prim::DictConstruct", call.range, [], [DictType(key, counts, "Counter")]).output
    if source is not None:
        count(emitter, call.range, made, source)
    if kwargs:
        count(emitter, call.range, made, SimpleValue(KeywordArguments(kwargs).as_value(call.range, emitter.graph)))
    return SimpleValue(made)


def _counted(emitter: Emitter, source: SugaredValue, range: SourceRange) -> SimpleValue:
    """Return the argument of a Counter as a dict or a list: an iterable of another class is copied to a list."""
    if isinstance(source, SimpleValue) and isinstance(source.value.type, (DictType, ListType)):
        return source
    return SimpleValue(list_of(emitter, range, source, None))


def count(
    emitter: Emitter,
    range: SourceRange,
    counter: Value,
    source: SugaredValue,
    down: bool = False,
    expr: Expr | None = None,
) -> SugaredValue:
    """Emit the update of a Counter, and return the sugared value of None: count the elements of an iterable, or add the
    counts of a dict. With ``down``, they are subtracted. The element type is recorded as evidence for the type of the
    variable ``expr``."""
    found = _counted(emitter, source, range).value
    what = "pairs" if isinstance(found.type, DictType) else "all"
    origin = None if expr is None else emitter.environment.origin_of(expr)
    if origin is not None:
        emitter.evidence.record(origin, key=_element(found.type), value=INT)
    name = f"uncount_{what}" if down else f"count_{what}"
    return library_function(name).call_with(range, emitter.graph, [SimpleValue(counter), SimpleValue(found)], {})


def forgets_missing(emitter: Emitter, type: Type) -> bool:
    """Return whether ``del`` of a missing key has no effect in values of ``type``: it is a Counter."""
    return isinstance(type, DictType) and type.python == "Counter"


def attribute_of_counter(emitter: Emitter, base: SugaredValue, expr: Select, name: str) -> SugaredValue | None:
    if name in _METHODS and isinstance(base, SimpleValue) and is_counter(base.value):
        return CounterMethod(emitter, base.value, name, expr.value)
    return None


def operator_of_counters(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    if not is_counter(lhs) or not is_counter(rhs):
        return None
    range = expr.range
    if operator in _OPERATORS:
        made = call_builtin(emitter, "aten::copy", range, lhs).set_type(lhs.type)
        from_library(emitter, _OPERATORS[operator], range, made, rhs)
        return made
    if operator not in ("==", "!="):
        raise UnsupportedError(f"'{operator}' of counters is not supported", range, hint="compare their items")
    equal = from_library(emitter, "equal_counters", range, lhs, rhs)
    return equal if operator == "==" else emitter.insert("aten::__not__", range, equal)


FORMS: Final[dict[str, FormHandler]] = {
    "Counter": _counter,
}
