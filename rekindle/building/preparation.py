"""Prepare the graph of a method for a native library: evaluate, optimise, fuse, and run it on the examples.

The dtypes and ranks of the tensors among the arguments are those of the examples, and the library checks them. Sizes
are free. Attributes that the program does not write to are constants.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rekindle.building.lowering.representation import NotBuildable
from rekindle.codegen.fusion import KIND, FuseGraph
from rekindle.codegen.fusion_executor import group_of
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import COMPILING, GraphFunction
from rekindle.ir.subgraph_execution import callable_of, compile_immediately
from rekindle.ir.types import TensorType
from rekindle.passes import DeadCodeElimination, PartialEvaluation
from rekindle.passes.pass_manager import run_nested
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import OPTIMIZATION, SPECIALIZATION
from rekindle.runtime.strategies.call_facts import CallFactsFinder

Arguments = Sequence[Any]

_FUSION = (FuseGraph(alone=True), DeadCodeElimination())


def prepare(record: GraphFunction, own: Arguments, examples: Sequence[Arguments]) -> Graph:
    """Return the graph of a method or a function, specialised to the ``examples``. Those of a method begin with the
    module, which is all there is in ``own``. Each fused group has recipes for the sizes that the examples led to.

    Raises:
        NotBuildable: the examples differ in the dtype or the rank of an argument.
    """
    with COMPILING, torch.no_grad():
        graph = record.graph.copy()
        unknown = [None] * (len(graph.inputs) - len(own))
        evaluation = CallFactsFinder(record).evaluation([*own, *unknown])
        types = _types(graph, examples)
        passes = PartialEvaluation(types=types, attributes=evaluation.attributes, with_types=evaluation.with_types)
        optimize(graph, (passes, *OPTIMIZATION))
        for index, type in types.items():
            graph.inputs[index].set_type(type)
        optimize(graph, SPECIALIZATION)
        _split_addmm(graph)
        optimize(graph, _FUSION)
        _run(graph, record.basename, examples)
        while _leave_products_to_blas(graph):
            _run(graph, record.basename, examples)
        return graph


def _types(graph: Graph, examples: Sequence[Arguments]) -> dict[int, TensorType]:
    """Return the types of the inputs that are tensors: dtype, device and rank."""
    found: dict[int, TensorType] = {}
    for index, value in enumerate(graph.inputs):
        given = [example[index] for example in examples if isinstance(example[index], Tensor)]
        if not isinstance(value.type, TensorType) or not given:
            continue
        kinds = {(each.dtype, each.dim()) for each in given}
        if len(kinds) > 1:
            listed = " and ".join(sorted(f"{rank}-dimensional {dtype}" for dtype, rank in kinds))
            raise NotBuildable(
                f"the examples for '{value.base_name}' are {listed}: a library takes one dtype and one rank; build one "
                "library for each"
            )
        dtype, rank = kinds.pop()
        found[index] = TensorType(dtype, torch.device("cpu"), (None,) * rank)
    return found


def _run(graph: Graph, name: str, examples: Sequence[Arguments]) -> None:
    """Run the graph on copies of the examples, so that its groups make their kernels."""
    with compile_immediately():
        function = callable_of(graph, name)
    for example in examples:
        function(*copy.deepcopy(list(example)))


def _split_addmm(graph: Graph) -> None:
    """Write ``addmm`` without factors as a product and a sum: the stable ABI of PyTorch passes no Scalars, and the sum
    fuses."""
    for node in list(graph.all_nodes()):
        if node.kind == "aten::addmm" and all(value.to_python() == 1 for value in node.inputs[3:]):
            with graph.inserting_before(node) as builder:
                bias, a, b, _, one = node.inputs
                product = builder.insert("aten::mm", [a, b])
                product.set_type(node.output.type)
                total = builder.insert("aten::add", [product, bias, one])
                total.set_type(node.output.type)
            node.replace_with(total)


def _leave_products_to_blas(graph: Graph) -> bool:
    """Take groups apart of which the products are too large for kernels; return whether there were any."""
    changed = False
    for node in [each for each in graph.all_nodes() if each.kind == KIND]:
        group = group_of(node.get_graph("Subgraph"))
        if group is None or group.recipes or group.without_products is None:
            continue
        _replace_with_operators(graph, node)
        changed = True
    return changed


def _replace_with_operators(graph: Graph, node: Node) -> None:
    rest = node.get_graph("Subgraph").copy()
    run_nested(FuseGraph(products=False, alone=True), rest)
    with graph.inserting_before(node):
        results = graph.insert_graph(rest, node.inputs)
    node.replace_with(*results)
