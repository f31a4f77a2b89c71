"""Constants stand at the start of the graph, each once.

.. code-block:: text

    %1 : int = prim::Constant[value=1]()                 %1 : int = prim::Constant[value=1]()
    %2 : int = aten::add(%x, %1)              becomes    %2 : int = aten::add(%x, %1)
    %3 : int = prim::Constant[value=1]()                 %4 : int = aten::add(%2, %1)
    %4 : int = aten::add(%2, %3)

Two constants that can be written to become one only if nothing writes to either and neither leaves the graph; else a
write to the one would be seen in the other.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import torch

from rekindle.analysis.alias_groups import AliasGroups
from rekindle.analysis.effects import is_immutable
from rekindle.ir.graph import Graph, Node
from rekindle.passes.constants import constant_key


@dataclass(slots=True)
class ConstantPooling:
    """See the module."""

    name: ClassVar[str] = "constant_pooling"

    def run(self, graph: Graph) -> bool:
        constants = graph.find_nodes("prim::Constant")
        shared = _Sharing(graph) if any(not is_immutable(node.output.type) for node in constants) else None
        seen: dict[Hashable, list[Node]] = {}
        changed = False
        last: Node | None = None
        for node in constants:
            alike = seen.setdefault(constant_key(node), [])
            same = next((other for other in alike if _can_merge(node, other, shared)), None)
            if same is not None:
                node.output.replace_all_uses_with(same.output)
                node.destroy()
                changed = True
                continue
            alike.append(node)
            changed |= _move_behind(node, last)
            last = node
        return changed


def _move_behind(node: Node, last: Node | None) -> bool:
    """Move ``node`` behind ``last``, to the start of the graph without one; returns whether it stood elsewhere."""
    place = node.graph.return_node if last is None else last
    if place.next is node:
        return False
    node.move_after(place)
    return True


class _Sharing:
    """Which constants nothing can tell apart by writing to them."""

    def __init__(self, graph: Graph) -> None:
        self.aliases = AliasGroups(graph)
        self.written = self.aliases.all_written_groups()
        self.returned = {self.aliases.group(value) for value in graph.outputs}

    def allows(self, node: Node) -> bool:
        group = self.aliases.group(node.output)
        return group not in self.written and group not in self.returned and not self.aliases.is_outside(node.output)


def _can_merge(node: Node, other: Node, sharing: _Sharing | None) -> bool:
    if is_immutable(node.output.type):
        return True
    mine, theirs = node.attributes.get("value"), other.attributes.get("value")
    if mine is theirs:
        return True
    if sharing is None or not sharing.allows(node) or not sharing.allows(other):
        return False
    if isinstance(mine, torch.Tensor) and isinstance(theirs, torch.Tensor):
        return torch.equal(mine, theirs)
    return True
