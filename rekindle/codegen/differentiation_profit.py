"""Estimate whether a graph with a backward graph of its own costs less than PyTorch's autograd does.

Entering such a graph and recording it costs as much as a few small operators with their derivatives, and more for each
tensor that it takes. It saves a launch, and a pass over memory, for each operator that is fused with another::

    %1 : Tensor = aten::mul(%x, %y)     }
    %2 : Tensor = aten::tanh(%1)        }  one kernel: saves one launch, and as many in the backward graph
    %3 : Tensor = aten::cdist(%2, %y)      no kernel computes it: it saves nothing, and separates what could be fused
    %4 : Tensor = aten::mul(%3, %z)        alone: saves nothing
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from rekindle.autodiff.differentiable_graph import FOR_CPU
from rekindle.autodiff.formula import operators_recorded
from rekindle.codegen.fusible import is_computed, is_view, refusal
from rekindle.codegen.operators.matmul import PRODUCTS
from rekindle.codegen.product_estimates import ProductEstimates
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import TensorType

LARGE: Final = 1 << 14
"""Number of elements of a tensor from which reading and writing it takes longer than launching an operator."""
_MIN_SAVED: Final = 2
_SAVED_FOR_INPUT: Final = 0.5
"""Number of launches to save for each tensor that the graph takes beyond the first."""


@dataclass(frozen=True, slots=True)
class DifferentiationProfit:
    """Cost model: whether it is faster to outline nodes into a differentiable graph, for calls whose largest tensor has
    ``elements`` elements, and whose matrix products have the estimated costs ``products``."""

    elements: int = 0
    products: ProductEstimates = field(default_factory=ProductEstimates)

    def __call__(self, nodes: Sequence[Node], differentiable: Set[Node]) -> bool:
        """Return whether it is faster to outline ``nodes``, of which those in ``differentiable`` have gradients."""
        saved = launches_saved(nodes, differentiable, self.counts)
        saved += sum(self.products.launches_saved(node) for node in nodes if node in differentiable)
        saved += sum(_SAVED_BY_ATTENTION for node in nodes if self._is_written_out(node))
        if self.products.captured:
            return saved >= _MIN_SAVED
        saved -= sum(node.kind in _DROPOUTS for node in nodes)
        if self.elements >= LARGE:
            return saved >= _MIN_SAVED
        return saved >= _MIN_SAVED + _SAVED_FOR_INPUT * (_tensors_taken(nodes) - 1)

    @property
    def signature(self) -> str:
        """A key of the properties that the decisions depend on, in coarse steps. Graphs created for one call are reused
        for others with an equal key."""
        return f"{'large' if self.elements >= LARGE else 'small'} tensors, {self.products.signature}"

    def counts(self, node: Node) -> Sequence[int]:
        """Return, for each operator that autograd records where ``node`` runs, the number of kernel operators that it
        counts for: 0 if kernels do not compute it, several for a product."""
        in_cell = _ELEMENTWISE_IN_CELLS.get(node.kind)
        if in_cell is not None and not self.products.captured:
            return [0, 0, *[1] * in_cell]
        return [self._count(each) for each in operators_recorded(node) if not is_view(each)]

    def _count(self, node: Node) -> int:
        if self.products.belongs_in_graph(node):
            return 1 + int(self.products.launches_saved(node))
        return int(is_computed(node) or self._is_written_out(node))

    def _is_written_out(self, node: Node) -> bool:
        """Return whether ``node`` is attention with dropout, whose formula consists of operators that are fused."""
        if node.kind != "aten::scaled_dot_product_attention" or self.products.on_gpu:
            return False
        return any(each.kind == "aten::_safe_softmax" for each in operators_recorded(node))

    def excludes(self, node: Node) -> bool:
        """Return whether ``node`` stays outside of differentiable graphs: a library computes it, or, on a GPU,
        PyTorch's kernels."""
        if node.kind in PRODUCTS:
            return not self.products.belongs_in_graph(node)
        if node.kind in _LIBRARY:
            return True
        return self.products.on_gpu and (node.kind in FOR_CPU or (node.kind in _CELLS and not self.products.captured))


_SAVED_BY_ATTENTION: Final = 8
"""Number of launches that are saved where attention with dropout is in a graph, beside those of its operators that are
fused: PyTorch runs twenty operators, and as many for the gradients."""
_DROPOUTS: Final = frozenset({"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout"})
"""Operators that a differentiable graph runs in several steps, where PyTorch has one."""

_CELLS: Final = frozenset({"aten::lstm_cell", "aten::gru_cell"})
"""Operators for which PyTorch has one kernel each way on a GPU, beside the products."""

_ELEMENTWISE_IN_CELLS: Final = {
    "aten::lstm_cell": 10,
    "aten::gru_cell": 10,
    "aten::rnn_tanh_cell": 2,
    "aten::rnn_relu_cell": 2,
}
"""The number of operators of recurrent cells beside two products. To count them in the formulas would compile these,
which takes longer than the rest of a first call."""

_LIBRARY: Final = frozenset(
    {
        *("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution", "aten::_convolution"),
        *("aten::baddbmm", "aten::einsum", "aten::tensordot"),
    }
)
"""Operators that BLAS and oneDNN compute."""


def _counts_one(node: Node) -> Sequence[int]:
    return [is_computed(each) for each in operators_recorded(node)]


def launches_saved(
    nodes: Sequence[Node], counted: Set[Node], counts: Callable[[Node], Sequence[int]] = _counts_one
) -> float:
    """Return how many launches of ``counted`` operators are saved if ``nodes`` are fused: all but one of those that are
    connected, directly or through views that kernels compute. ``counts`` returns the numbers of operators that a node
    counts for; 0 for those that kernels do not compute."""
    group: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while group[node] is not node:
            node = group[node]
        return node

    saved = 0
    sizes: dict[Node, int] = {}
    for node in nodes:
        own = counts(node)
        if not any(own) and not (is_view(node) and refusal(node) is None):
            continue
        group[node] = node
        sizes[node] = sum(count > 0 for count in own) if node in counted else 0
        for value in node.inputs:
            if value.node in group:
                maker, user = root(value.node), root(node)
                if maker is not user:
                    group[maker] = user
                    sizes[user] += sizes.pop(maker)
    for size in sizes.values():
        saved += max(0, size - 1)
    return saved


def _tensors_taken(nodes: Sequence[Node]) -> int:
    """Return the number of tensors that ``nodes`` take from outside."""
    inside = set(nodes)
    taken: set[Value] = set()
    for node in nodes:
        taken.update(value for value in node.inputs if isinstance(value.type, TensorType) and value.node not in inside)
    return len(taken)
