"""``prim::vmap``: a region written for one example and applied to a batch.

.. code-block:: text

    graph(%x : Tensor, %w : Tensor):
      %y : Tensor = prim::vmap[in_dims=[0], out_dims=[0], randomness="error"](%x)
        block0(%x.1 : Tensor):
          %1 : Tensor = aten::sigmoid(%w)
          %2 : Tensor = aten::mul(%x.1, %1)
          -> (%2)
      return (%y)

Inputs of the node are what differs between the examples, with the dimension in which the examples lie; what is the same
for all is used from outside. An output dimension of -1000 says that the result is the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TENSOR
from rekindle.transforms.vmap.batched_scalars import is_number
from rekindle.transforms.vmap.batchedness import BatchednessAnalysis

KIND: Final = "prim::vmap"
NO_DIM: Final = -1000
"""Stands for an output that is the same for all examples."""


def wrap_in_vmap(
    graph: Graph, in_dims: Sequence[int | None], out_dims: Sequence[int | None], randomness: str = "error"
) -> Graph:
    """Return a graph with a ``prim::vmap`` node around the nodes of ``graph``, for :func:`lower`.

    Args:
        graph: the graph for one example.
        in_dims: the batch dimension of each input; None for an input without one.
        out_dims: the batch dimension of each output.
        randomness: as in :func:`vmap`.

    Example:
        >>> from rekindle.transforms.vmap import wrap_in_vmap
        >>> graph = rekindle.script(lambda x, y: x.exp() * y.exp()).graph
        >>> batched = wrap_in_vmap(graph, [0, None], [0])
        >>> batched.find_node("prim::vmap") is not None
        True
    """
    new = Graph()
    node = new.create(KIND, outputs=0)
    node.attributes["in_dims"] = [dim for dim in in_dims if dim is not None]
    node.attributes["out_dims"] = [NO_DIM if dim is None else dim for dim in out_dims]
    node.attributes["randomness"] = randomness
    block = node.add_block()
    inside: dict[Value, Value] = {}
    for value, dim in zip(graph.inputs, in_dims, strict=True):
        outer = new.add_input(type=value.type)
        inside[value] = outer
        if dim is not None:
            node.add_input(outer)
            inside[value] = block.add_input(type=value.type)
        if value.has_name:
            outer.set_name(value.base_name)
    new.append_node(node)
    with new.inserting_at_end(block):
        results = _insert(new, graph, inside)
    for output, result, dim in zip(graph.outputs, results, out_dims, strict=True):
        block.add_output(result)
        becomes_tensor = dim is not None and is_number(output.type)
        new.add_output(node.add_output(TENSOR if becomes_tensor else output.type))
    return new


def _insert(graph: Graph, source: Graph, values: dict[Value, Value]) -> list[Value]:
    return graph.insert_graph(source, [values[value] for value in source.inputs])


def body_as_graph(node: Node) -> tuple[Graph, list[Value]]:
    """Return the body of a ``prim::vmap`` as a graph of its own, whose inputs are those of the block and then its
    captured values, which are returned too."""
    (block,) = node.blocks
    used = dict.fromkeys((*block.outputs, *(value for inner in block.nodes for value in inner.used_values())))
    outside = [value for value in used if not block.contains(value.node) and value not in block.inputs]
    graph = Graph()
    known: dict[Value, Value] = {}
    for value in (*block.inputs, *outside):
        known[value] = graph.add_input(type=value.type).copy_metadata(value)
    for inner in block.nodes:
        graph.insert_clone(inner, known)
    for value in block.outputs:
        graph.add_output(known[value])
    return graph, outside


def move_out_unbatched(graph: Graph) -> bool:
    """Hoist nodes that are the same for all examples out of every ``prim::vmap``. Return whether a node was moved.

    Args:
        graph: a graph with ``prim::vmap`` nodes, which is modified.

    Example:
        >>> from rekindle.transforms.vmap import move_out_unbatched, wrap_in_vmap
        >>> graph = rekindle.script(lambda x, y: x.exp() * y.exp()).graph
        >>> batched = wrap_in_vmap(graph, [0, None], [0])
        >>> move_out_unbatched(batched)
        True
    """
    changed = False
    for node in graph.find_nodes(KIND):
        source, _ = body_as_graph(node)
        spread = BatchednessAnalysis(source, node["randomness"] == "different")
        spread.run(source.inputs[: len(node.inputs)])
        for inner, copy in zip(list(node.blocks[0].nodes), list(source.nodes), strict=True):
            if copy.kind != "prim::Constant" and not _may_move(copy, spread):
                continue
            inner.move_before(node)
            changed = True
    return changed


def _may_move(node: Node, spread: BatchednessAnalysis) -> bool:
    operator = node.operator
    if operator is None or node.blocks or operator.has_side_effects or operator.is_nondeterministic:
        return False
    if operator.schema.is_mutable or any(value in spread.written for value in node.outputs):
        return False
    return not any(value in spread.batched for value in (*node.inputs, *node.outputs))
