"""Derivatives for inputs of known sizes.

What a way back needs besides tensors (sizes, mostly) follows from the sizes of the inputs. So it is computed once for
inputs of the same sizes, and stands in the backward graph as constants from then on; a sum to a size that a gradient
has already goes away. The forward graph is left with what it computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.analysis.mutability import may_hold_tensor
from rekindle.autodiff.captures import CLEANUP
from rekindle.autodiff.gradient import BackwardGraph, Gradient
from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import NONE
from rekindle.passes import ConstantPooling, DeadCodeElimination, run_passes

_OF_SIZES: Final = frozenset(
    {
        *("aten::size", "aten::dim", "aten::numel", "aten::len", "prim::dtype", "prim::device", "prim::layout"),
        *("aten::is_floating_point", "aten::is_complex", "aten::__getitem__", "prim::ListConstruct"),
        *("autodiff::size_unless_equal", "autodiff::sizes_of", "autodiff::ratio", "autodiff::negated"),
        *("autodiff::inverse_order", "autodiff::padded_repeats", "autodiff::as_row", "autodiff::last_two"),
        *("autodiff::variance_factor",),
    }
)
"""Kinds whose results follow from sizes, dtypes and numbers that go in."""

_OF_VALUES: Final = frozenset(
    f"aten::{name}"
    for name in (
        *("nonzero", "masked_select", "unique_dim", "_unique", "_unique2", "unique_consecutive", "argwhere"),
        *("repeat_interleave", "bincount", "index", "item", "_local_scalar_dense", "histc", "is_nonzero", "Int"),
        *("Float", "Bool", "equal", "allclose", "tensor_split"),
    )
)
"""Kinds whose results are numbers that were in tensors, or have sizes that depend on such."""


def follow_from_sizes(gradient: Gradient) -> bool:
    """Whether all that is kept besides tensors follows from the sizes and dtypes of the inputs."""
    graph = gradient.forward
    if any(node.kind in _OF_VALUES or node.blocks for node in graph.nodes):
        return False
    return all(_follows(graph.outputs[index].node) for index in kept_numbers(gradient))


def _follows(node: Node) -> bool:
    if node.kind in ("prim::Param", "prim::Constant"):
        return True
    if node.kind not in _OF_SIZES and any(may_hold_tensor(value.type) for value in node.inputs):
        return False
    return all(_follows(value.node) for value in node.inputs if not may_hold_tensor(value.type))


def kept_numbers(gradient: Gradient) -> list[int]:
    """The outputs of the forward graph that are kept and are no tensors."""
    outputs = gradient.forward.outputs
    return [index for index in range(gradient.results, len(outputs)) if not may_hold_tensor(outputs[index].type)]


def forward_without(gradient: Gradient, numbers: Sequence[int]) -> Graph:
    """The forward graph without the outputs ``numbers``."""
    graph = gradient.forward.copy()
    for index in sorted(numbers, reverse=True):
        graph.block.erase_output(index)
    run_passes(graph, (DeadCodeElimination(), ConstantPooling()))
    return graph


def backward_with(gradient: Gradient, made: BackwardGraph, values: dict[int, object]) -> BackwardGraph:
    """A backward graph in which the outputs of the forward graph that ``values`` names have these values."""
    graph = made.graph.copy()
    first = len(graph.inputs) - len(made.captures)
    captures = list(made.captures)
    for place in reversed(range(len(captures))):
        source = gradient.captures[captures[place]]
        if source not in values:
            continue
        value = graph.inputs[first + place]
        with graph.inserting_before(graph.return_node.next):
            known = values[source]
            constant = graph.insert_constant(known, NONE if known is None else value.type)
        value.replace_all_uses_with(constant)
        graph.block.erase_input(first + place)
        del captures[place]
    _drop_sums(graph)
    run_passes(graph, CLEANUP)
    return BackwardGraph(graph, tuple(captures))


def _drop_sums(graph: Graph) -> None:
    """Sums to a size that a gradient has already."""
    for node in graph.find_nodes("aten::_grad_sum_to_size"):
        if node.inputs[1].type == NONE:
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
