"""Pool constants: move them to the start of the graph, each once.

.. code-block:: text

    %1 : int = prim::Constant[value=1]()                 %1 : int = prim::Constant[value=1]()
    %2 : int = aten::add(%x, %1)              becomes    %2 : int = aten::add(%x, %1)
    %3 : int = prim::Constant[value=1]()                 %4 : int = aten::add(%2, %1)
    %4 : int = aten::add(%2, %3)

Two mutable constants with different objects are merged only if nothing writes to either and neither escapes; else a
write to one would be visible in the other.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb, MemoryLocations
from rekindle.analysis.constants import constant_key
from rekindle.analysis.effects import is_immutable
from rekindle.ir.constants import are_equal_tensors
from rekindle.ir.graph import Graph, Node
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class ConstantPooling:
    '''Move constants to the start of the graph, and merge equal ones. The docstring of the module shows the IR before
    and after.

    The constants keep their order; ``latest_first`` reverses it. The emitter inserts each constant before the earlier
    ones, so that reversing the constants of a graph that was just emitted restores the order of the source, as in
    ``torch.jit``.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import ConstantPooling, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : int):
        ...   %1 : int = prim::Constant[value=2]()
        ...   %2 : int = aten::add(%x, %1)
        ...   %3 : int = prim::Constant[value=2]()
        ...   %4 : int = aten::add(%2, %3)
        ...   return (%4)
        ... """)
        >>> run_passes(graph, [ConstantPooling()])
        True
        >>> print(graph)
        graph(%x : int):
          %1 : int = prim::Constant[value=2]()
          %2 : int = aten::add(%x, %1)
          %4 : int = aten::add(%2, %1)
          return (%4)
    '''

    name: ClassVar[str] = "constant_pooling"
    latest_first: bool = False

    def run(self, graph: Graph) -> bool:
        constants = graph.find_nodes("prim::Constant")
        shared = _Sharing(graph) if any(not is_immutable(node.output.type) for node in constants) else None
        seen: dict[Hashable, list[Node]] = {}
        kept: list[Node] = []
        for node in constants:
            alike = seen.setdefault(constant_key(node), [])
            same = next((other for other in alike if _can_merge(node, other, shared)), None)
            if same is None or not may_change("merge", node):
                alike.append(node)
                kept.append(node)
            else:
                node.replace_with(same.output)
        moved = _put_at_start(graph, kept[::-1] if self.latest_first else kept)
        return moved or len(kept) < len(constants)


def _put_at_start(graph: Graph, nodes: list[Node]) -> bool:
    """Move ``nodes`` to the start of the graph, in their order; return whether any was moved."""
    moved = False
    place = graph.return_node
    for node in nodes:
        if place.next is not node:
            if not may_change("move", node):
                continue
            node.move_after(place)
            moved = True
        place = node
    return moved


class _Sharing:
    """Alias query: which constants may be merged, since no write distinguishes them."""

    def __init__(self, graph: Graph) -> None:
        self.aliases = AliasDb(graph)
        self.returned: MemoryLocations = 0
        for value in graph.outputs:
            self.returned |= self.aliases.reachable(value)

    def allows(self, node: Node) -> bool:
        constant = node.output
        if self.aliases.has_writers(constant) or self.aliases.escapes(constant):
            return False
        return not self.aliases.reachable(constant) & self.returned


def _can_merge(node: Node, other: Node, sharing: _Sharing | None) -> bool:
    if is_immutable(node.output.type):
        return True
    mine, theirs = node.attributes.get("value"), other.attributes.get("value")
    if mine is theirs:
        return True
    if sharing is None or not sharing.allows(node) or not sharing.allows(other):
        return False
    if isinstance(mine, torch.Tensor) and isinstance(theirs, torch.Tensor):
        return are_equal_tensors(mine, theirs)
    return True
