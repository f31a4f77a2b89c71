"""Vector-Jacobian products: a graph followed by its backward. All derivatives of programs are built from these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.gradient import reverse_mode
from rekindle.autodiff.residuals.loop_checkpointing import checkpoint_loops
from rekindle.autodiff.reverse_mode.tape import active_values, build_tape
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import NONE, TENSOR, ListType, OptionalType, TensorType
from rekindle.passes import (
    run_passes,
)
from rekindle.runtime.pipelines import DERIVATIVE_CLEANUP


@dataclass(slots=True)
class Vjp:
    """A graph without outputs, which computes ``results``, and the backward from these to ``wanted``."""

    graph: Graph
    results: list[Value]
    wanted: list[Value]
    residuals: list[Value]
    backward: Graph
    roots: list[int]
    """The indices of the results whose gradients ``backward`` takes first; it takes the ``residuals`` after them."""

    def gradients(self, given: Sequence[Value] | Mapping[int, Value]) -> list[Value]:
        """Insert the backward from the gradients ``given`` of the results, by the index of the result. Return the
        gradients of ``wanted``, zeros for values without a path."""
        graph = self.graph
        found = graph.insert_graph(self.backward, [*(given[root] for root in self.roots), *self.residuals])
        return [_or_zeros(graph, gradient, leaf) for gradient, leaf in zip(found, self.wanted, strict=True)]


def build_vjp(
    graph: Graph, wanted: Sequence[Value], among: Sequence[int] | None = None, limit: int | None = None
) -> Vjp:
    """Return the vector-Jacobian product of ``graph`` from all its outputs that have gradients, or from those
    ``among`` them, to ``wanted``. The outputs are removed from ``graph``, which is changed so that it saves its
    residuals; of loops at most ``limit`` bytes, if given.

    Raises:
        DifferentiationError: no gradient can be computed through a node.
    """
    segments = {} if limit is None else checkpoint_loops(graph, wanted, limit)
    steps = build_tape(graph.block)
    needed = active_values(steps, wanted)
    chosen = range(len(graph.outputs)) if among is None else among
    roots = [index for index in chosen if graph.outputs[index] in needed]
    tensors = [value.type for value in graph.inputs if may_contain_tensor(value.type)]
    one_dtype = len(tensors) < 2 and all(isinstance(type, TensorType) for type in tensors)
    read, back = reverse_mode(graph, steps, needed, roots, wanted, segments=segments, one_dtype=one_dtype)
    results = list(graph.outputs)
    for index in reversed(range(len(results))):
        graph.block.erase_output(index)
    return Vjp(graph, results, list(wanted), read, back, roots)


def _or_zeros(graph: Graph, gradient: Value, leaf: Value) -> Value:
    """Return ``gradient``. If it may be None, insert nodes and return their result: ``gradient``, or zeros like
    ``leaf`` where it is None."""
    if gradient.type.is_subtype_of(leaf.type) and isinstance(leaf.type, (TensorType, ListType)):
        return gradient
    if isinstance(leaf.type, ListType) and gradient.type != NONE:
        wide = OptionalType(ListType(OptionalType(TENSOR)))
        gradient = graph.insert_node(graph.create("prim::unchecked_cast", [gradient], types=[wide])).output
    type = TENSOR if isinstance(leaf.type, TensorType) else leaf.type
    return graph.insert_node(graph.create("autodiff::or_zeros", [gradient, leaf], types=[type])).output


def clean_up(graph: Graph) -> None:
    """Simplify a graph after a transformation."""
    for _ in range(2):  # a branch that is known to be taken leaves more to be known
        run_passes(graph, DERIVATIVE_CLEANUP)
