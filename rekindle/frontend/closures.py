"""Closures become graphs of their own.

The emitter writes what is forked as a block, which uses what is around it as any block does:

.. code-block:: text

    %f : Future[Tensor] = prim::fork()               %f : Future[Tensor] = prim::fork_0(%x)
      block0():                                      …
        %1 : Tensor = aten::relu(%x)       becomes   with prim::fork_0 = graph(%x : Tensor):
        -> (%1)                                        %1 : Tensor = aten::relu(%x)
                                                       return (%1)
"""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Graph, Node, Value

CLOSURES: Final = ("prim::fork", "prim::awaitable")
"""The kinds of nodes that run a graph of their own later."""


def lift_closures(graph: Graph) -> None:
    """Give every ``prim::fork`` and ``prim::awaitable`` that has a block a graph instead, and what the block uses as
    its inputs."""
    for kind in CLOSURES:
        for node in graph.find_nodes(kind):
            if node.blocks:
                _lift(node)


def _lift(node: Node) -> None:
    """The captured values are inputs in the order in which they are first used."""
    subgraph = Graph()
    captured: dict[Value, Value] = {}

    def outside(value: Value) -> Value:
        found = captured.get(value)
        if found is None:
            found = captured[value] = subgraph.add_input().copy_metadata(value)
        return found

    subgraph.block.clone_from(node.blocks[0], outside)
    node.erase_block(0)
    for value in captured:
        node.add_input(value)
    node.set_attribute("Subgraph", subgraph)
