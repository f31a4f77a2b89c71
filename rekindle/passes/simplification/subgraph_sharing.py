"""Share compiled objects between nodes whose subgraphs are structurally equal.

A loop over layers that was unrolled leaves the same group of operators many times. The objects compiled for a group
(its derivative, kernels, plans) are created once for all equal groups of a graph: same operators from the same source
ranges, same types, same constants.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from rekindle.analysis.constants import attribute_key
from rekindle.errors import SourceRange
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import AttributeValue, Block, Graph, Node, Value
from rekindle.ir.types import Type

_Made = TypeVar("_Made")


class SubgraphCache(Generic[_Made]):
    """Cache, with weak references, of objects made for the attribute ``Subgraph`` of nodes."""

    def __init__(self) -> None:
        self._made: Final[WeakKeyDictionary[Graph, WeakValueDictionary[Hashable, _Made]]] = WeakKeyDictionary()

    def of(self, node: Node, make: Callable[[Graph], _Made], discriminator: Hashable = None) -> _Made:
        """Return the object cached for a node of the same graph with an equal subgraph and ``discriminator``. If there
        is none, call ``make`` with the subgraph of ``node``, and cache the result."""
        subgraph = node.get_graph("Subgraph")
        made = self._made.setdefault(node.graph, WeakValueDictionary())
        key = structural_key(subgraph), discriminator
        found = made.get(key)
        if found is None:
            found = made[key] = make(subgraph)
        return found


def structural_key(graph: Graph) -> Hashable:
    """Return a key that is equal for structurally equal graphs; names of values are ignored. Tensors and sources are
    compared by identity, so a key is valid for the lifetime of its graph."""
    return _KeyBuilder(of_range=_of_range).of_block(graph.block)


def computation_key(graph: Graph) -> Hashable | None:
    """Return a key that is equal for graphs of the same operators, types and constants, whatever their source ranges.
    It may outlive the graph. None for graphs with constants that are compared by identity, such as tensors."""
    try:
        return _KeyBuilder(of_range=None).of_block(graph.block)
    except _HasObjects:
        return None


class _HasObjects(Exception):
    """A graph holds constants that are compared by identity."""


@dataclass(slots=True)
class _KeyBuilder:
    """Builds the key of a graph. ``of_range`` is the key of a source range; None ignores source ranges."""

    of_range: Callable[[SourceRange], Hashable] | None
    numbers: dict[Value, int] = field(default_factory=dict)

    def of_block(self, block: Block) -> Hashable:
        numbers = self.numbers
        for value in block.inputs:
            numbers[value] = len(numbers)
        nodes = tuple([self._of_node(node) for node in block.nodes])
        types = tuple([value.type for value in block.inputs])
        return types, nodes, tuple([numbers[value] for value in block.outputs])

    def _of_node(self, node: Node) -> Hashable:
        numbers = self.numbers
        inputs = tuple([numbers[value] for value in node.inputs])
        attributes = tuple([(name, self._of_attribute(value)) for name, value in sorted(node.attributes.items())])
        blocks = tuple([self.of_block(block) for block in node.blocks])
        for output in node.outputs:
            numbers[output] = len(numbers)
        types = tuple([output.type for output in node.outputs])
        key = node.kind, node.operator, inputs, attributes, blocks, types
        if self.of_range is None:
            return key
        of_range = self.of_range
        return key, of_range(node.range), tuple([(name, of_range(range)) for name, range in node.callstack])

    def _of_attribute(self, value: AttributeValue) -> Hashable:
        if self.of_range is None and not _is_plain(value):
            raise _HasObjects
        if isinstance(value, torch.Tensor):
            return id(value)
        if isinstance(value, Graph):
            return _KeyBuilder(self.of_range).of_block(value.block)
        if isinstance(value, list):
            return tuple([self._of_attribute(item) for item in value])
        return attribute_key(value)


def _is_plain(value: object) -> bool:
    """Return whether an attribute is compared by its value, not by identity. Graphs are compared node by node."""
    if isinstance(value, ConstantObject):
        return _is_plain(value.value)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, int | float | complex | str | torch.dtype | torch.device | Graph | Type)


def _of_range(range: SourceRange) -> Hashable:
    return id(range.source), range.start, range.end
