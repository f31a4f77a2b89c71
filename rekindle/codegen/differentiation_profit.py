"""Estimate whether a graph with a backward graph of its own costs less than PyTorch's autograd does.

Entering such a graph and recording it costs as much as a few small operators with their derivatives, and more for each
tensor that it takes. It saves a launch, and a pass over memory, for each operator that is fused with another::

    %1 : Tensor = aten::mul(%x, %y)     }
    %2 : Tensor = aten::tanh(%1)        }  one kernel: saves one launch, and as many in the backward graph
    %3 : Tensor = aten::cdist(%2, %y)      no kernel computes it: it saves nothing, and parts what could be fused
    %4 : Tensor = aten::mul(%3, %z)        alone: saves nothing
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from rekindle.autodiff.formula import operators_recorded
from rekindle.codegen.fusible import is_computed, is_view, refusal
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import TensorType

LARGE: Final = 1 << 14
"""Number of elements of a tensor from which reading and writing it takes longer than launching an operator."""
_MIN_SAVED: Final = 2
_SAVED_FOR_INPUT: Final = 0.5
"""Number of launches to save for each tensor that the graph takes beyond the first."""


@dataclass(frozen=True, slots=True)
class DifferentiationProfit:
    """Whether it pays to make one differentiable graph of some nodes, for calls whose largest tensor has ``elements``
    elements."""

    elements: int = 0

    def __call__(self, nodes: Sequence[Node], differentiable: Set[Node]) -> bool:
        """Return whether it pays for ``nodes``; gradients go back through those that are ``differentiable``."""
        saved = launches_saved(nodes, differentiable)
        if self.elements >= LARGE:
            return saved >= _MIN_SAVED
        return saved >= _MIN_SAVED + _SAVED_FOR_INPUT * (_tensors_taken(nodes) - 1)


def launches_saved(nodes: Sequence[Node], counted: Set[Node]) -> int:
    """Return how many launches of ``counted`` operators are saved where the ``nodes`` are fused: all but one of those
    that are connected, directly or through views that kernels compute."""
    group: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while group[node] is not node:
            node = group[node]
        return node

    saved = 0
    sizes: dict[Node, int] = {}
    for node in nodes:
        if not is_computed(node) and not (is_view(node) and refusal(node) is None):
            continue
        group[node] = node
        sizes[node] = sum(map(is_computed, operators_recorded(node))) if node in counted else 0
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
    """Return how many tensors from outside ``nodes`` take."""
    inside = set(nodes)
    taken: set[Value] = set()
    for node in nodes:
        taken.update(value for value in node.inputs if isinstance(value.type, TensorType) and value.node not in inside)
    return len(taken)
