"""Iterables of loops that are not values of the graph: ``range``, ``zip``, ``enumerate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue, SugaredTuple
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import BOOL, INT, ListType, Type


class IterableValue(SugaredValue):
    """An iterable over which a loop can iterate directly: it is its own iterator."""

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        return self


class DerivedIterable(IterableValue):
    """An iterable whose elements are computed from those of ``source``, each when a loop needs it."""

    source: SugaredValue

    @property
    def gone_over(self) -> list[Value]:
        return self.source.gone_over

    @property
    def static_length(self) -> int | None:
        return self.source.static_length

    @property
    def must_unroll(self) -> bool:
        return self.source.must_unroll

    @property
    def bounded_by(self) -> list[SugaredValue]:
        return self.source.bounded_by

    def length(self, range: SourceRange, graph: Graph) -> Value:
        return self.source.length(range, graph)


class RangeValue(IterableValue):
    """``range(stop)``, ``range(start, stop)``, ``range(start, stop, step)``

    ``static_length`` is set if the range is iterated together with an iterable of known length, as in ``enumerate`` of
    a module list.
    """

    description = "a range"
    static_length: int | None = None

    def __init__(
        self, range: SourceRange, graph: Graph, inputs: Sequence[Value], static_length: int | None = None
    ) -> None:
        if graph.follows_python:
            inputs = [graph.insert("aten::Int", [each], range=range) if each.type == BOOL else each for each in inputs]
        for index, value in enumerate(inputs):
            if value.type != INT:
                raise TypeMismatchError(f"range takes ints, argument {index + 1} is {value.type.annotation}", range)
        if not 1 <= len(inputs) <= 3:
            raise TypeMismatchError(f"range takes 1 to 3 arguments, got {len(inputs)}", range)
        self.only_stop = len(inputs) == 1
        self.static_length = static_length
        self.start = graph.insert_constant(0, range=range) if self.only_stop else inputs[0]
        self.stop = inputs[0] if self.only_stop else inputs[1]
        self.step = inputs[2] if len(inputs) == 3 else graph.insert_constant(1, range=range)

    def length(self, range: SourceRange, graph: Graph) -> Value:
        if self.static_length is not None:
            return graph.insert_constant(self.static_length, range=range)
        if self.only_stop:
            return self.stop
        return graph.insert("aten::__range_length", [self.start, self.stop, self.step], range=range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        if self.only_stop:
            return SimpleValue(index)
        return SimpleValue(graph.insert("aten::__derive_index", [index, self.start, self.step], range=range))

    def reversed(self, range: SourceRange, graph: Graph) -> RangeValue:
        """Return the range with the same elements in the opposite order, and emit its bounds."""

        def emit(operator: str, *operands: Value | int) -> Value:
            return graph.insert(f"aten::{operator}", list(operands), range=range)

        last = emit("add", self.start, emit("mul", emit("sub", self.length(range, graph), 1), self.step))
        before = emit("sub", self.start, self.step)
        return RangeValue(range, graph, [last, before, emit("neg", self.step)])


_UNKNOWN_LENGTH: Final = (
    "modules or tuples cannot be iterated over beside something whose length is known only when the program runs"
)


class IterableTree(IterableValue):
    """Several iterables over which a loop iterates together: ``zip`` and ``enumerate``, which may be nested.

    The loop is unrolled if one of them must be. It then has as many iterations as the shortest whose length is known at
    compile time, and each iteration runs only if the others have an element for it.
    """

    description = "zip or enumerate"
    static_length: int | None = None
    must_unroll = False

    def __init__(self, range: SourceRange, graph: Graph, children: Sequence[SugaredValue]) -> None:
        self.children = list(children)
        self.must_unroll = any(child.must_unroll for child in children)
        if not self.must_unroll:
            return
        known = [child.static_length for child in children if child.static_length is not None]
        if not known:
            raise UnsupportedError(_UNKNOWN_LENGTH, range)
        self.static_length = min(known)

    @property
    def bounded_by(self) -> list[SugaredValue]:
        if not self.must_unroll:
            return []
        own = [child for child in self.children if child.static_length is None]
        return own + [each for child in self.children for each in child.bounded_by]

    @property
    def gone_over(self) -> list[Value]:
        return [value for child in self.children for value in child.gone_over]

    def _leaves(self) -> list[SugaredValue]:
        leaves: list[SugaredValue] = []
        for child in self.children:
            leaves.extend(child._leaves() if isinstance(child, IterableTree) else [child])
        return leaves

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        if self.static_length is None:
            return super().as_tuple(range, graph, size_hint)
        if self.bounded_by:
            raise UnsupportedError(_UNKNOWN_LENGTH, range)
        count = self.static_length
        positions = [graph.insert_constant(i, range=range) for i in _indices(count)]
        return [self.item(range, graph, position) for position in positions]

    def length(self, range: SourceRange, graph: Graph) -> Value:
        lengths = [leaf.length(range, graph) for leaf in self._leaves()]
        node = graph.insert_node(graph.create("prim::ListConstruct", lengths, types=[ListType(INT)], range=range))
        return graph.insert("prim::min", [node.output], range=range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        return SugaredTuple([child.item(range, graph, index) for child in self.children])


_indices = range
