"""Emit calls of higher-order functions: ``map``, ``filter``, ``sorted(key=…)``, ``functools.partial``, ``reduce`` …"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rekindle.errors import Cause, SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.arguments import emit_sugared_args
from rekindle.frontend.calls.special_calls import expect_arguments
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.primaries import call_builtin, join_types
from rekindle.frontend.expressions.unordered import list_from, unordered_list
from rekindle.frontend.python.getters import ComparedBy
from rekindle.frontend.python.library import library_function
from rekindle.frontend.scopes.refinement import RefinementSet
from rekindle.frontend.statements.generator_loops import begun, elements_of
from rekindle.frontend.statements.loops import append_to, each, list_of
from rekindle.frontend.sugared_values.base import FlattenedValue, Keywords, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.iterables import DerivedIterable, IterableTree, RangeValue
from rekindle.frontend.sugared_values.keyword_arguments import KeywordArguments
from rekindle.frontend.sugared_values.special_forms import GLOBALS
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue, SugaredTuple, parts_of_all
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import (
    ANY,
    BOOL,
    NUMBER,
    STRING,
    TENSOR,
    ListType,
    TensorType,
    TupleType,
    Type,
    union,
    union_members,
    unshaped,
    without_none,
)
from rekindle.syntax.views import Apply, Var


class MappedValue(DerivedIterable):
    """``map(function, iterable)``: each element is computed when a loop reaches it."""

    description = "map"

    def __init__(self, emitter: Emitter, function: SugaredValue, source: SugaredValue, spread: bool) -> None:
        self.emitter = emitter
        self.function = function
        self.source = source
        self.spread = spread
        """Whether each element of the source is a tuple of arguments."""

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return list_of(self.emitter, range, self, None)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        if not self.must_unroll:
            return SimpleValue(self.as_value(range, graph)).as_tuple(range, graph, size_hint)
        return [self._result(range, graph, item) for item in self.source.as_tuple(range, graph, size_hint)]

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        return self._result(range, graph, self.source.item(range, graph, index))

    def _result(self, range: SourceRange, graph: Graph, item: SugaredValue) -> SugaredValue:
        args = item.as_tuple(range, graph) if self.spread else [item]
        return self.function.call_with(range, graph, args, {})


class PartialValue(SugaredFunction):
    """``functools.partial(function, …)``: a function with some of its arguments fixed."""

    def __init__(self, function: SugaredValue, args: Sequence[SugaredValue], kwargs: Keywords) -> None:
        self.function = function
        self.args = list(args)
        self.kwargs = dict(kwargs)

    @property
    def description(self) -> str:
        return f"functools.partial of {self.function.description}"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        return self.function.call_with(range, graph, [*self.args, *args], {**self.kwargs, **kwargs}, targets)

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        count, names = len(self.args), tuple(self.kwargs)

        def join(items: list[SugaredValue]) -> SugaredValue:
            named = dict(zip(names, items[1 + count :], strict=True))
            return PartialValue(items[0], items[1 : 1 + count], named)

        items = [self.function, *self.args, *self.kwargs.values()]
        return parts_of_all(PartialValue, range, graph, items, join, (count, names))


def emit_with_functions(emitter: Emitter, call: Apply) -> SugaredValue | None:
    """Emit a call with functions as arguments, such as ``sorted(key=…)``, or a call of ``len`` of a compile-time value;
    return its result. Return None for other calls."""
    name = call.callee_name
    if name == "len":
        counted = length_known(emitter, call)
        if counted is not None:
            return counted
    elif not call.has_keywords:
        return None
    elif name is not None:
        callee = emitter.emit_sugared(call.callee)
        keyed = next((name for name in _KEYED if callee is GLOBALS[name]), None)
        if keyed is not None:
            return _KEYED[keyed](emitter, call)
    elif call.callee.tree.kind == ".":
        sorting = _sort_in_place(emitter, call)
        if sorting is not None:
            return sorting
    return None


def length_known(emitter: Emitter, call: Apply) -> SugaredValue | None:
    """Emit ``len(range(n))``, ``len(args)`` or ``len(kwargs)``, whose arguments are not values of the graph; return
    None for other calls."""
    item = call.only_argument
    if item is None or emitter.environment.find_local("len") is not None:
        return None
    found: SugaredValue | None = None
    if item.tree.kind == Var.KIND:
        found = emitter.environment.find_static(Var(item.tree).name.name)
    elif item.tree.kind == Apply.KIND and Apply(item.tree).callee.range.text == "range":
        found = emitter.emit_sugared(item)
    if isinstance(found, RangeValue):
        length = found.length(call.range, emitter.graph)  # below zero where there is nothing
        return SimpleValue(call_builtin(emitter, "prim::max", call.range, length, emitter.literal(0, call.range)))
    if isinstance(found, (SugaredTuple, KeywordArguments)):
        return SimpleValue(found.length(call.range, emitter.graph))
    return None


# ------------------------------------------------------------------------------------------------- map and filter


def _map(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    if len(call.inputs) < 2:
        raise TypeMismatchError("map takes a function and at least one iterable", call.range)
    function, *items = call.inputs
    sources = [elements_of(emitter, item) for item in items]
    source = sources[0] if len(sources) == 1 else IterableTree(call.range, emitter.graph, sources)
    return MappedValue(emitter, emitter.emit_sugared(function), source, spread=len(sources) > 1)


def _filter(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``filter(function, xs)`` as a list, which is built at the call."""
    function, source = expect_arguments(emitter, call, 2, 2)
    predicate = None if function.tree.kind == "none" else emitter.emit_sugared(function)
    iterator = emitter.emit_sugared(source).iterator(source.range, emitter.graph)
    result = emitter.insert_node("prim::ListConstruct", call.range, [], [ListType(TENSOR)]).output
    found: list[Type] = []

    def body(item: Value) -> None:
        if not found:
            found.append(unshaped(item.type))
            result.set_type(ListType(found[0]))
        answer = SimpleValue(item)
        if predicate is not None:
            answer = predicate.call_with(call.range, emitter.graph, [answer], {})  # type: ignore[assignment]
        condition = emitter.to_bool(answer.as_value(call.range, emitter.graph), call.range)
        node = emitter.insert_node("prim::If", call.range, [condition], [])
        with emitter.inside(node.add_block()):
            append_to(emitter, call.range, result, item)
        node.add_block()

    each(emitter, call.range, iterator, body)
    return SimpleValue(result)


# ------------------------------------------------------------------------------------------------ sorting by a key


def keys_and_options(
    emitter: Emitter, call: Apply, options: Sequence[str]
) -> tuple[SugaredValue | None, dict[str, Value]]:
    """Emit the keyword arguments of a call. Return the function given as ``key``, or None, and the values of the other
    keyword arguments, which are among ``options``.

    Raises:
        UnsupportedError: there is another keyword argument.
    """
    key: SugaredValue | None = None
    found: dict[str, Value] = {}
    for item in call.attributes:
        name = item.name.name
        if name not in ("key", *options):
            raise UnsupportedError(f"{call.callee.range.text} takes no keyword argument '{name}' here", item.range)
        if name != "key":
            found[name] = emitter.emit_expression(item.value)
        elif item.value.tree.kind != "none":
            key = emitter.emit_sugared(item.value)
    return key, found


def keys_of(emitter: Emitter, xs: Value, key: SugaredValue | None, range: SourceRange) -> Value:
    """Emit the list of the results of ``key`` for the elements of the list ``xs``, and return it; ``xs`` itself if
    ``key`` is None."""
    if key is None:
        return xs
    return MappedValue(emitter, key, SimpleValue(xs), spread=False).as_value(range, emitter.graph)


def _sorted_by(emitter: Emitter, call: Apply, xs: Value) -> Value:
    range = call.range
    key, options = keys_and_options(emitter, call, ("reverse",))
    no = emitter.graph.insert_constant(False, range=range)
    reverse = emitter.to_bool(options["reverse"], range) if "reverse" in options else no
    if isinstance(key, ComparedBy):
        given = [SimpleValue(xs), key.function, SimpleValue(reverse)]
        return (
            library_function("sorted_by_order")
            .call_with(range, emitter.graph, given, {})
            .as_value(range, emitter.graph)
        )
    keys = keys_of(emitter, xs, key, range)
    name = "sorted_by_values" if isinstance(keys.type, ListType) and _is_plain(keys.type.element) else "sorted_by"
    arguments = [SimpleValue(item) for item in (xs, keys, reverse)]
    return library_function(name).call_with(range, emitter.graph, arguments, {}).as_value(range, emitter.graph)


_NUMBERS: Final = union([BOOL, NUMBER])


def _is_plain(type: Type) -> bool:
    """Return whether values of the type are numbers, strings or Tensors, or tuples and lists of them."""
    if isinstance(type, (TupleType, ListType)):
        return all(_is_plain(element) for element in type.contained)
    return type == STRING or isinstance(type, TensorType) or type.is_subtype_of(_NUMBERS)


def _sorted(emitter: Emitter, call: Apply) -> SugaredValue:
    (source,) = expect_arguments(emitter, call, 1, 1)
    return SimpleValue(_sorted_by(emitter, call, unordered_list(emitter, call, source)))


def _sort_in_place(emitter: Emitter, call: Apply) -> SugaredValue | None:
    """Emit ``xs.sort(key=…)`` of a list; return None for other calls."""
    names = {item.name.name for item in call.attributes}
    if "key" not in names or not names <= {"key", "reverse"} or call.inputs:
        return None
    method = emitter.emit_sugared(call.callee)
    if not isinstance(method, BuiltinFunction) or method.kind != "aten::sort" or method.self_value is None:
        return None
    xs = method.self_value.materialize(emitter.graph)
    if not isinstance(xs.type, ListType):
        return None
    ordered = _sorted_by(emitter, call, xs)
    call_builtin(emitter, "aten::clear", call.range, xs)
    call_builtin(emitter, "aten::extend", call.range, xs, ordered)
    return SimpleValue(emitter.graph.insert_constant(None, range=call.range))


def _smallest(emitter: Emitter, call: Apply) -> SugaredValue:
    return _first_by(emitter, call, "min")


def _largest(emitter: Emitter, call: Apply) -> SugaredValue:
    return _first_by(emitter, call, "max")


def _first_by(emitter: Emitter, call: Apply, name: str) -> SugaredValue:
    """Emit ``min`` or ``max`` with a ``key``, of the elements of one iterable, or of several arguments."""
    range = call.range
    sources = call.inputs
    for item in call.attributes:
        if item.name.name == "default" and len(sources) == 1:
            sources = [begun(emitter, sources[0], item.value)]
    key, options = keys_and_options(emitter, call, ("default",))
    if len(sources) == 1:
        xs = unordered_list(emitter, call, sources[0])
    else:
        xs = list_of(emitter, range, SugaredTuple([emitter.emit_sugared(item) for item in call.inputs]), None)
    keys = keys_of(emitter, xs, key, range)

    def found() -> Value:
        return first_by(emitter, range, xs, keys, name)

    if "default" not in options:
        return SimpleValue(found())
    is_empty = emitter.insert("aten::eq", range, emitter.insert("aten::len", range, xs), 0)
    node, true, false = emitter.branch(range, is_empty, RefinementSet(), lambda: options["default"], found)
    return SimpleValue(node.add_output(join_types(emitter, range, true, false)))


def first_by(emitter: Emitter, range: SourceRange, xs: Value, keys: Value, name: str) -> Value:
    """Emit a search for the first element of the list ``xs`` with the smallest (``name`` is ``min``) or largest
    (``max``) of ``keys``, and return it. The program raises ValueError if ``xs`` is empty."""
    what = emitter.graph.insert_constant(_said_of_nothing(name), range=range)
    largest = emitter.graph.insert_constant(name == "max", range=range)
    arguments = [SimpleValue(item) for item in (xs, keys, largest, what)]
    return library_function("first_by").call_with(range, emitter.graph, arguments, {}).as_value(range, emitter.graph)


# -------------------------------------------------------------------------------------------- functools, itertools


def _partial(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    args, kwargs = emit_sugared_args(emitter, call)
    if not args:
        raise TypeMismatchError("partial takes a function", call.range)
    return PartialValue(args[0], args[1:], kwargs)


def _reduce(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    function, source, *initial = expect_arguments(emitter, call, 2, 3)
    xs = SimpleValue(list_from(emitter, emitter.emit_sugared(source), source.range))
    args: list[SugaredValue] = [emitter.emit_sugared(function), xs]
    if initial:
        args.append(emitter.emit_sugared(initial[0]))
    name = "reduce_from" if initial else "reduce"
    return library_function(name).call_with(call.range, emitter.graph, args, {})


def _has_length(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit the length test of a sequence pattern: whether a value is a list or tuple of the given length, or at least
    that long.

    Raises:
        TypeMismatchError: the type of the value, such as Any, does not determine whether it is a list or tuple.
    """
    subject, count, exact = call.inputs
    value = emitter.emit_expression(subject)
    wanted, is_exact = int(count.tree.string(0)), exact.tree.kind == "true"
    if value.type.is_optional and isinstance(without_none(value.type), (ListType, TupleType)):
        none = emitter.graph.insert_constant(None, range=call.range)
        node, _, _ = emitter.branch(
            call.range,
            emitter.insert("aten::__isnot__", call.range, value, none),
            RefinementSet(),
            lambda: _length_fits(emitter, call, emitter.without_none(value, call.range), wanted, is_exact),
            lambda: emitter.graph.insert_constant(False, range=call.range),
        )
        return SimpleValue(node.add_output(BOOL))
    return SimpleValue(_length_fits(emitter, call, value, wanted, is_exact))


def _length_fits(emitter: Emitter, call: Apply, value: Value, wanted: int, is_exact: bool) -> Value:
    if isinstance(value.type, ListType):
        length = emitter.insert("aten::len", call.range, value)
        return emitter.insert("aten::eq" if is_exact else "aten::ge", call.range, length, wanted)
    if not isinstance(value.type, TupleType) and any(map(_may_be_sequence, union_members(value.type))):
        raise TypeMismatchError(
            f"a sequence pattern cannot match a value of type {value.type}",
            call.range,
            hint="check it first: if isinstance(x, T) and T is a list or tuple",
            cause=Cause.MISSING_REFINEMENT,
        )
    found = len(value.type.elements) if isinstance(value.type, TupleType) else -1
    answer = found == wanted if is_exact else found >= wanted
    return emitter.graph.insert_constant(answer, range=call.range)


def _may_be_sequence(type: Type) -> bool:
    return type == ANY or isinstance(type, (ListType, TupleType))


def _positional(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit the read of the attribute to which a position in a class pattern refers.

    Raises:
        TypeMismatchError: the pattern has more parts than ``__match_args__``.
    """
    subject, cls, index = call.inputs
    python = emitter.emit_sugared(cls).python_class(cls.range)
    names: Sequence[str] = getattr(python, "__match_args__", ())
    position = int(index.tree.string(0))
    if position >= len(names):
        raise TypeMismatchError(
            f"{cls.range.text} has {len(names)} attributes by position (__match_args__), and this is one more",
            call.range,
        )
    return emitter.emit_sugared(subject).attribute(call.range, emitter.graph, names[position])


def _without(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit a copy of a dict without some keys: ``**rest`` of a mapping pattern."""
    subject, *keys = [emitter.emit_expression(item) for item in call.inputs]
    copied = call_builtin(emitter, "aten::copy", call.range, subject)
    for key in keys:
        call_builtin(emitter, "aten::Delete", call.range, copied, key)
    return SimpleValue(copied)


FORMS: Final[dict[str, FormHandler]] = {
    "map": _map,
    "$has_length": _has_length,
    "$positional": _positional,
    "$without": _without,
    "filter": _filter,
    "partial": _partial,
    "reduce": _reduce,
}


def _said_of_nothing(name: str) -> str:
    """Return the error message of ``min([])`` or ``max([])`` in this version of Python."""
    try:
        max([]) if name == "max" else min([])
    except ValueError as error:
        return str(error)
    raise AssertionError("there is no smallest of nothing")


_KEYED: Final[dict[str, Callable[[Emitter, Apply], SugaredValue]]] = {
    "sorted": _sorted,
    "min": _smallest,
    "max": _largest,
}
"""Emitters of builtins with a ``key``, by name."""
