"""Gradients that loops add up turn by turn are computed for many turns at once.

.. code-block:: text

    %gw : Tensor? = prim::Loop(…, %none)                      %2 : Tensor? = prim::Loop(…, %none)
      block0(%j : int, %sum : Tensor?):                         block0(%j : int, %sum : Tensor?):
        %1 : Tensor = autodiff::linear_weight(%g, %x, %n)         %1 : Tensor? = autodiff::linear_weight_deferred(
        %2 : Tensor = autodiff::plus(%1, %sum)        becomes         %gs, %xs, %g, %x, %sum, %n)
        -> (…, %2)                                                -> (…, %1)
                                                              %gw : Tensor? = autodiff::linear_weight_flush(
                                                                  %gs, %xs, %2, %n)

What has few rows is collected in lists until there are many, so that one product of large matrices stands for many of
small ones.
"""

from __future__ import annotations

from typing import Final

from rekindle.autodiff.reverse_mode.gradient_regions import constant
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import INT, TENSOR, ListType, OptionalType

_COLLECTED: Final = {"autodiff::linear_weight": 2, "autodiff::sum_to": 1}
"""Kinds whose results are added up, with how many tensors they take, before a size."""


def batch_gradient_accumulation(graph: Graph) -> None:
    """See the module."""
    for loop in graph.find_nodes("prim::Loop"):
        for product in [node for node in loop.blocks[0].nodes if node.kind == "aten::mm"]:
            _name_gradient_of_weight(product)
        for index in range(len(loop.outputs)):
            term = _accumulated_term(loop, index)
            if term is not None:
                _collect(loop, index, term)


def _name_gradient_of_weight(product: Node) -> None:
    """Write the gradient of the second factor of a product, ``mm(t(grad), input)``, as that of a weight, if it is only
    added to others."""
    transposed, input = product.inputs
    users = [use.user.kind for use in product.output.uses]
    if transposed.node.kind != "aten::t" or users != ["autodiff::plus"]:
        return
    graph = product.graph
    size = constant(graph, [0, 0], ListType(INT))  # of which the length alone is read
    inputs = [transposed.node.input, input, size]
    named = graph.create("autodiff::linear_weight", inputs, types=[TENSOR], range=product.range).insert_before(product)
    product.output.replace_all_uses_with(named.output)
    product.destroy()


def _accumulated_term(loop: Node, index: int) -> Node | None:
    """What gives a turn's part of the sum that a loop carries as its value ``index``."""
    view = LoopView(loop)
    block, (_, before, after, result) = view.body, view.carried[index]
    adding = after.node
    if adding.kind != "autodiff::plus" or not isinstance(result.type, OptionalType):
        return None
    added, total = adding.inputs
    if adding.owning_block is not block or total is not before:
        return None
    term = added.node
    if term.kind not in _COLLECTED or term.owning_block is not block:
        return None
    if any(len(value.uses) != 1 for value in (before, after, term.output)):
        return None
    *_, weight = term.inputs
    return None if loop.contains(weight.node) else term


def _collect(loop: Node, index: int, term: Node) -> None:
    graph, block = loop.graph, loop.blocks[0]
    *tensors, size = term.inputs
    made = [graph.create("prim::ListConstruct", types=[ListType(TENSOR)]) for _ in range(_COLLECTED[term.kind])]
    lists = [node.insert_before(loop).output for node in made]
    adding = block.outputs[index + 1].node
    inputs = [*lists, *tensors, block.inputs[index + 1], size]
    later = graph.create(f"{term.kind}_deferred", inputs, types=[OptionalType(TENSOR)], range=term.range)
    later.insert_before(adding)
    block.replace_output(index + 1, later.output)
    adding.destroy()
    term.destroy()
    found = loop.outputs[index]
    uses = list(found.uses)
    now = graph.create(f"{term.kind}_flush", [*lists, found, size], types=[OptionalType(TENSOR)]).insert_after(loop)
    for use in uses:
        use.user.replace_input(use.offset, now.output)
