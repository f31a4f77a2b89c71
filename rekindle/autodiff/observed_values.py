"""The values that code outside of a graph may differentiate with respect to.

.. code-block:: text

    %h : Tensor = aten::tanh(%x)
    %y : Tensor = aten::exp(%h)
    %r : (Tensor, Tensor) = prim::TupleConstruct(%h, %y)
    return (%r)

A caller may ask for the gradient of ``%y`` with respect to ``%h``, or register a hook on ``%h``. PyTorch's autograd has
to know that ``%y`` is computed from ``%h``: not both can be results of one node of autograd.
"""

from __future__ import annotations

from typing import Final

from rekindle.analysis.effects import CASTS, CONSTRUCTS, UNPACKS, has_side_effects
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value

_OF_AUTOGRAD: Final = frozenset({"aten::grad", "aten::backward"})


def observed_values(graph: Graph) -> set[Value]:
    """Return the values of ``graph`` that are returned, stored, passed to unknown code or to operators of autograd, by
    themselves or in a container."""
    pending = [*graph.outputs]
    for node in graph.all_nodes():
        if node.kind in _OF_AUTOGRAD or has_side_effects(node) or _stores(node):
            pending += node.inputs
    found: set[Value] = set()
    while pending:
        value = pending.pop()
        if value in found or not may_contain_tensor(value.type):
            continue
        found.add(value)
        pending += _sources(value)
    return found


def _stores(node: Node) -> bool:
    """Return whether ``node`` may store a value in a container or an object."""
    schema = node.schema
    if schema is None:
        return False
    return any(each.alias is not None and each.alias.is_write and each.type.contained for each in schema.arguments)


def _sources(value: Value) -> list[Value]:
    """Return the values that ``value`` may be, unchanged, or may hold."""
    node = value.node
    if node.kind in CONSTRUCTS:
        return list(node.inputs)
    if node.kind in CASTS or node.kind in UNPACKS or node.kind == "aten::__getitem__":
        return [node.inputs[0]]
    if node.kind == "prim::If":
        return [block.outputs[value.offset] for block in node.blocks]
    if node.kind == "prim::Loop":
        carried = LoopView(node).carried[value.offset]
        return [carried.initial, carried.following]
    return []
