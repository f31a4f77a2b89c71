"""Factories of a ``defaultdict``: functions of the program, to which dict types refer by number."""

from __future__ import annotations

from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.sugared_values.base import StaticValue, SugaredValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import DictType

_FACTORIES: Final[list[SugaredValue]] = []
_NUMBERS: Final[dict[object, int]] = {}


def number_of_factory(factory: SugaredValue) -> int:
    """Return the number that identifies a factory; equal for the same function. A new factory is registered for the
    process."""
    identity = (type(factory), factory.identity) if isinstance(factory, StaticValue) else factory
    if identity not in _NUMBERS:
        _NUMBERS[identity] = len(_FACTORIES)
        _FACTORIES.append(factory)
    return _NUMBERS[identity]


def insert_item_or_default(range: SourceRange, graph: Graph, table: Value, key: Value) -> Value:
    """Insert ``table[key]`` of a ``defaultdict`` whose factory is a function of the program; return the item. For a
    missing key, the factory is called and its result stored."""
    type = table.type
    assert isinstance(type, DictType)
    factory = _FACTORIES[int(type.python.partition(":")[2])]
    is_there = graph.insert("aten::__contains__", [table, key], range=range)
    node = graph.insert_node(graph.create("prim::If", [is_there], outputs=0, range=range))
    node.add_block()
    with graph.inserting_at_end(node.add_block()):
        default = factory.call_with(range, graph, [], {}).as_value(range, graph)
        graph.insert("aten::_set_item", [table, key, default], range=range)
    return graph.insert("aten::__getitem__", [table, key], range=range)
