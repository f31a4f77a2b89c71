"""Lower ``prim::vmap``: replace it with batched operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.errors import BatchingError
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import DictType, ListType, TensorType, Type
from rekindle.passes import (
    run_passes,
)
from rekindle.runtime.pipelines import VMAP_CLEANUP
from rekindle.transforms.vmap.batched_scalars import is_number
from rekindle.transforms.vmap.batchedness import BatchednessAnalysis
from rekindle.transforms.vmap.batching import Batch, Batcher, NeedsLoopFallback, Randomness
from rekindle.transforms.vmap.loop_fallbacks import LoopFallback
from rekindle.transforms.vmap.vmap_node import KIND, NO_DIM, body_as_graph


@dataclass(slots=True)
class BatchingReport:
    """How the nodes of a program were batched.

    ``by_rule`` counts the kinds that batching rules compute. ``looped`` lists what a loop over the examples computes.
    With a ``whole_loop`` the program is one loop over the examples.

    Example:
        >>> report = rekindle.vmap(lambda x: x.exp()).report
        >>> report.looped, report.whole_loop
        ([], None)
    """

    by_rule: Counter[str] = field(default_factory=Counter)
    looped: list[LoopFallback] = field(default_factory=list)
    whole_loop: LoopFallback | None = None

    def __str__(self) -> str:
        lines = [f"{sum(self.by_rule.values())} operators by rules: {', '.join(sorted(self.by_rule)) or 'none'}"]
        looped = self.looped if self.whole_loop is None else [self.whole_loop]
        if self.whole_loop is not None:
            lines = ["the whole program in a loop over the examples:"]
        elif looped:
            lines.append(f"{len(looped)} in loops over the examples:")
        lines += [f"  {each.kind}: {each.reason}{_place(each)}" for each in looped]
        return "\n".join(lines)


def _place(looped: LoopFallback) -> str:
    range = looped.range
    return f" (line {range.line})" if range.is_known else ""


def lower(graph: Graph) -> BatchingReport:
    """Replace every ``prim::vmap`` in ``graph`` with batched operators, nested ones first. Return how the nodes were
    batched.

    Args:
        graph: a graph with ``prim::vmap`` nodes, which is modified.

    Raises:
        BatchingError: a node cannot be batched.

    Example:
        >>> from rekindle.transforms.vmap import lower, wrap_in_vmap
        >>> graph = rekindle.script(lambda x, y: x.exp() * y.exp()).graph
        >>> batched = wrap_in_vmap(graph, [0, None], [0])
        >>> report = lower(batched)
        >>> batched.find_node("prim::vmap") is None
        True
    """
    report = BatchingReport()
    for node in reversed(graph.find_nodes(KIND)):
        _lower(node, report)
    run_passes(graph, VMAP_CLEANUP)
    return report


def _lower(node: Node, report: BatchingReport) -> None:
    source, outside = body_as_graph(node)
    try:
        made = _batched(node, source, report)
    except NeedsLoopFallback as why:
        report.whole_loop = LoopFallback(KIND, why.range, why.reason)
        made = _looped(node, source, why)
    with node.graph.inserting_before(node):
        results = node.graph.insert_graph(made, [*node.inputs, *outside])
        for output, result in zip(node.outputs, results, strict=True):
            output.replace_all_uses_with(_of_its_class(output.type, result))
    node.destroy()


def _of_its_class(type: Type, result: Value) -> Value:
    """Return ``result`` as a value of ``type``, which may be a subclass of list or dict; helpers return plain lists and
    dicts."""
    if type == result.type or not isinstance(type, (ListType, DictType)):
        return result
    graph = result.node.graph
    return graph.insert_node(graph.create("prim::unchecked_cast", [result], types=[type])).output


def _randomness(node: Node) -> Randomness:
    return node.get_string("randomness")  # type: ignore[return-value]  # declare puts one of them there


def _dims(node: Node, name: str) -> list[int]:
    return [dim for dim in node[name] if isinstance(dim, int)]  # type: ignore[union-attr]


def _start(node: Node, source: Graph) -> tuple[Graph, Batch]:
    """Return a new graph with the inputs of ``source``, and the batch of its inputs with the batch dimension in
    front.

    Raises:
        BatchingError: no tensor differs between the examples.
    """
    graph = Graph()
    values: dict[Value, Value] = {}
    for value in source.inputs:
        values[value] = graph.add_input(type=value.type).copy_metadata(value)
    dims = _dims(node, "in_dims")
    varying = [value for value in source.inputs[: len(dims)] if str(value.type) in _SIZES]
    if not varying:
        raise BatchingError("vmap needs a tensor that differs between the examples", node.range)
    first = min(varying, key=lambda value: list(_SIZES).index(str(value.type)))
    helpers = Batcher(source, graph, "error", BatchednessAnalysis(source, is_random=False))
    number = list(source.inputs).index(first)
    size = helpers.call(_SIZES[str(first.type)], values[first], graph.insert_constant(dims[number]))
    for value, dim in zip(source.inputs, dims, strict=False):
        where = graph.insert_constant(dim)
        if value is not first or not isinstance(first.type, TensorType):
            helpers.run(_CHECKS[str(value.type)], values[value], where, size)
        if dim != 0:
            values[value] = helpers.call(_MOVES[str(value.type)], values[value], where)
    return graph, Batch(size, values)


_SIZES: Final = {
    "Tensor": "size_of_batch",
    "Tensor[]": "size_of_batches",
    "Dict(str, Tensor)": "size_of_entries",
    "Tensor?": "size_of_optional",
}
"""Functions that return the batch size, the most reliable first: lists may be empty, and an Optional may be None."""

_CHECKS: Final = {
    "Tensor": "check_size",
    "Tensor[]": "check_sizes",
    "Dict(str, Tensor)": "check_sizes_of_entries",
    "Tensor?": "check_optional_size",
}
_MOVES: Final = {
    "Tensor": "batch_in_front",
    "Tensor[]": "batches_in_front",
    "Dict(str, Tensor)": "entries_in_front",
    "Tensor?": "optional_batch_in_front",
}


def _batched(node: Node, source: Graph, report: BatchingReport) -> Graph:
    randomness = _randomness(node)
    spread = BatchednessAnalysis(source, randomness == "different")
    spread.run(source.inputs[: len(node.inputs)])
    graph, batch = _start(node, source)
    batcher = Batcher(source, graph, randomness, spread)
    for value in source.inputs[len(node.inputs) :]:
        if value in spread.batched:
            batch.values[value] = batcher.expanded(batch, value.type, batch.values[value], own=True)
    batcher.block(source.block, batch)
    for value, dim in zip(source.outputs, _dims(node, "out_dims"), strict=True):
        if dim == NO_DIM:
            if value in spread.batched:
                raise BatchingError(
                    "out_dims says that a result is the same for all examples, and it differs between them",
                    value.node.range,
                    hint="give a dimension for it",
                )
            graph.add_output(batcher.as_computed(batch, value))
            continue
        graph.add_output(_moved(batcher, batcher.as_batched(batch, value), dim))
    report.by_rule.update(batcher.by_rule)
    report.looped += batcher.looped
    return graph


def _moved(batcher: Batcher, value: Value, dim: int) -> Value:
    if dim == 0:
        return value
    name = {"Tensor[]": "batches_moved_to", "Dict(str, Tensor)": "entries_moved_to"}.get(str(value.type))
    return batcher.call(name or "batch_moved_to", value, batcher.graph.insert_constant(dim))


def _looped(node: Node, source: Graph, why: NeedsLoopFallback) -> Graph:
    """Return a graph that runs all of ``source`` in a loop over the examples.

    Raises:
        BatchingError: ``out_dims`` says that a result is the same for all examples, or a result is neither a tensor nor
            a number.
    """
    graph, batch = _start(node, source)
    differ = BatchednessAnalysis(source, is_random=False)
    differ.batched.update(source.inputs[: len(node.inputs)])
    batcher = Batcher(source, graph, _randomness(node), differ)
    gathered = [graph.insert_node(_list_of(graph, value)).output for value in source.outputs]
    with batcher.counted(batch.size, KIND, why.reason) as index:
        index.node.range = why.range
        inner = Batch(batch.size, {}, batch, lambda value, found: batcher.example(value, found, index.value))
        results = _cloned(batcher, inner, source)
        for several, result in zip(gathered, results, strict=True):
            graph.insert_node(graph.create("aten::append", [several, result], types=[several.type]))
    for value, several, dim in zip(source.outputs, gathered, _dims(node, "out_dims"), strict=True):
        differ.batched.add(value)
        if dim == NO_DIM:
            raise BatchingError(
                "out_dims says that a result is the same for all examples, and it is computed for each",
                value.node.range,
                hint="give a dimension for it",
            )
        graph.add_output(_moved(batcher, batcher.stacked(value, several), dim))
    return graph


def _list_of(graph: Graph, value: Value) -> Node:
    if not is_number(value.type) and not may_contain_tensor(value.type):
        raise BatchingError(f"the program returns a {value.type.annotation}, not a tensor", value.node.range)
    return graph.create("prim::ListConstruct", types=[ListType(value.type)])


def _cloned(batcher: Batcher, batch: Batch, source: Graph) -> Sequence[Value]:
    for node in source.nodes:
        copy = batcher.graph.create_clone(node, lambda value: batcher.as_computed(batch, value))
        batch.values.update(zip(node.outputs, batcher.graph.insert_node(copy).outputs, strict=True))
    return [batcher.as_computed(batch, value) for value in source.outputs]
