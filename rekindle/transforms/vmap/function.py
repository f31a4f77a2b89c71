"""``rekindle.vmap``: a program for one example becomes a program for a batch of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.errors import BatchingError, DifferentiationError, NotScriptableError
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import TENSOR, TensorType, Type
from rekindle.passes import (
    ConstantPropagation,
    DeadCodeElimination,
    run_passes,
)
from rekindle.program.function import Function
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.pipelines import VMAP_PREPARATION
from rekindle.scripting.script import script
from rekindle.transforms.derivatives.modules import function_of
from rekindle.transforms.indexing import inline_with_plain_indices
from rekindle.transforms.split_unions import split_unions
from rekindle.transforms.vmap.batch_dims import Dims, DimTree, dim_tree_of, elements, fold_entries, inputs, unflatten
from rekindle.transforms.vmap.batchedness import written_by
from rekindle.transforms.vmap.batching import Randomness
from rekindle.transforms.vmap.loop_fallbacks import loops_over_examples
from rekindle.transforms.vmap.lowering import BatchingReport, lower
from rekindle.transforms.vmap.vmap_node import wrap_in_vmap


class BatchedFunction(Function):
    """A compiled function for batches, which :func:`vmap` returns. ``report`` lists how its operators are computed.

    Example:
        >>> batched = rekindle.vmap(lambda x: x.exp())
        >>> batched.report.by_rule
        Counter({'aten::exp': 1})
    """

    def __init__(self, record: GraphFunction, report: BatchingReport) -> None:
        super().__init__(record)
        self.report = report


def vmap(func: Any, in_dims: Dims = 0, out_dims: Dims = 0, randomness: Randomness = "error") -> BatchedFunction:
    """Return a function that computes for a batch of examples the results of ``func`` for each, without a loop.

    The result is a compiled function: it can be printed, saved, differentiated, and given to ``vmap`` again. Operators
    with a batching rule compute with batches; only the others are computed in a loop over the examples, which
    ``report`` of the result lists. Examples may take different branches, and leave loops after different numbers of
    iterations.

    Args:
        func: a compiled function or module, or a Python one, which is compiled. A module becomes a function of its
            parameters: the first argument is a dict of them by name, then come the arguments of ``forward``.
        in_dims: the batch dimension of the arguments: an int for all tensors, or a tuple with an entry for each
            argument: an int, None for an argument without a batch dimension, or a tuple, list or dict of these for the
            elements of a tuple, a list or a dict. For the parameters of a module, a dict may leave out those without a
            batch dimension, and may name buffers, which are constants otherwise.
        out_dims: the same for the results. A number among the results becomes a tensor with one number for each
            example.
        randomness: ``"error"`` rejects operators that draw random numbers, ``"different"`` draws numbers for each
            example, ``"same"`` draws the same numbers for all.

    Raises:
        NotScriptableError: ``func`` is not a function or a module.
        BatchingError: an option is invalid, ``in_dims`` or ``out_dims`` do not fit, a part of ``func`` cannot be
            batched, or ``func`` draws random numbers and ``randomness`` is ``"error"``.
        CompileError: ``func`` cannot be compiled.

    Example:
        >>> dots = rekindle.vmap(lambda x, y: x.dot(y), in_dims=(0, None))
        >>> dots(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
        tensor([3., 7.])
    """
    if randomness not in get_args(Randomness):
        raise BatchingError(f"randomness is 'error', 'same' or 'different', not {randomness!r}")
    compiled = script(func)
    if isinstance(compiled, Function):
        name, graph, arguments = compiled.name, compiled._record.graph.copy(), compiled.schema.arguments
        inline_with_plain_indices(graph)
    elif isinstance(compiled, ScriptModule):
        name, graph, arguments, in_dims = _of_module(compiled, in_dims)
    else:
        raise NotScriptableError(
            f"'vmap' takes functions and modules, not a {type(compiled).__name__}",
            hint="write a function that calls what is meant",
        )
    split_unions(graph, name.rpartition(".")[2])
    takes = _forms_of_arguments(graph, in_dims)
    gives = dim_tree_of(graph.outputs[0].type, out_dims, "out_dims", "the result")
    flat = _flat(graph, takes, gives)
    in_leaves = [leaf.dim for form in takes for leaf in form.leaves()]
    declared = wrap_in_vmap(flat, in_leaves, [leaf.dim for leaf in gives.leaves()], randomness)
    whole = _whole(graph, declared, takes, gives)
    report = lower(whole)
    report.looped += [each for each in loops_over_examples(flat) if each not in report.looped]  # of batches within
    record = GraphFunction(f"vmap_{name}")
    parameters = [dataclasses.replace(each, type=_of_batches(each.type)) for each in arguments]
    record.define(whole, FunctionSchema(record.basename, "", tuple(parameters), (Argument("", whole.outputs[0].type),)))
    return BatchedFunction(record, report)


def _of_module(module: ScriptModule, in_dims: Dims) -> tuple[str, Graph, tuple[Argument, ...], Dims]:
    """Return ``forward`` as a function of the parameters by name (its name, graph, arguments), with ``in_dims``
    extended by those of the parameters.

    Raises:
        BatchingError: ``in_dims`` names something that is neither a parameter nor a buffer, ``forward`` writes to a
            buffer, or is not a function of its parameters.
    """
    names = [name for name, _ in module.named_parameters()]
    first = in_dims[0] if isinstance(in_dims, (tuple, list)) and in_dims else in_dims
    buffers: list[str] = []
    if isinstance(first, Mapping):
        known = {name for name, _ in module.named_buffers()}
        buffers = [name for name in first if name not in names]
        strange = [name for name in buffers if name not in known]
        if strange:
            raise BatchingError(
                f"in_dims names {strange[0]!r}, and '{module.original_name}' has no parameter or buffer of that name",
                hint=f"it has {', '.join(map(repr, [*names, *sorted(known)]))}",
            )
        first = dict.fromkeys(names) | dict(first)
    elif first is None or isinstance(first, int):
        first = dict.fromkeys(names, first)
    try:
        name, graph, arguments, _ = function_of(module, buffers)
    except DifferentiationError as error:
        raise BatchingError(error.message, error.range, hint="call eval(), or freeze the module, before") from error
    run_passes(graph, (ConstantPropagation(), DeadCodeElimination()))
    for node in graph.all_nodes():
        if any(value.node.kind == "prim::Constant" for value in written_by(node)):
            raise BatchingError(
                f"'{module.original_name}' writes to a buffer, which is the same for all examples",
                node.range,
                hint="call eval() before",
            )
    if not isinstance(in_dims, (tuple, list)):
        rest = [in_dims if may_contain_tensor(argument.type) else None for argument in arguments[1:]]
        return name.rpartition(".")[2], graph, arguments, (first, *rest)
    return name.rpartition(".")[2], graph, arguments, (first, *in_dims[1:])


def _forms_of_arguments(graph: Graph, in_dims: Dims) -> list[DimTree]:
    values = graph.inputs
    if isinstance(in_dims, Mapping):
        raise BatchingError("in_dims is a number or a tuple with an entry for each argument, not a dict")
    if in_dims is None or isinstance(in_dims, int):
        dims: list[Dims] = [in_dims if may_contain_tensor(value.type) else None for value in values]
    elif len(in_dims) != len(values):
        raise BatchingError(f"in_dims has {len(in_dims)} entries, and the function takes {len(values)} arguments")
    else:
        dims = list(in_dims)
    forms = [
        dim_tree_of(value.type, dim, "in_dims", f"argument '{value.base_name}'")
        for value, dim in zip(values, dims, strict=True)
    ]
    if all(leaf.dim is None for form in forms for leaf in form.leaves()):
        raise BatchingError("in_dims says of no argument that it differs between the examples")
    return forms


def _flat(graph: Graph, takes: list[DimTree], gives: DimTree) -> Graph:
    """Return ``graph`` with the leaves of its arguments as inputs, and the leaves of its result as outputs."""
    flat = Graph()
    arguments = [inputs(flat, form, value.base_name) for value, form in zip(graph.inputs, takes, strict=True)]
    (result,) = flat.insert_graph(graph, arguments)
    for value in elements(flat, result, gives):
        flat.add_output(value)
    fold_entries(flat)
    run_passes(flat, VMAP_PREPARATION)
    return flat


def _whole(original: Graph, declared: Graph, takes: list[DimTree], gives: DimTree) -> Graph:
    """Return ``declared`` with the inputs and the output in the structure of ``original``."""
    graph = Graph()
    leaves = []
    for value, form in zip(original.inputs, takes, strict=True):
        leaves += elements(graph, graph.add_input(value.base_name, _of_batches(value.type)), form)
    results = graph.insert_graph(declared, leaves)
    graph.add_output(unflatten(graph, gives, iter(results)))
    return graph


def _of_batches(type: Type) -> Type:
    return TENSOR if isinstance(type, TensorType) else type
