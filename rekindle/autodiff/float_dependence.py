"""Dependence of the values in a graph on its float inputs.

A schedule, such as that of a learning rate, passes another float in each call. So derivatives are specialized to the
sizes, dtypes and ints of the inputs, and not to their floats. A value that depends on a float is not a constant of such
a derivative: ``gamma == 2.0``, ``gamma - 1.0``, a size ``int(n * scale)``, and the sizes of a tensor that has such a
size.
"""

from __future__ import annotations

from collections.abc import Iterable

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import BOOL, INT, NONE, STRING, Type, UnionBase


def values_of_floats(graph: Graph) -> set[Value]:
    """Return the values that depend on a float input of the graph: numbers that are computed from it, containers of
    such numbers, and tensors whose sizes depend on it."""
    found = {value for value in graph.inputs if not may_contain_tensor(value.type) and _may_hold_float(value.type)}
    count = -1
    while found and len(found) != count:
        count = len(found)
        _spread(graph.block, found)
    return found


def _spread(block: Block, found: set[Value]) -> None:
    for node in block.nodes:
        for inner in node.blocks:
            _spread(inner, found)
        if node.blocks:
            _spread_through_blocks(node, found)
        elif node.kind == "aten::append":
            items, item = node.inputs
            if item in found:
                found.update((items, *node.outputs))
        else:
            found.update(value for value in node.outputs if _depends(node, value, found))


def _spread_through_blocks(node: Node, found: set[Value]) -> None:
    """Propagate to the results of a branch or a loop, to carried values, and to lists that its blocks append to: they
    depend on the condition and the trip count too."""
    controls = node.inputs[:2] if node.kind == "prim::Loop" else node.inputs
    first = 1 if node.kind == "prim::Loop" else 0
    if any(value in found for value in controls) or any(
        inner.outputs and inner.outputs[0] in found for inner in node.blocks if first
    ):
        found.update(node.outputs)
        # A list to which nodes in the blocks append: the float says how often.
        found.update(each.named_input("self") for each in node.inner_nodes() if each.kind == "aten::append")
    for inner in node.blocks:
        _pair(inner.outputs[first:], node.outputs, found)
        if first:
            view = LoopView(node)
            _pair(view.initial, view.parameters, found)
            _pair(view.following, view.parameters, found)


def _pair(sources: Iterable[Value], targets: Iterable[Value], found: set[Value]) -> None:
    found.update(target for source, target in zip(sources, targets, strict=True) if source in found)


def _depends(node: Node, output: Value, found: set[Value]) -> bool:
    """Return whether ``output`` depends on a value in ``found``. A result other than a tensor depends on every input.
    The sizes of a tensor depend on tensors, ints and lists; on a float only if no input is a tensor, since beside one
    it scales or fills."""
    among = [value for value in node.inputs if value in found]
    if not among or not may_contain_tensor(output.type):
        return bool(among)
    beside_tensors = any(may_contain_tensor(value.type) for value in node.inputs)
    return not beside_tensors or any(may_contain_tensor(value.type) or _is_size(value.type) for value in among)


def _is_size(type: Type) -> bool:
    """Return whether values of this type may be sizes: ints, and lists of numbers, including factors."""
    if isinstance(type, UnionBase):
        return any(_is_size(member) for member in type.contained)
    return type in (INT, BOOL) or bool(type.contained)


def _may_hold_float(type: Type) -> bool:
    if type.contained:
        return any(_may_hold_float(part) for part in type.contained)
    return type not in (INT, BOOL, STRING, NONE)
