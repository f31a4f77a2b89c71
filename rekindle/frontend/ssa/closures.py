"""Lift closures: the block of each becomes a graph of its own.

The emitter writes what is forked as a block, which uses values from outside as any block does:

.. code-block:: text

    %f : Future[Tensor] = prim::fork()               %f : Future[Tensor] = prim::fork_0(%x)
      block0():                                      …
        %1 : Tensor = aten::relu(%x)       becomes   with prim::fork_0 = graph(%x : Tensor):
        -> (%1)                                        %1 : Tensor = aten::relu(%x)
                                                       return (%1)
"""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Block, Graph, Node, Value

CLOSURES: Final = ("prim::fork", "prim::awaitable", "prim::Try")
"""Kinds of nodes that run a graph of their own: later, or to catch its errors."""

_REPEATABLE: Final = ("prim::Constant", "prim::Uninitialized")
"""Kinds of nodes that may be copied into another graph."""


def lift_closures(graph: Graph) -> None:
    """Replace the block of every node of :data:`CLOSURES` in ``graph`` by a graph, whose inputs are the captured
    values."""
    _lift_within(graph.block)


def _lift_within(block: Block) -> None:
    for node in block.nodes:
        for inner in node.blocks:
            _lift_within(inner)
        if node.kind in CLOSURES and node.blocks:
            _lift(node)


def _lift(node: Node) -> None:
    """Lift a closure: captured values become inputs, in the order of their first uses. The graph of a ``try`` gets
    copies of captured constants instead, since it need not match TorchScript's form."""
    subgraph = Graph()
    captured: dict[Value, Value] = {}
    own: dict[Value, Value] = {}

    def outside(value: Value) -> Value:
        found = own.get(value) or captured.get(value)
        if found is None and node.kind == "prim::Try" and value.node.kind in _REPEATABLE:
            found = own[value] = subgraph.block.prepend(subgraph.create_clone(value.node, outside)).output
        elif found is None:
            found = captured[value] = subgraph.add_input().copy_metadata(value)
        return found

    subgraph.block.clone_from(node.blocks[0], outside)
    node.erase_block(0)
    for value in captured:
        node.add_input(value)
    node.set_attribute("Subgraph", subgraph)
