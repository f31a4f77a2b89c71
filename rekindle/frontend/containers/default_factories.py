"""What makes the values of a ``defaultdict``: functions of the program, by numbers that stand in the types of dicts."""

from __future__ import annotations

from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.sugared_values import values
from rekindle.frontend.sugared_values.base import StaticValue, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import DictType

_FACTORIES: Final[list[SugaredValue]] = []
_NUMBERS: Final[dict[object, int]] = {}


def number_of_factory(factory: SugaredValue) -> int:
    """The number of a factory, the same for the same function."""
    identity = (type(factory), factory.identity) if isinstance(factory, StaticValue) else factory
    if identity not in _NUMBERS:
        _NUMBERS[identity] = len(_FACTORIES)
        _FACTORIES.append(factory)
    return _NUMBERS[identity]


def item_or_made(range: SourceRange, graph: Graph, found: Value, key: Value) -> SugaredValue:
    """``d[key]`` of a dict whose factory makes what is not there: it runs where it is needed only."""
    type = found.type
    assert isinstance(type, DictType)
    factory = _FACTORIES[int(type.python.partition(":")[2])]
    is_there = graph.insert("aten::__contains__", [found, key], range=range)
    node = graph.insert_node(graph.create("prim::If", [is_there], outputs=0, range=range))
    node.add_block()
    with graph.inserting_at_end(node.add_block()):
        made = factory.call_with(range, graph, [], {}).as_value(range, graph)
        graph.insert("aten::_set_item", [found, key, made], range=range)
    return SimpleValue(graph.insert("aten::__getitem__", [found, key], range=range))


values.item_or_made = item_or_made
