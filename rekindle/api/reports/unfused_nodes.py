"""Unfused nodes: the operators of a graph that run outside of kernels, and the reasons.

Only operators that compute tensors count: their results are new tensors, or tensors that they write to. Views, sizes,
lists, tuples and control flow compute nothing. Operators that return a view if they can and a copy otherwise
(``contiguous``, ``reshape``, ``to``) count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rekindle.analysis.effects import CALLS
from rekindle.codegen.fusion import blockers_of, was_fused
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import ListType, TensorType, Type

LIBRARY_REASON: Final = "BLAS or oneDNN runs it"


_CALLS: Final = CALLS | {"prim::fork"}
"""Kinds of calls: no schema describes what they compute."""


@dataclass(frozen=True, slots=True)
class UnfusedNode:
    """A node that runs outside of kernels, and the reason."""

    node: Node
    reason: str

    @property
    def is_library(self) -> bool:
        """Whether the node runs outside of kernels as intended: a matrix product, a convolution or attention."""
        return self.node.has_trait(Trait.LIBRARY)


CALLED: Final = "it calls what is known only when it runs"
NO_FUSION: Final = "the strategy of execution makes no kernels"


def unfused_nodes(graph: Graph) -> Iterator[UnfusedNode]:
    """Yield the nodes of ``graph`` that compute tensors outside of kernels, in order, each with the reason."""
    default = "the limit on changes of the fusion pass was reached" if was_fused(graph) else NO_FUSION
    reasons: dict[tuple[str, object], list[str]] = {}
    for blocker in blockers_of(graph):
        reasons.setdefault((blocker.kind, blocker.range), []).append(blocker.reason)
    for node in graph.all_nodes():
        recorded = reasons.get((node.kind, node.range))
        if not computes_tensors(node):
            continue
        if node.has_trait(Trait.LIBRARY):
            yield UnfusedNode(node, LIBRARY_REASON)
        elif node.kind in _CALLS:
            yield UnfusedNode(node, CALLED)
        else:
            reason = default if not recorded else recorded.pop(0) if len(recorded) > 1 else recorded[0]
            yield UnfusedNode(node, reason)


def computes_tensors(node: Node) -> bool:
    """Return whether the node computes a tensor or writes to one, or is a call. Views compute nothing, nor do nodes of
    ``prim`` other than ``prim::NumToTensor`` and calls."""
    if node.has_trait(Trait.LIBRARY) or node.kind in _CALLS:
        return True
    if node.kind.startswith("prim::"):
        return node.kind == "prim::NumToTensor"
    schema = node.schema
    if schema is None:
        return any(_holds_tensors(output.type) for output in node.outputs)
    returns = [each for each in schema.returns if _holds_tensors(each.type)]
    return any(each.alias is None or each.alias.is_write or node.has_trait(Trait.VIEW_OR_COPY) for each in returns)


def _holds_tensors(type: Type) -> bool:
    return isinstance(type, TensorType) or (isinstance(type, ListType) and isinstance(type.contained[0], TensorType))
