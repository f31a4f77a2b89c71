"""``collections.defaultdict``, ``OrderedDict``, ``deque``: dicts and lists whose types record Python's class."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.insertion import constant_int, has_empty
from rekindle.frontend.calls.special_calls import emit_dict_call
from rekindle.frontend.containers.default_factories import number_of_factory
from rekindle.frontend.containers.number_containers import join_known, made_as
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.primaries import from_library
from rekindle.frontend.inference.type_inference import LIST
from rekindle.frontend.python.library import library_function
from rekindle.frontend.statements.loops import list_of
from rekindle.frontend.sugared_values.base import CallSite, Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.local_functions import LocalFunction
from rekindle.frontend.sugared_values.special_forms import Cast, MagicMethod, SpecialForm
from rekindle.frontend.sugared_values.values import BoundCall, BuiltinFunction, SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import (
    BOOL,
    INT,
    STRING,
    TENSOR,
    DictType,
    ListType,
    Type,
    is_open_number,
    unshaped,
    without_none,
)
from rekindle.syntax.views import Apply, BinOp, Expr, Select

_OF_DEQUES: Final = frozenset({"appendleft", "popleft", "extendleft", "rotate", "pop"})
_OF_ORDERED: Final = frozenset({"move_to_end", "popitem"})

_MADE: Final[dict[str, Type]] = {
    "list": ListType(TENSOR),
    "dict": DictType(STRING, TENSOR),
    "set": DictType(INT, BOOL, "set"),
}
"""Types of the values that these factories of a ``defaultdict`` create, if the element types are unknown."""


def most_elements(type: Type) -> int | None:
    """Return the ``maxlen`` of a deque type; None if it has none, and for other types."""
    most = type.python.partition(":")[2] if isinstance(type, ListType) else ""
    return int(most) if most else None


def _shorten(call: CallSite, deque: Value, function: str) -> None:
    most = SimpleValue(call.graph.insert_constant(most_elements(deque.type), range=call.range))
    library_function(function).call_with(call.range, call.graph, [SimpleValue(deque), most], {})


class BoundedDequeMethod(SugaredValue):
    """A method of a deque with ``maxlen``, after which excess elements are removed."""

    def __init__(self, method: SugaredValue, deque: Value, function: str) -> None:
        self.method = method
        self.deque = deque
        self.function = function

    @property
    def description(self) -> str:
        return self.method.description

    def call(self, call: CallSite) -> SugaredValue:
        result = self.method.call(call)
        _shorten(call, self.deque, self.function)
        return result


class AddedLeft(SugaredValue):
    """The method ``appendleft`` of a deque, from whose argument the element type of an empty deque is inferred."""

    def __init__(self, emitter: Emitter, method: SugaredValue, expr: Select) -> None:
        self.emitter = emitter
        self.method = method
        self.expr = expr

    @property
    def description(self) -> str:
        return self.method.description

    def call(self, call: CallSite) -> SugaredValue:
        origin = self.emitter.environment.origin_of(self.expr.value)
        if origin is not None and origin.kind == LIST and len(call.args) == 1:
            self.emitter.evidence.record(origin, element=call.args[0].type)
        return self.method.call(call)


class BoundedDequeOperator(BuiltinFunction):
    """``append`` and ``extend`` of a deque with ``maxlen``."""

    def call(self, call: CallSite) -> SugaredValue:
        assert self.self_value is not None
        super().call(call)
        _shorten(call, self.self_value.materialize(call.graph), "shorten_left")
        return SimpleValue(call.graph.insert_constant(None, range=call.range))


class CopyOf(SugaredValue):
    """The method ``copy`` of a deque, a Counter or a similar object. The result has the same class."""

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def description(self) -> str:
        return "the method 'copy'"

    def call(self, call: CallSite) -> SugaredValue:
        method = BuiltinFunction("aten::copy", NamedValue(self.value, range=call.range))
        made = method.call(call).as_value(call.range, call.graph)
        return SimpleValue(made.set_type(self.value.type))


class LocalFactory(StaticValue):
    """A local function without captured variables that is the factory of a defaultdict. A read of a missing key calls
    it."""

    def __init__(self, function: LocalFunction) -> None:
        self.function = function

    @property
    def identity(self) -> Hashable:
        return self.function.function.definition.tree

    @property
    def description(self) -> str:
        return self.function.description

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        return self.function.function.call_compiled(range, graph, {})


def _defaultdict(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``defaultdict(int)`` or ``defaultdict(list, {…})``.

    Raises:
        UnsupportedError: the call has no factory of default values.
    """
    if not call.inputs:
        raise UnsupportedError("defaultdict needs what makes its values here", call.range, hint="use a dict")
    factory, *given = call.inputs
    sugared = emitter.emit_sugared(factory)
    type = _made_by(emitter, sugared)
    name = "defaultdict"
    if type is None:
        name, type = _factory(emitter, sugared, factory)
    wanted = None if hint is None else without_none(hint)
    if isinstance(wanted, DictType):
        is_declared = isinstance(type, (ListType, DictType)) and wanted.value.kind == type.kind
        is_declared = is_declared or (type == INT and is_open_number(wanted.value))
        value = wanted.value if is_declared and name == "defaultdict" else type
        kind = DictType(wanted.key, value, name)
    else:
        kind = DictType(STRING, type, name)
    if not given and not call.attributes:
        return SimpleValue(emitter.insert_node("prim::DictConstruct", call.range, [], [kind]).output)
    filled = emit_dict_call(emitter, Apply.create(call.range, call.callee, given, call.attributes), None)
    found = filled.as_value(call.range, emitter.graph)
    assert isinstance(found.type, DictType)
    return SimpleValue(_with_defaults(emitter, found, type, name, call.range))


def _with_defaults(emitter: Emitter, filled: Value, default: Type, name: str, range: SourceRange) -> Value:
    """Return the new dict ``filled`` as a defaultdict, the dict type ``name``, whose factory creates values of the type
    ``default``.

    Raises:
        TypeMismatchError: the items of the dict have another type.
    """
    type = filled.type
    assert isinstance(type, DictType)
    joined = join_known(type, DictType(type.key, default)) or type
    assert isinstance(joined, DictType)
    if default == INT and is_open_number(joined.value):
        filled = made_as(filled, joined, emitter.graph, range)
    elif default != type.value and not _differs_in_elements(default, type.value):
        raise TypeMismatchError(
            f"the items of this defaultdict are {type.value.annotation}, and its default values {default.annotation}",
            range,
            hint="convert the items first, or use a dict and setdefault",
        )
    assert isinstance(filled.type, DictType)
    return filled.set_type(DictType(type.key, filled.type.value, name))


def _differs_in_elements(one: Type, other: Type) -> bool:
    """Return whether both types are lists or dicts of one Python class. The types of their elements may differ."""
    if not isinstance(one, (ListType, DictType)) or not isinstance(other, (ListType, DictType)):
        return False
    return one.kind == other.kind and one.python == other.python


def _made_by(emitter: Emitter, factory: SugaredValue) -> Type | None:
    """Return the type of the values that the factory of a defaultdict creates, if it is a type whose call without
    arguments gives an empty or zero value, such as ``int`` or ``list``; None for other factories."""
    if isinstance(factory, MagicMethod):
        factory = factory.base
    if isinstance(factory, Cast) and has_empty(factory.type):
        return factory.type
    return _MADE.get(factory.name) if isinstance(factory, SpecialForm) else None


def _factory(emitter: Emitter, factory: SugaredValue, expr: Expr) -> tuple[str, Type]:
    """Return the name of the dict type with this factory, ``defaultdict:3``, and the type of its values, found by
    emitting a call that is then removed.

    Raises:
        UnsupportedError: the factory captures variables, which are unknown where the dict is read, or is not a
            function.
    """
    if isinstance(factory, LocalFunction):
        captured = factory.captured(expr.range)
        if captured:
            raise UnsupportedError(
                f"what makes the values of a defaultdict reads '{next(iter(captured))}', a variable around it",
                expr.range,
                hint="use a dict, and setdefault",
            )
        factory = LocalFactory(factory)
    elif not isinstance(factory, StaticValue) or isinstance(factory, SpecialForm):
        raise UnsupportedError(
            "what makes the values of a defaultdict is a function, a lambda, or int, float, bool, str, list, dict "
            "or set in a program",
            expr.range,
        )
    trial = emitter.graph.create("prim::If", [emitter.graph.insert_constant(True, range=expr.range)], outputs=0)
    emitter.graph.insert_node(trial)
    with emitter.inside(trial.add_block()):
        made = factory.call_with(expr.range, emitter.graph, [], {}).as_value(expr.range, emitter.graph)
        type = unshaped(made.type)
    trial.destroy()
    return f"defaultdict:{number_of_factory(factory)}", type


def _ordered_dict(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    found = emit_dict_call(emitter, call, hint).as_value(call.range, emitter.graph)
    assert isinstance(found.type, DictType)
    return SimpleValue(found.set_type(DictType(found.type.key, found.type.value, "OrderedDict")))


def _deque(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``deque()`` or ``deque(xs, maxlen=3)``. The maximal length is part of the type.

    Raises:
        TypeMismatchError: the call has other arguments.
    """
    given = dict(zip(("iterable", "maxlen"), call.inputs, strict=False))
    given |= {item.name.name: item.value for item in call.attributes}
    name = _limited(emitter, given.pop("maxlen", None))
    source = given.pop("iterable", None)
    if given or len(call.inputs) > 2:
        raise TypeMismatchError("deque takes an iterable, and maxlen", call.range)
    if source is not None:
        found = list_of(emitter, call.range, emitter.emit_sugared(source).iterator(source.range, emitter.graph), None)
        assert isinstance(found.type, ListType)
        most = most_elements(found.set_type(ListType(found.type.element, name)).type)
        if most is not None:
            from_library(emitter, "shorten_left", call.range, found, emitter.literal(most, call.range))
        return SimpleValue(found)
    wanted = None if hint is None else without_none(hint)
    element = wanted.element if isinstance(wanted, ListType) else TENSOR
    made = emitter.insert_node("prim::ListConstruct", call.range, [], [ListType(element, name)])
    return SimpleValue(made.output)


def _limited(emitter: Emitter, expr: Expr | None) -> str:
    """Return the name of the type of a deque with the maximal length ``expr``: ``deque:3`` for ``maxlen=3``, ``deque``
    for None.

    Raises:
        UnsupportedError: the length is not a constant, or negative.
    """
    if expr is None or expr.tree.kind == "none":
        return "deque"
    most = constant_int(emitter.emit_expression(expr))
    if most is None or most < 0:
        raise UnsupportedError(
            "how many elements a deque holds at most must be a constant here",
            expr.range,
            hint="take elements out where they are too many",
        )
    return f"deque:{most}"


def attribute_of_collection(emitter: Emitter, base: SugaredValue, expr: Select, name: str) -> SugaredValue | None:
    if isinstance(base, SimpleValue):
        type = base.value.type
        is_deque = isinstance(type, ListType) and type.is_deque and name in _OF_DEQUES
        if name == "copy" and isinstance(type, (ListType, DictType)) and type.python:
            return CopyOf(base.value)
        if isinstance(type, ListType) and type.python.startswith("deque:"):
            limited = _method_of_limited(emitter, base.value, expr, name)
            if limited is not None:
                return limited
        if is_deque or (isinstance(type, DictType) and type.python == "OrderedDict" and name in _OF_ORDERED):
            method = BoundCall(library_function(f"{name}_"), NamedValue(base.value, range=expr.range))
            return AddedLeft(emitter, method, expr) if name == "appendleft" else method
    return None


def _method_of_limited(emitter: Emitter, deque: Value, expr: Select, name: str) -> SugaredValue | None:
    """Return the attribute ``name`` of a deque with ``maxlen``; None if the limit does not matter for it.

    Raises:
        UnsupportedError: it is ``insert``.
    """
    most = most_elements(deque.type)
    if name == "maxlen":
        return SimpleValue(emitter.graph.insert_constant(most, range=expr.range))
    if name == "insert":
        raise UnsupportedError("'insert' of a deque with maxlen is not supported", expr.range)
    if name in ("appendleft", "extendleft"):
        method: SugaredValue = BoundCall(library_function(f"{name}_"), NamedValue(deque, range=expr.range))
        method = AddedLeft(emitter, method, expr) if name == "appendleft" else method
        return BoundedDequeMethod(method, deque, "shorten_right")
    if name in ("append", "extend"):
        return BoundedDequeOperator(f"aten::{name}", NamedValue(deque, range=expr.range))
    return None


def operator_of_ordered_dicts(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    ordered = [isinstance(item.type, DictType) and item.type.python == "OrderedDict" for item in (lhs, rhs)]
    if operator in ("==", "!=") and all(ordered):
        return _equal_in_order(emitter, operator, lhs, rhs, expr.range)
    return None


def _equal_in_order(emitter: Emitter, operator: str, lhs: Value, rhs: Value, range: SourceRange) -> Value:
    if lhs.type != rhs.type:
        raise TypeMismatchError(f"{lhs.type.annotation} cannot be compared with {rhs.type.annotation}", range)
    keys = [emitter.insert("aten::keys", range, item) for item in (lhs, rhs)]
    same = emitter.insert("aten::eq", range, *keys)
    equal = emitter.insert("aten::__and__", range, same, from_library(emitter, "equal_dicts", range, lhs, rhs))
    return equal if operator == "==" else emitter.insert("aten::__not__", range, equal)


FORMS: Final[dict[str, FormHandler]] = {
    "defaultdict": _defaultdict,
    "OrderedDict": _ordered_dict,
    "deque": _deque,
}
