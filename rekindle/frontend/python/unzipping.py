"""Emit ``zip(*rows)``: transpose a list of rows, whose number is known only at run time.

The columns are tuples with as many elements as there are rows. If rows are tuples with elements of different types,
there are as many columns as types, or none if there is no row::

    images, labels = zip(*batch)      becomes      if len(batch) == 0:
                                                       raise ValueError("not enough values to unpack …")
                                                   images = tuple(row[0] for row in batch)
                                                   labels = tuple(row[1] for row in batch)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.calls.insertion import constant_int
from rekindle.frontend.calls.special_calls import emit_zip
from rekindle.frontend.containers.variable_length_tuples import as_tuple_type
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.primaries import from_library
from rekindle.frontend.expressions.unordered import list_from
from rekindle.frontend.python.getters import Getter
from rekindle.frontend.python.higher_order import MappedValue
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.iterables import DerivedIterable, IterableTree, IterableValue, RangeValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import ListType, TupleType, Type, unshaped
from rekindle.syntax.views import Apply, Starred


class ListedColumns(DerivedIterable):
    """``zip(*rows)`` whose columns have one type: ``source`` is a list of them."""

    description = "zip"

    def __init__(self, columns: Value) -> None:
        self.source = SimpleValue(columns)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        return self.source.as_tuple(range, graph, size_hint)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        return self.source.item(range, graph, index)


class TypedColumns(IterableValue):
    """``zip(*rows)`` whose ``columns`` have different types. If there are no ``rows``, there are no columns."""

    description = "zip"
    must_unroll = True

    def __init__(self, emitter: Emitter, rows: Value, columns: Sequence[Value], range: SourceRange) -> None:
        self.emitter = emitter
        self.columns = [SimpleValue(column) for column in columns]
        self.has_rows = emitter.insert("aten::gt", range, emitter.insert("aten::len", range, rows), 0)
        count = emitter.insert("aten::mul", range, emitter.insert("aten::Int", range, self.has_rows), len(self.columns))
        self.bounds: list[SugaredValue] = [RangeValue(range, emitter.graph, [count])]

    @property
    def static_length(self) -> int | None:
        return len(self.columns)

    @property
    def bounded_by(self) -> list[SugaredValue]:
        return self.bounds

    def length(self, range: SourceRange, graph: Graph) -> Value:
        return self.bounds[0].length(range, graph)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        if size_hint is None:
            raise UnsupportedError(
                "the columns have different types, and their number is known only when the program runs",
                range,
                hint="unpack them: a, b = zip(*rows)",
            )
        node = self.emitter.insert_node("prim::If", range, [self.has_rows], [])
        node.add_block()
        with self.emitter.inside(node.add_block()):
            message = f"not enough values to unpack (expected {size_hint}, got 0)"
            said = [graph.insert_constant(text, range=range) for text in (message, "builtins.ValueError")]
            graph.insert_node(graph.create("prim::RaiseException", said, outputs=0, range=range))
        return list(self.columns)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        position = constant_int(index)
        assert position is not None
        return self.columns[position]


def _zip(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``zip(*rows)``, and other calls of ``zip``.

    Raises:
        UnsupportedError: a list of rows is passed beside other arguments, or with ``strict=True``.
    """
    if all(item.tree.kind != Starred.KIND for item in call.inputs):
        return emit_zip(emitter, call, hint)
    children: list[SugaredValue] = []
    for item in call.inputs:
        source = emitter.emit_sugared(Starred(item.tree).value if item.tree.kind == Starred.KIND else item)
        if item.tree.kind != Starred.KIND:
            children.append(source.iterator(item.range, emitter.graph))
        elif source.static_length is not None or _is_tuple(source):
            parts = source.as_tuple(item.range, emitter.graph)
            children += [part.iterator(item.range, emitter.graph) for part in parts]
        elif len(call.inputs) == 1 and not call.attributes:
            return _columns(emitter, list_from(emitter, source, item.range), item.range)
        else:
            raise UnsupportedError(
                "zip takes a list of rows of unknown length only as its one argument, zip(*rows)", item.range
            )
    if call.attributes:
        raise UnsupportedError("zip takes no keyword argument beside '*' here", call.attributes[0].range)
    return IterableTree(call.range, emitter.graph, children)


def _is_tuple(source: SugaredValue) -> bool:
    return isinstance(source, SimpleValue) and isinstance(source.value.type, TupleType)


def _columns(emitter: Emitter, rows: Value, range: SourceRange) -> SugaredValue:
    """Emit the columns of a list of rows, and return them as an iterable."""
    row = rows.type.element if isinstance(rows.type, ListType) else None
    if isinstance(row, TupleType) and len({unshaped(type) for type in row.elements}) > 1:
        columns = [
            MappedValue(emitter, Getter("itemgetter", [at]), SimpleValue(rows), spread=False).as_value(
                range, emitter.graph
            )
            for at in _indices(len(row.elements))
        ]
        return TypedColumns(emitter, rows, [as_tuple_type(column) for column in columns], range)
    columns_list = from_library(emitter, "transposed", range, rows)
    column = columns_list.type.contained[0].contained[0]
    return ListedColumns(columns_list.set_type(ListType(ListType(column, "tuple"))))


_indices = range

FORMS: Final[dict[str, FormHandler]] = {"zip": _zip}
