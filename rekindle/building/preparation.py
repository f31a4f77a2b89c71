"""Preparation of the graph of a method for a native library: evaluate, optimize, fuse, and run it on the examples.

The dtypes and ranks of the tensors among the arguments are those of the examples, and the library checks them. Sizes
are free. Attributes that the program does not write to are constants.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.analysis.attribute_writes import AttributeKey
from rekindle.building.arguments import may_be_copied
from rekindle.building.attention import decompose_attention
from rekindle.building.dynamic_sizes import with_other_sizes
from rekindle.building.group_layouts import GroupInputs, RecordedRuns
from rekindle.building.group_recipes import recipes_for_calls, recipes_for_types
from rekindle.building.internal_operators import COPY_INTO, IMAGINARY_PART, REAL_PART, SETTLED
from rekindle.building.letters import compare_letters
from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.out_arguments import write_to_arguments
from rekindle.building.scalar_operators import replace_scalar_operators
from rekindle.codegen.compiled_kernels import KernelRecipe
from rekindle.codegen.fusible import is_product
from rekindle.codegen.fusion import KIND, FuseGraph
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.graph_function import COMPILING, GraphFunction
from rekindle.ir.scalar_types import NUMBERED_CLASSES, number_of
from rekindle.ir.types import COMPLEX, FLOAT, NONE, TENSOR, InterfaceType, OptionalType, TensorType
from rekindle.passes import DeadCodeElimination, PartialEvaluation
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.functional_variants import functional_operator
from rekindle.passes.simplification.partial_evaluation import PRESENT
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import OPTIMIZATION, SPECIALIZATION
from rekindle.runtime.strategies.call_facts import CallFactsFinder

Arguments = Sequence[Any]

_FUSION = (FuseGraph(alone=True), DeadCodeElimination())


@dataclass(slots=True)
class PreparedMethod:
    """The optimized graph of a method, and the kernel recipes of its fused groups, by their subgraphs."""

    graph: Graph
    recipes: dict[Graph, Sequence[KernelRecipe]] = field(default_factory=dict)


def prepare(
    record: GraphFunction,
    own: Arguments,
    examples: Sequence[Arguments],
    dynamic: Mapping[str, Sequence[int]],
    freestanding: bool,
) -> PreparedMethod:
    """Return a method or a function, specialized to the ``examples`` and fused. ``record`` is not modified.

    ``own`` holds the module, with which the examples of a method begin; it is empty for a function. Each fused group
    has recipes for the sizes in runs of the examples, and for sizes that may occur with other sizes of the ``dynamic``
    dimensions of parameters. Unless the library is ``freestanding``, PyTorch computes large products.

    Raises:
        NotBuildable: the program raises an error on an example or uses something that libraries do not have, or a
            dynamic dimension does not exist.
    """
    with COMPILING, torch.no_grad():
        graph = _specialized(record, own, _types(record.graph, examples), _known(record.graph, examples))
        copied = [may_be_copied(graph, value) for value in graph.inputs]
        examples = [_as_taken(example, copied) for example in examples]
        resized = with_other_sizes(record, examples, dynamic)
        # Calls of a module with state depend on those before them, and lead to sizes that no first call leads to.
        sequence = examples if len(examples) > 1 and own and _has_state(graph) else ()
        prepared = PreparedMethod(graph)
        pending = True
        while pending:
            calls = _calls_of_groups(graph, record.basename, len(own), examples, resized, sequence)
            pending = False
            for node in [each for each in graph.all_nodes() if each.kind == KIND]:
                group = node.get_graph("Subgraph")
                if group in prepared.recipes:
                    continue
                recipes = recipes_for_calls(group, calls[group], may_defer=not freestanding)
                if calls[group] and not recipes:
                    # PyTorch computes the products, and what is left of the group may have kernels.
                    pending |= _replace_with_operators(graph, node)
                    continue
                prepared.recipes[group] = recipes or recipes_for_types(group, node)
        return prepared


def _specialized(
    record: GraphFunction, own: Arguments, types: dict[int, TensorType], known: dict[int, object]
) -> Graph:
    """Return the optimized and fused graph of a function. ``own`` are its leading arguments (the module). ``types`` are
    the types of tensors, and ``known`` the values of other arguments, both by index of the input."""
    graph = record.graph.copy()
    unknown = [None] * (len(graph.inputs) - len(own))
    finder = CallFactsFinder(record)
    finder.written = _written_by_methods(own, finder.written)
    evaluation = finder.evaluation([*own, *unknown])
    passes = PartialEvaluation(known, types, attributes=evaluation.attributes, with_types=evaluation.with_types)
    inline_forks(graph)
    optimize(graph, (passes, *OPTIMIZATION))
    if _resolve_interfaces(graph, own) or inline_forks(graph):
        optimize(graph, OPTIMIZATION)
    for index, type in types.items():
        graph.inputs[index].set_type(type)
    for index, fact in known.items():
        given = graph.inputs[index].type
        if fact is None:
            graph.inputs[index].set_type(NONE)
        elif isinstance(given, OptionalType):
            graph.inputs[index].set_type(types.get(index, given.element))
    optimize(graph, SPECIALIZATION)
    _read_parts_of_complex_numbers(graph)
    for node in list(graph.all_nodes()):
        if node.kind == "prim::abs" and isinstance(node.input.type, TensorType):
            found = graph.create("aten::abs", [node.input], types=[node.output.type], range=node.range)
            node.replace_with(found.insert_before(node).output)
    decompose_attention(graph)
    compare_letters(graph)
    _split_products(graph)
    _write_in_place_operators_out(graph)
    write_to_arguments(graph)
    optimize(graph, _FUSION)
    replace_scalar_operators(graph)
    return graph


def _written_by_methods(own: Arguments, written: AbstractSet[AttributeKey] | None) -> AbstractSet[AttributeKey] | None:
    """Return the attributes that any method of the module may write to, in addition to ``written``, since all
    methods of a library share one instance. Return None if these are unknown."""
    found = set(written or ())
    for module in own:
        for method in module.script_type.methods.values():
            other = CallFactsFinder(method).written if method.is_defined else None
            if written is None or (method.is_defined and other is None):
                return None
            found |= other or set()
    return found if own else written


def _known(graph: Graph, examples: Sequence[Arguments]) -> dict[int, object]:
    """Return the optional inputs, by index, that are None in all examples or in none. The library rejects other
    arguments for these."""
    found: dict[int, object] = {}
    for index, value in enumerate(graph.inputs):
        if isinstance(value.type, OptionalType) and examples:
            missing = {example[index] is None for example in examples}
            if len(missing) == 1:
                found[index] = None if missing.pop() else PRESENT
    return found


def _types(graph: Graph, examples: Sequence[Arguments]) -> dict[int, TensorType]:
    """Return the types of the inputs that are tensors in all examples, by index: dtype and rank, if all examples agree
    on them."""
    found: dict[int, TensorType] = {}
    for index, value in enumerate(graph.inputs):
        given = [example[index] for example in examples if isinstance(example[index], Tensor)]
        type = value.type.element if isinstance(value.type, OptionalType) else value.type
        if not isinstance(type, TensorType) or len(given) < len(examples) or not given:
            continue
        dtypes, ranks = {each.dtype for each in given}, {each.dim() for each in given}
        shape = (None,) * ranks.pop() if len(ranks) == 1 else None
        found[index] = TensorType(dtypes.pop() if len(dtypes) == 1 else None, torch.device("cpu"), shape)
    return found


def _as_taken(example: Arguments, copied: Sequence[bool]) -> list[Any]:
    """Return an example as a library receives it: tensors for which ``copied`` is true are made contiguous."""
    return [
        each.contiguous() if isinstance(each, Tensor) and may_copy else each
        for each, may_copy in zip(example, copied, strict=True)
    ]


def _calls_of_groups(
    graph: Graph,
    name: str,
    modules: int,
    examples: Sequence[Arguments],
    others: Sequence[Arguments],
    sequence: Sequence[Arguments],
) -> dict[Graph, list[GroupInputs]]:
    """Run the graph on copies of the examples; return the inputs of each fused group in these runs, by its subgraph.

    ``others`` are examples with other sizes, for which the program may raise; their errors are ignored. The calls of
    ``sequence`` run in order on one copy of the module, until the first error.

    Raises:
        NotBuildable: the program raises on one of ``examples``.
    """
    runs = RecordedRuns(graph, name)
    with runs.recording() as function:
        for number, example in enumerate(examples, 1):
            try:
                function(*map(_as_in_graph, copy.deepcopy(list(example))))
            except Exception as error:  # a program may raise anything
                said = f"{type(error).__name__}: {error}".splitlines()[0]
                raise NotBuildable(f"the program raises an error on example {number} of '{name}': {said}") from error
        for example in others:
            with suppress(Exception):
                function(*map(_as_in_graph, copy.deepcopy(list(example))))
        with suppress(Exception):
            module = copy.deepcopy(list(sequence[0][:modules])) if sequence else []
            for example in sequence:
                function(*module, *map(_as_in_graph, copy.deepcopy(list(example[modules:]))))
    return runs.inputs()


def _has_state(graph: Graph) -> bool:
    """Return whether a method may change state that later calls read."""
    return any(
        node.kind == "prim::SetAttr"
        or (
            node.schema is not None
            and any(argument.alias is not None and argument.alias.is_write for argument in node.schema.arguments)
        )
        for node in graph.all_nodes()
    )


def _as_in_graph(value: Any) -> Any:
    """Return an argument as graphs represent it: a dtype as its number, a set as a dict of bools."""
    if isinstance(value, set | frozenset):
        return dict.fromkeys(value, True)
    return number_of(value) if isinstance(value, NUMBERED_CLASSES) else value


def inline_forks(graph: Graph) -> bool:
    """Inline the tasks of ``prim::fork`` nodes where they are forked, in place, so that a Future holds the result of
    its task. Return whether there were any."""
    forks = [node for node in graph.all_nodes() if node.kind == "prim::fork" and isinstance(node["Subgraph"], Graph)]
    for node in forks:
        with graph.inserting_before(node):
            (result,) = graph.insert_graph(node.get_graph("Subgraph"), node.inputs)
            future = graph.insert_node(graph.create(SETTLED, [result], types=[node.output.type], range=node.range))
        for use in list(node.output.uses):
            if use.user.kind == "aten::wait":
                use.user.output.replace_all_uses_with(result)
        node.replace_with(future.output)
    return bool(forks)


def _resolve_interfaces(graph: Graph, own: Arguments) -> bool:
    """Refine values of interface types in ``graph`` to the class of their module; return whether there were any."""
    modules: dict[Value, torch.nn.Module] = dict(zip(graph.inputs, own, strict=False))
    changed = False
    for node in graph.all_nodes():
        if node.kind != "prim::GetAttr" or node.input not in modules:
            continue
        found = getattr(modules[node.input], node.get_string("name"), None)
        if not isinstance(found, torch.nn.Module):
            continue
        modules[node.output] = found
        if isinstance(node.output.type, InterfaceType) and isinstance(found, ScriptModule):
            node.output.set_type(found.script_type)
            changed = True
    return changed


def _write_in_place_operators_out(graph: Graph) -> None:
    """Replace each elementwise in-place operator with a functional one and a copy, so that a kernel can compute it."""
    for node in list(graph.all_nodes()):
        operator = node.operator
        functional = None if operator is None else functional_operator(operator)
        if functional is None:
            continue
        target = node.inputs[0]
        with graph.inserting_before(node):
            made = graph.insert_node(graph.create(functional.name, node.inputs, types=[TENSOR], range=node.range))
            copied = graph.insert_node(
                graph.create(COPY_INTO, [target, made.output], types=[node.output.type], range=node.range)
            )
        node.replace_with(copied.output)


def _read_parts_of_complex_numbers(graph: Graph) -> None:
    """Replace ``Float(real(tensor(z)))``, which is ``z.real`` in TorchScript, with one operator without a tensor;
    likewise the imaginary part."""
    for node in list(graph.all_nodes()):
        if node.kind != "aten::Float" or node.input.node.kind not in ("aten::real", "aten::imag"):
            continue
        made = node.input.node.input.node
        if made.kind != "aten::tensor" or made.inputs[0].type != COMPLEX:
            continue
        kind = REAL_PART if node.input.node.kind == "aten::real" else IMAGINARY_PART
        part = graph.create(kind, [made.inputs[0]], types=[FLOAT], range=node.range).insert_before(node)
        node.replace_with(part.output)


_PRODUCTS: Final = {"aten::addmm": "aten::mm", "aten::baddbmm": "aten::bmm", "aten::addmv": "aten::mv"}
"""Operators that add a product to a tensor, with the operator that computes the product alone."""


def _split_products(graph: Graph) -> None:
    """Replace ``beta * input + alpha * (a @ b)`` (``addmm`` and similar operators) with constant factors by a matrix
    product, a sum and products with numbers. With a ``beta`` of 0, ``input`` is not read.

    The stable ABI of PyTorch cannot pass Scalars, and the remaining operators can be fused.
    """
    for node in list(graph.all_nodes()):
        if node.kind not in _PRODUCTS or not all(value.node.kind == "prim::Constant" for value in node.inputs[3:]):
            continue
        bias, a, b, beta, alpha = node.inputs

        def insert(kind: str, *inputs: Value, like: Node = node) -> Value:
            made = graph.create(kind, inputs, types=[like.output.type], range=like.range)
            return made.insert_before(like).output

        product = insert(_PRODUCTS[node.kind], a, b)
        if alpha.to_python() != 1:
            product = insert("aten::mul", product, alpha)
        one = graph.create_constant(1).insert_before(node).output
        if beta.to_python() == 0:
            node.replace_with(product)  # and NaN in the input does not matter
            continue
        if beta.to_python() != 1:
            bias = insert("aten::mul", bias, beta)
        node.replace_with(insert("aten::add", product, bias, one))


def _replace_with_operators(graph: Graph, node: Node) -> bool:
    """Replace a fused group with its operators. If it contains matrix products, fuse the other operators again.
    Return whether it does."""
    rest = node.get_graph("Subgraph").copy()
    has_products = any(map(is_product, rest.nodes))
    if has_products:
        run_nested(FuseGraph(products=False, alone=True), rest)
    with graph.inserting_before(node):
        results = graph.insert_graph(rest, node.inputs)
    node.replace_with(*results)
    replace_scalar_operators(graph)
    return has_products
