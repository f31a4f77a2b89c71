"""``fork(function, arguments…)``: a call that runs on its own, of which the program gets a future.

.. code-block:: text

    %later : Future(Tensor) = prim::fork_0(%x, %n)
    …
    with prim::fork_0 = graph(%x : Tensor,
          %n : int):
      %f : Function = prim::Constant[name="f"]()
      %y : Tensor = prim::CallFunction(%f, %x, %n)
      return (%y)
"""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.errors import SourceRange
from rekindle.frontend.sugared import SugaredValue
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.matching import CallArgument
from rekindle.ir.types import FutureType


def insert_fork(
    range: SourceRange,
    graph: Graph,
    callee: SugaredValue,
    args: Sequence[CallArgument],
    kwargs: Sequence[CallArgument],
) -> Value:
    """Insert ``prim::fork`` that calls ``callee``; returns the future of its result."""
    node = graph.insert_node(graph.create("prim::fork", outputs=1, range=range))
    block = node.add_block()
    with graph.inserting_at_end(block):
        block.add_output(callee.call(range, graph, args, kwargs, 1).as_value(range, graph))
    node.output.type = FutureType(block.outputs[0].type)
    _lift(node)
    return node.output


def _lift(node: Node) -> None:
    """Turn the block of ``node`` into a graph of its own; what it uses from around becomes inputs of the node."""
    block = node.blocks[0]
    lifted = Graph()
    captured: dict[Value, Value] = {}

    def outside(value: Value) -> Value:
        if value not in captured:
            captured[value] = lifted.add_input(value.base_name, value.type)
        return captured[value]

    lifted.block.clone_from(block, outside)
    node.erase_block(0)
    for value in captured:
        node.add_input(value)
    node.attributes["Subgraph"] = lifted
