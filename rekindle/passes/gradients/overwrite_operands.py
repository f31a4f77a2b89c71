"""Overwrite operands: compute an activation in place where PyTorch's autograd saves no more for it then.

.. code-block:: text

    %2 : Tensor = aten::batch_norm(%x, …)                        %2 : Tensor = aten::batch_norm(%x, …)
    %3 : Tensor = aten::leaky_relu(%2, %slope)       becomes     %3 : Tensor = aten::leaky_relu_(%2, %slope)

The functional activation allocates its result. Most save their operand, the in-place ones their result, which the next
operator saves in any case. The operand must be new, without other users, and the operator that computes it must not
save it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.constants import is_constant, value_of
from rekindle.ir.graph import Graph, Node
from rekindle.rewriting.changes import may_change

_LEAKY_RELU: Final = "aten::leaky_relu"
_ACTIVATIONS: Final = frozenset({_LEAKY_RELU, "aten::hardtanh", "aten::relu", "aten::relu6"})
"""Kinds whose gradient is the same, in the last bit, if it is computed from the result."""
_PRODUCERS: Final = frozenset(
    {
        *("aten::batch_norm", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"),
        *("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"),
    }
)
"""Kinds with new results that autograd does not save."""


@dataclass(slots=True)
class OverwriteOperands:
    '''Compute activations in place where autograd saves no more for them then. See the module.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import OverwriteOperands, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor, %w : Tensor, %b : Tensor?, %ones : int[], %zeros : int[]):
        ...   %one : int = prim::Constant[value=1]()
        ...   %slope : float = prim::Constant[value=0.2]()
        ...   %1 : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
        ...   %2 : Tensor = aten::leaky_relu(%1, %slope)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [OverwriteOperands()])
        True
        >>> graph.find_node("aten::leaky_relu_") is not None
        True
    '''

    name: ClassVar[str] = "overwrite_operands"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.all_nodes()):
            if _may_overwrite(node) and may_change("overwrite", node):
                output = node.output
                written = graph.create(f"{node.kind}_", node.inputs, types=[output.type], range=node.range)
                written.insert_before(node)
                written.output.copy_metadata(output)
                output.replace_all_uses_with(written.output)
                node.destroy()
                changed = True
        return changed


def _may_overwrite(node: Node) -> bool:
    if node.kind not in _ACTIVATIONS:
        return False
    operand = node.inputs[0]
    producer = operand.node
    if producer.kind not in _PRODUCERS or producer.owning_block is not node.owning_block or len(operand.uses) != 1:
        return False
    return node.kind != _LEAKY_RELU or _is_positive(node)


def _is_positive(node: Node) -> bool:
    """Return whether the slope of a leaky ReLU is known to be positive, so that its result has the sign of its
    operand."""
    slope = value_of(node.inputs[1].node) if is_constant(node.inputs[1]) else None
    return isinstance(slope, int | float) and slope > 0
