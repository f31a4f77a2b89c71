"""Iterables other than lists: ``itertools.count``, ``cycle``, ``repeat``, and ``islice`` of these and of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.iterables import IterableValue
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.ir.control_flow import MAX_TRIP_COUNT
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import INT, Type


def _insert(range: SourceRange, graph: Graph, kind: str, *values: Value) -> Value:
    arguments = [NamedValue(value, range=range) for value in values]
    return BuiltinFunction(kind).call(CallSite(range, graph, arguments)).as_value(range, graph)


class InfiniteIterator(IterableValue):
    """An iterator without an end. A ``zip`` of it and a list ends with the list."""

    name = ""

    @property
    def description(self) -> str:
        return f"itertools.{self.name}"

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(
            f"{self.description} has no end; it cannot be used as a value",
            range,
            hint="go over it in a loop that ends, beside a list in zip, or over itertools.islice(…) of it",
        )

    def length(self, range: SourceRange, graph: Graph) -> Value:
        return graph.insert_constant(MAX_TRIP_COUNT, range=range)


class CountValue(InfiniteIterator):
    """``itertools.count(start, step)``. ``add_up`` emits the addition of ``step`` to ``start`` once for each iteration.
    Python adds numbers other than ints in this way, so that their sums are rounded as often."""

    name = "count"

    def __init__(self, start: Value, step: Value, add_up: Callable[..., SugaredValue]) -> None:
        self.start = start
        self.step = step
        self.add_up = add_up

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        if self.start.type != INT or self.step.type != INT:
            return self.add_up(*map(SimpleValue, (self.start, self.step, index)))
        passed = _insert(range, graph, "aten::mul", self.step, index)
        return SimpleValue(_insert(range, graph, "aten::add", self.start, passed))


class RepeatValue(InfiniteIterator):
    """``itertools.repeat(x)``"""

    name = "repeat"

    def __init__(self, value: SugaredValue) -> None:
        self.value = value

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        return self.value


class CycleValue(InfiniteIterator):
    """``itertools.cycle(xs)``. It has no elements if ``xs`` is empty."""

    name = "cycle"

    def __init__(self, xs: Value) -> None:
        self.xs = xs

    def length(self, range: SourceRange, graph: Graph) -> Value:
        one = graph.insert_constant(1, range=range)
        some = _insert(range, graph, "prim::min", _insert(range, graph, "aten::len", self.xs), one)
        return _insert(range, graph, "aten::mul", some, super().length(range, graph))

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        length = _insert(range, graph, "aten::len", self.xs)
        place = _insert(range, graph, "aten::remainder", index, length)
        return SimpleValue(self.xs).item(range, graph, place)


class IsliceValue(IterableValue):
    """``itertools.islice(source, start, stop, step)`` of an iterable other than a list."""

    description = "itertools.islice"

    def __init__(self, source: SugaredValue, bounds: Sequence[Value]) -> None:
        self.source = source
        self.start, self.stop, self.step = bounds

    def length(self, range: SourceRange, graph: Graph) -> Value:
        end = _insert(range, graph, "prim::min", self.stop, self.source.length(range, graph))
        return graph.insert("aten::__range_length", [self.start, end, self.step], range=range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        place = graph.insert("aten::__derive_index", [index, self.start, self.step], range=range)
        return self.source.item(range, graph, place)
