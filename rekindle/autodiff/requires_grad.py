"""The values of a graph that may require a gradient, as far as types determine it."""

from __future__ import annotations

from torch import Tensor

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.reverse_mode.tape import is_constant_for_gradients
from rekindle.ir.graph import Block, Graph, Value
from rekindle.ir.types import TensorType


def may_require_grad(graph: Graph) -> set[Value]:
    """Return the values of ``graph`` that may require a gradient. An input may unless its type excludes it."""
    found: set[Value] = set()
    _inputs(graph.block, found)
    while True:
        before = len(found)
        _block(graph.block, found)
        if len(found) == before:
            return found


def _inputs(block: Block, found: set[Value]) -> None:
    found.update(value for value in block.inputs if _may_by_type(value))


def _may_by_type(value: Value) -> bool:
    if isinstance(value.type, TensorType):
        return value.type.requires_grad is not False
    return may_contain_tensor(value.type)


def _block(block: Block, found: set[Value]) -> None:
    for node in block.nodes:
        if node.kind == "prim::Constant":
            value = node.attributes.get("value")
            if isinstance(value, Tensor) and value.requires_grad:
                found.add(node.output)
            continue
        for inner in node.blocks:
            _inputs(inner, found)
            _block(inner, found)
        if is_constant_for_gradients(node):
            continue
        given = any(value in found for value in node.inputs) or not node.inputs
        given = given or any(value in found for inner in node.blocks for value in inner.outputs)
        if given or node.blocks:
            found.update(output for output in node.outputs if _may_by_type(output))
