"""Specialization of derivatives on the sizes of the inputs.

The values other than tensors that a backward needs, mostly sizes, follow from the sizes of the inputs. They are
computed once for all inputs of the same sizes, and become constants of the backward graph; a ``sum_to_size`` to the
size that a gradient already has is removed. The forward graph then computes only its results. Values that follow from
floats among the inputs are saved as tensors are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.float_dependence import values_of_floats
from rekindle.autodiff.gradient import BackwardGraph, Gradient
from rekindle.autodiff.residuals.selection import CLEANUP
from rekindle.autodiff.reverse_mode.gradient_regions import constant
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import NONE, TensorType, Type
from rekindle.ops.registration.traits import queries_of
from rekindle.passes import BatchProjections, ConstantPooling, DeadCodeElimination, run_passes

_OF_SIZES: Final = queries_of(Trait.READS_RANK, Trait.READS_SIZES, Trait.READS_DTYPE, Trait.READS_DEVICE)
"""Property queries whose results follow from the :func:`specialization_key` of the input tensors."""


def specialization_key(value: object) -> Hashable:
    """Return the key of an input for the selection of a derivative: sizes, dtype and device of tensors, and the values
    of other inputs than floats."""
    if isinstance(value, Tensor):
        return value.shape, value.dtype, value.device
    if isinstance(value, list):
        return tuple([specialization_key(item) for item in value])
    return float if isinstance(value, float) else (type(value), value)


def is_determined_by_sizes(gradient: Gradient) -> bool:
    """Return whether all :func:`saved_scalars` are known to follow from the :func:`specialization_key` of the inputs.
    They are not if a node of the forward graph is data-dependent. With branches or loops, what every node computes from
    tensors has to be tensors or follow from their sizes."""
    graph = gradient.forward
    if any(_is_data_dependent(node) for node in graph.all_nodes()):
        return False
    if not gradient.is_straight_line:
        return all(_takes_sizes_only(node) for node in graph.all_nodes())
    return all(_follows(graph.outputs[index].node) for index in saved_scalars(gradient))


def _is_data_dependent(node: Node) -> bool:
    """Return whether results of ``node`` depend on elements of a tensor: ``aten::Float`` may also take an int."""
    return node.has_trait(Trait.DATA_DEPENDENT) and any(may_contain_tensor(value.type) for value in node.inputs)


def _takes_sizes_only(node: Node) -> bool:
    """Return whether the results of ``node`` are tensors, or follow from the sizes of its inputs."""
    if node.kind in _OF_SIZES or node.blocks or node.kind == "aten::append":
        return True
    takes = any(may_contain_tensor(value.type) for value in node.inputs)
    return not takes or all(may_contain_tensor(value.type) for value in node.outputs)


def _follows(node: Node) -> bool:
    if node.kind in ("prim::Param", "prim::Constant"):
        return True
    if node.kind in _DROPOUTS:  # the scale of the mask, which depends on the device
        return all(value.node.kind == "prim::Constant" for value in node.inputs[1:])
    if node.kind == "aten::__is__" and node.inputs[0].node.kind in _DROPOUTS and node.inputs[1].type == NONE:
        return _follows(node.inputs[0].node)  # there is a mask unless there are no elements, or dropout has no effect
    if node.kind not in _OF_SIZES and any(may_contain_tensor(value.type) for value in node.inputs):
        return False
    return all(_follows(value.node) for value in node.inputs if not may_contain_tensor(value.type))


_DROPOUTS: Final = frozenset({"autodiff::dropout", "autodiff::feature_dropout", "autodiff::alpha_dropout"})


def saved_scalars(gradient: Gradient) -> list[int]:
    """Return the indices of the outputs of the forward graph that are saved for backward, are not tensors, and depend
    on no float input."""
    outputs = gradient.forward.outputs
    numbers = [index for index in range(gradient.results, len(outputs)) if not may_contain_tensor(outputs[index].type)]
    if not numbers:
        return []
    varying = values_of_floats(gradient.forward)
    return [index for index in numbers if outputs[index] not in varying]


def can_be_bound(gradient: Gradient, index: int, value: object) -> bool:
    """Return whether output ``index`` of the forward graph, which was ``value`` in a call, can be a constant for calls
    of the same sizes. A list that a loop appends to can be one if all its items are equal."""
    if not _is_appended_in_loop(gradient.forward.outputs[index]):
        return True
    return (
        isinstance(value, list) and len(value) > 0 and all(item == value[0] for item in value) and not _is_nested(value)
    )


def bound_value(gradient: Gradient, index: int, value: object) -> object:
    """Return the constant for an output for which :func:`can_be_bound` holds. For a list that a loop appends to, it is
    a list of one item."""
    is_appended = _is_appended_in_loop(gradient.forward.outputs[index])
    return value[:1] if is_appended and isinstance(value, list) else value


def is_size_outside_loops(gradient: Gradient, index: int) -> bool:
    """Return whether an output of the forward graph is the sizes of a tensor, read outside of loops and branches."""
    value = gradient.forward.outputs[index]
    return value.node.kind == "aten::size" and value.node.owning_block is gradient.forward.block


def _is_nested(value: list[object]) -> bool:
    if not isinstance(value[0], list) or not any(isinstance(item, list) or item is None for item in value[0]):
        return False
    return not all(isinstance(item, list) and all(isinstance(size, int) for size in item) for item in value[0])


def _is_appended_in_loop(value: Value) -> bool:
    """Return whether ``value`` is a list to which iterations of a loop append."""
    return value.node.kind == "prim::ListConstruct" and any(use.user.kind == "aten::append" for use in value.uses)


def specialize_forward(gradient: Gradient, numbers: Sequence[int], sizes: Sequence[Sequence[int] | None]) -> Graph:
    """Return the forward graph without the outputs ``numbers``, for tensors of the ranks of ``sizes``. It is valid for
    all such tensors, and fastest for these sizes."""
    graph = gradient.forward.copy()
    for value, known in zip(graph.inputs, sizes, strict=True):
        _know_rank(value, None if known is None else len(known))
    for index in sorted(numbers, reverse=True):
        value = graph.outputs[index]
        graph.block.erase_output(index)
        for use in [use for use in value.uses if use.user.kind == "aten::append" and _is_appended_in_loop(value)]:
            use.user.destroy()
    run_passes(graph, (BatchProjections(sizes), DeadCodeElimination(), ConstantPooling()))
    return graph


def sizes_of_inputs(key: Sequence[Hashable]) -> list[torch.Size | None]:
    """Return the sizes of the tensors among the inputs, given their :func:`specialization_key`."""
    return [each[0] if isinstance(each, tuple) and each and isinstance(each[0], torch.Size) else None for each in key]


def bind_backward_constants(
    gradient: Gradient, made: BackwardGraph, values: dict[int, object], ranks: Sequence[int | None]
) -> BackwardGraph:
    """Return a backward graph with constants: ``values`` has the value of each bound output of the forward graph, and
    ``ranks`` has the ranks of its inputs."""
    graph = made.graph.copy()
    first = len(graph.inputs) - len(made.captures)
    captures = list(made.captures)
    for place, capture in enumerate(captures):
        source = gradient.captures[capture]
        if source < 0:
            _know_rank(graph.inputs[first + place], ranks[~source])
    for place in reversed(range(len(captures))):
        source = gradient.captures[captures[place]]
        if source not in values:
            continue
        value = graph.inputs[first + place]
        with graph.inserting_before(graph.return_node.next):
            known = values[source]
            if _is_appended_in_loop(gradient.forward.outputs[source]):
                assert isinstance(known, list)
                _know_items(value, known[0])
                graph.block.erase_input(first + place)
                del captures[place]
                continue
            constant = graph.insert_constant(known, NONE if known is None else value.type)
        value.replace_all_uses_with(constant)
        graph.block.erase_input(first + place)
        del captures[place]
    _drop_sums(graph)
    _multiply_matrices(graph)
    run_passes(graph, CLEANUP)
    return BackwardGraph(graph, tuple(captures))


def _know_rank(value: Value, rank: int | None) -> None:
    """Set the type of a value to a tensor of this rank, if it is a tensor of unknown rank, and ``rank`` is known."""
    if rank is not None and isinstance(value.type, TensorType) and value.type.rank is None:
        value.set_type(replace(value.type, sizes=(None,) * rank))


def _know_items(value: Value, item: object) -> None:
    """Replace all reads of items of a list by ``item``, since all items are equal."""
    for use in list(value.uses):
        found = use.user.output
        known = _constant(found.node.graph, item, found.type)
        found.replace_all_uses_with(known)
        use.user.destroy()


def _constant(graph: Graph, item: object, type: Type) -> Value:
    """Return a constant at the start of ``graph``. A list of sizes is constructed from constant ints."""
    if not isinstance(item, list) or not item or not isinstance(item[0], list):
        return constant(graph, item, NONE if item is None else type)
    parts = [constant(graph, part, type.contained[0]) for part in item]
    return graph.create("prim::ListConstruct", parts, types=[type]).insert_after(parts[0].node).output


def _multiply_matrices(graph: Graph) -> None:
    """Replace the gradient of the input of ``linear`` by a matrix product if the weight is a matrix: kernels compute
    it."""
    for node in graph.find_nodes("autodiff::linear_input"):
        gradient, _, weight = node.inputs
        if isinstance(weight.type, TensorType) and weight.type.rank == 2:
            with graph.inserting_before(node):
                node.replace_with(graph.insert("aten::matmul", [gradient, weight]))


def _drop_sums(graph: Graph) -> None:
    """Remove the reduction of a gradient to a size (``aten::_grad_sum_to_size``) if the size is None: then the gradient
    has it already."""
    for node in graph.find_nodes("aten::_grad_sum_to_size"):
        gradient, size = node.inputs
        if size.type == NONE:
            node.replace_with(gradient)
