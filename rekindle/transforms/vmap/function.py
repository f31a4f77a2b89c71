"""``rekindle.vmap``: a program for one example becomes a program for a batch of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

from rekindle.analysis.mutability import may_hold_tensor
from rekindle.errors import BatchingError, NotScriptableError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.records import FunctionRecord
from rekindle.ir.types import TENSOR, ListType, OptionalType, TensorType, TupleType, Type
from rekindle.passes import (
    ConstantPropagation,
    DeadCodeElimination,
    LowerSimpleTuples,
    Pass,
    Peephole,
    RemoveMutation,
    run_passes,
)
from rekindle.program.compilation_unit import schema_of_graph
from rekindle.program.function import Function
from rekindle.scripting.script import script
from rekindle.transforms.vmap.batching import Randomness
from rekindle.transforms.vmap.declare import declare
from rekindle.transforms.vmap.lowering import BatchingReport, lower
from rekindle.transforms.vmap.scalars import is_number

InDims = int | None | tuple[Any, ...]
"""A dimension, or None, or one of these for each element of a tuple."""

_PREPARATION: Final[tuple[Pass, ...]] = (
    LowerSimpleTuples(),
    ConstantPropagation(),
    Peephole(),
    RemoveMutation(),
    DeadCodeElimination(),
)


class BatchedFunction(Function):
    """What :func:`vmap` makes: a compiled function for batches. ``report`` tells how it computes them."""

    def __init__(self, record: FunctionRecord, report: BatchingReport) -> None:
        super().__init__(record)
        self.report = report


def vmap(func: Any, in_dims: InDims = 0, out_dims: InDims = 0, randomness: Randomness = "error") -> BatchedFunction:
    """A function that computes for a batch of examples what ``func`` computes for one, without a loop.

    ``func`` is a compiled function, or a Python function, which is compiled. The result is a compiled function like
    any other: it can be looked at, saved, differentiated, and given to ``vmap`` again.

    ``in_dims`` says in which dimension of the arguments the examples lie: a number for all tensors among them, or a
    tuple with a number for each argument, None for an argument that is the same for all examples, and a tuple of such
    for an argument that is a tuple. Arguments that are no tensors are the same for all. ``out_dims`` says the same of
    the results; None there is for a result that is the same for all examples. A number among the results becomes a
    tensor with the number of each example.

    ``randomness``: what an operator that draws random numbers does: ``"error"`` refuses it, ``"different"`` draws
    numbers for each example, ``"same"`` draws numbers that serve all.

    What has no rule of batching, and only that, is computed in a loop over the examples; ``report`` of the result
    lists it. Examples may take different branches, and leave loops at different times.

    Raises:
        NotScriptableError: ``func`` is no function.
        BatchingError: ``in_dims`` or ``out_dims`` do not fit it; or it draws random numbers, and nothing was said
            about them.
        CompileError: ``func`` cannot be compiled.
    """
    if randomness not in get_args(Randomness):
        raise BatchingError(f"randomness is 'error', 'same' or 'different', not {randomness!r}")
    compiled = script(func)
    if not isinstance(compiled, Function):
        raise NotScriptableError(
            f"'vmap' takes functions, not a {type(compiled).__name__}",
            hint="write a function that takes the parameters as arguments",
        )
    graph = compiled.inlined_graph
    dims = _dims_of_arguments(graph, in_dims)
    flat = graph.copy()
    leaves = [list(_leaves(value.type, dim)) for value, dim in zip(graph.inputs, dims, strict=True)]
    _take_apart_inputs(flat)
    results = _take_apart_output(flat)
    run_passes(flat, _PREPARATION)
    outs = list(_spread_dims(graph.outputs[0].type, out_dims, "out_dims", "the result"))
    declared = declare(flat, [dim for each in leaves for dim in each], outs, randomness)
    whole = _put_together(graph, declared, results)
    report = lower(whole)
    name = f"vmap_{compiled.name}"
    record = FunctionRecord(name)
    record.define(whole, schema_of_graph(name, whole))
    return BatchedFunction(record, report)


# ----------------------------------------------------------------------------------------------------------- dimensions


def _dims_of_arguments(graph: Graph, in_dims: InDims) -> list[InDims]:
    values = graph.inputs
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    if not isinstance(in_dims, tuple):
        dims: list[InDims] = [in_dims if may_hold_tensor(value.type) else None for value in values]
    elif len(in_dims) != len(values):
        raise BatchingError(f"in_dims has {len(in_dims)} entries, and the function takes {len(values)} arguments")
    else:
        dims = list(in_dims)
    found = [
        list(_spread_dims(value.type, dim, "in_dims", f"argument '{value.base_name}'"))
        for value, dim in zip(values, dims, strict=True)
    ]
    if not any(dim is not None for each in found for dim in each):
        raise BatchingError("in_dims says of no argument that it differs between the examples")
    return dims


def _leaves(type: Type, dim: InDims) -> Iterator[int | None]:
    yield from _spread_dims(type, dim, "in_dims", "an argument")


def _spread_dims(type: Type, dim: InDims, option: str, what: str) -> Iterator[int | None]:
    """The dimension of each part of a value that is not a tuple."""
    if isinstance(dim, list):
        dim = tuple(dim)
    if isinstance(type, TupleType):
        parts = type.contained
        dims = dim if isinstance(dim, tuple) else (dim,) * len(parts)
        if len(dims) != len(parts):
            raise BatchingError(f"{option} has {len(dims)} entries for {what}, which has {len(parts)} elements")
        for part, each in zip(parts, dims, strict=True):
            each = each if isinstance(dim, tuple) or may_hold_tensor(part) or option == "out_dims" else None
            yield from _spread_dims(part, each, option, f"an element of {what}")
        return
    if isinstance(dim, tuple):
        raise BatchingError(f"{option} has a tuple for {what}, which is a {type.annotation}")
    if option == "out_dims" and is_number(type):
        yield None if dim is None else 0
        return
    if dim is not None and not _can_be_batched(type):
        raise BatchingError(
            f"{option} is {dim} for {what}, which is a {type.annotation}",
            hint="give None for what is the same for all examples" if option == "in_dims" else None,
        )
    yield dim


def _can_be_batched(type: Type) -> bool:
    return isinstance(type, TensorType) or type in (ListType(TENSOR), OptionalType(TENSOR))


# --------------------------------------------------------------------------------------------------------------- tuples


def _take_apart_inputs(graph: Graph) -> None:
    """Let ``graph`` take the elements of tuples instead of tuples."""
    graph.insert_point = next(graph.nodes, graph.return_node)
    for index in reversed(range(len(graph.inputs))):
        value = graph.inputs[index]
        if isinstance(value.type, TupleType):
            made = _built(graph, value.type, index, value.base_name)
            value.replace_all_uses_with(made)
            graph.block.erase_input(index + _count(value.type))
    graph.insert_point = graph.return_node


def _count(type: Type) -> int:
    return sum(map(_count, type.contained)) if isinstance(type, TupleType) else 1


def _built(graph: Graph, type: TupleType, index: int, name: str) -> Value:
    """A tuple of new inputs, which come from ``index`` on."""
    parts: list[Value] = []
    for part in type.contained:
        if isinstance(part, TupleType):
            parts.append(_built(graph, part, index, name))
        else:
            parts.append(graph.block.insert_input(index, name, part))
        index += _count(part)
    return graph.insert_node(graph.create("prim::TupleConstruct", parts, types=[type])).output


def _take_apart_output(graph: Graph) -> Type:
    """Let ``graph`` return the elements of a tuple instead; returns what it returned."""
    (output,) = graph.outputs
    result = output.type
    if isinstance(result, TupleType):
        graph.block.erase_output(0)
        for value in _elements(graph, output):
            graph.add_output(value)
    return result


def _elements(graph: Graph, value: Value) -> list[Value]:
    if not isinstance(value.type, TupleType):
        return [value]
    unpack = graph.create("prim::TupleUnpack", [value], types=list(value.type.contained))
    return [each for part in graph.insert_node(unpack).outputs for each in _elements(graph, part)]


def _put_together(original: Graph, declared: Graph, result: Type) -> Graph:
    """``declared`` with the tuples of ``original`` as its inputs and its output."""
    graph = Graph()
    arguments: list[Value] = []
    for value in original.inputs:
        new = graph.add_input(value.base_name, _of_batches(value.type))
        arguments += _elements(graph, new)
    results = graph.insert_graph(declared, arguments)
    graph.add_output(_packed(graph, result, iter(results)))
    return graph


def _packed(graph: Graph, type: Type, values: Iterator[Value]) -> Value:
    if not isinstance(type, TupleType):
        return next(values)
    parts: Sequence[Value] = [_packed(graph, part, values) for part in type.contained]
    if any(part.type != each for part, each in zip(parts, type.contained, strict=True) if is_number(each)):
        type = TupleType(tuple(part.type for part in parts))  # numbers that differ are tensors now
    return graph.insert_node(graph.create("prim::TupleConstruct", parts, types=[type])).output


def _of_batches(type: Type) -> Type:
    return TENSOR if isinstance(type, TensorType) else type
