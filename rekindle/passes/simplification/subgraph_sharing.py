"""Nodes that hold graphs which are alike share what runs these.

A loop over layers that was unrolled leaves the same group of operators many times. What is made for a group (its
derivative, kernels, plans) is made once for all of a graph that are alike: same operators from the same places in the
source, same types, same constants.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from rekindle.analysis.constants import attribute_key
from rekindle.errors import SourceRange
from rekindle.ir.graph import AttributeValue, Block, Graph, Node, Value

_Made = TypeVar("_Made")


class SubgraphCache(Generic[_Made]):
    """What was made for the attributes ``Subgraph`` of nodes, for as long as somebody holds it."""

    def __init__(self) -> None:
        self._made: Final[WeakKeyDictionary[Graph, WeakValueDictionary[Hashable, _Made]]] = WeakKeyDictionary()

    def of(self, node: Node, make: Callable[[Graph], _Made], discriminator: Hashable = None) -> _Made:
        """What an alike node of the same graph had made, or what ``make`` gives now. Nodes that differ in
        ``discriminator`` share nothing."""
        subgraph = node.get_graph("Subgraph")
        made = self._made.setdefault(node.graph, WeakValueDictionary())
        key = structural_key(subgraph), discriminator
        found = made.get(key)
        if found is None:
            found = made[key] = make(subgraph)
        return found


def structural_key(graph: Graph) -> Hashable:
    """Equal for two graphs that are alike; names of values make no difference. It tells tensors and sources apart by
    who they are, and so holds for as long as the graph does."""
    numbers: dict[Value, int] = {}
    return _of_block(graph.block, numbers)


def _of_block(block: Block, numbers: dict[Value, int]) -> Hashable:
    for value in block.inputs:
        numbers[value] = len(numbers)
    nodes = tuple([_of_node(node, numbers) for node in block.nodes])
    types = tuple([value.type for value in block.inputs])
    return types, nodes, tuple([numbers[value] for value in block.outputs])


def _of_node(node: Node, numbers: dict[Value, int]) -> Hashable:
    inputs = tuple([numbers[value] for value in node.inputs])
    attributes = tuple([(name, _of_attribute(value)) for name, value in sorted(node.attributes.items())])
    blocks = tuple([_of_block(block, numbers) for block in node.blocks])
    for output in node.outputs:
        numbers[output] = len(numbers)
    types = tuple([output.type for output in node.outputs])
    places = tuple([(name, _of_range(range)) for name, range in node.callstack])
    return node.kind, id(node.operator), inputs, attributes, blocks, types, _of_range(node.range), places


def _of_range(range: SourceRange) -> Hashable:
    return id(range.source), range.start, range.end


def _of_attribute(value: AttributeValue) -> Hashable:
    if isinstance(value, torch.Tensor):
        return id(value)
    if isinstance(value, Graph):
        return structural_key(value)
    if isinstance(value, list):
        return tuple([_of_attribute(item) for item in value])
    return attribute_key(value)
