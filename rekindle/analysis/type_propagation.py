"""Type propagation: infer dtype, device, rank, sizes and ``requires_grad`` of every tensor from those of a graph's
inputs.

.. code-block:: text

    graph(%x : Tensor, %w : Tensor):              %x : Float(*, 4, requires_grad=0, device=cpu)
      %y : Tensor = aten::matmul(%x, %w)          %w : Float(4, 8, requires_grad=1, device=cpu)
      %z : Tensor = aten::relu(%y)                %y, %z : Float(*, *, device=cpu)
      return (%z)

Forward data-flow analysis: the rules of :mod:`rekindle.ops.result_types` are the transfer functions of operators,
branches that complete join, and loops are iterated to a fixed point. Only operators on known numbers run, to fold
constants. Facts hold for the lifetime of a value, as long as autocast is off and the default dtype is unchanged. So for
a value that is resized, or that unknown code may reach, only immutable properties are inferred.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from rekindle.analysis.aliasing.alias_db import AliasDb, MemoryLocations
from rekindle.analysis.effects import INLINE_SUBGRAPH_KINDS, writes_modes
from rekindle.analysis.raising import always_raises
from rekindle.analysis.transfer_functions import TransferFunctions, fact_of_type
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import NONE, TENSOR, ListType, OptionalType, TensorType, TupleType, Type, unshaped
from rekindle.ops.result_types.facts import Constant, Fact, join


def propagate_types(
    graph: Graph,
    input_types: Sequence[Type | None],
    *,
    grad_enabled: bool | None = None,
    every_branch: bool = False,
    any_modes: bool = False,
) -> dict[Value, Type]:
    """Return the types of all values of ``graph``, blocks and subgraphs that run in place included.

    ``input_types`` are the types of its inputs; None if only the declared type, without shapes, is known.
    ``grad_enabled`` states whether gradients are recorded when the graph runs; None if that is unknown. With
    ``every_branch``, types hold also for branches that are known not to be taken, so that they can be written into the
    graph. With ``any_modes``, types hold also under autocast, and for any default dtype and device when the graph runs;
    otherwise the caller checks that autocast is off and that the defaults are the current ones.

    Raises:
        ValueError: there are not as many types as inputs.
    """
    if len(input_types) != len(graph.inputs):
        raise ValueError(f"the graph takes {len(graph.inputs)} inputs, got {len(input_types)} types")
    return _Propagation(graph, grad_enabled, every_branch, any_modes).run(input_types)


def decided_branches(
    graph: Graph, input_types: Sequence[Type | None], *, any_modes: bool = False
) -> list[tuple[Node, bool]]:
    """Return the ``prim::If`` nodes whose branch follows from the types, each with True if it is the first branch.
    Their conditions are not constants yet."""
    propagation = _Propagation(graph, None, False, any_modes)
    propagation.run(input_types)
    found = []
    for node in graph.find_nodes("prim::If"):
        condition = propagation.fact(node.input)
        if isinstance(condition, Constant) and node.input.node.kind != "prim::Constant":
            found.append((node, bool(condition.value)))
    return found


def refine_types(graph: Graph, types: Mapping[Value, Type]) -> bool:
    """Write the facts of :func:`propagate_types` about tensors, also those in tuples, into the types of the graph.
    Return whether anything changed."""
    changed = False
    for value, found in types.items():
        type = _of_parts(value) if value.node.kind == "prim::TupleConstruct" else _refined(value.type, found)
        is_declared = isinstance(value.type, (TensorType, TupleType)) and type != value.type
        if value.graph is graph and is_declared and _both_give(value, type):
            value.set_type(type)
            changed = True
    return changed


def _of_parts(value: Value) -> Type:
    """Return the type of a tuple that a node constructs, with the refined types of its elements."""
    assert isinstance(value.type, TupleType)
    parts = zip(value.type.elements, value.node.inputs, strict=True)
    return value.type.with_contained(
        [part.type if isinstance(part.type, (TensorType, TupleType)) else declared for declared, part in parts]
    )


def _refined(declared: Type, found: Type) -> Type:
    """Return ``declared`` refined by the facts about tensors. Whether an Optional is None is not refined. The type of a
    tuple follows from its elements."""
    if isinstance(declared, TensorType) and isinstance(found, TensorType):
        return found
    if isinstance(declared, TupleType) and isinstance(found, TupleType):
        parts = zip(declared.elements, found.elements, strict=True)
        return declared.with_contained([_refined(mine, theirs) for mine, theirs in parts])
    return declared


def _both_give(value: Value, type: Type) -> bool:
    """Return whether a result of branches is of ``type`` in both. If only one branch is known to run, a fact may hold
    for that one alone."""
    node = value.node
    return node.kind != "prim::If" or all(block.outputs[value.offset].type.is_subtype_of(type) for block in node.blocks)


def may_reshape(node: Node) -> bool:
    """Return whether ``node``, an operator that is known, may change the sizes of a tensor that it writes to."""
    operator = node.operator
    if operator is None:
        return False
    return Trait.RESHAPES in operator.traits or any(argument.is_out for argument in operator.schema.arguments)


class InvariantTypeFacts:
    """The properties of tensor types that cannot change while the graph runs: not the sizes of tensors that are
    resized, nor ``requires_grad`` of tensors that are written to. Strides and the like are omitted."""

    def __init__(self, graph: Graph) -> None:
        self.aliases = AliasDb(graph)
        self._reshaped = self._find_reshaped(graph)

    def of(self, value: Value, type: TensorType) -> TensorType:
        """Return the properties of ``type`` that hold for the lifetime of ``value``, if all hold when it is created."""
        if self.aliases.memory(value) & self._reshaped:
            return TENSOR
        writable = type.requires_grad is not None and self.aliases.has_writers(value)
        return replace(type, strides=None, undefined=None, requires_grad=None if writable else type.requires_grad)

    def _find_reshaped(self, graph: Graph) -> MemoryLocations:
        """Return the memory of tensors whose sizes may change after their creation."""
        found = 0
        for node in graph.all_nodes():
            is_unknown = node.kind != "aten::set_grad_enabled" and self.aliases.has_untracked_effects(node)
            if is_unknown or may_reshape(node):
                found |= self.aliases.writes_to(node)
        return found


class _Propagation:
    def __init__(self, graph: Graph, grad_enabled: bool | None, every_branch: bool, any_modes: bool) -> None:
        self.graph = graph
        self.every_branch = every_branch
        self.steady = InvariantTypeFacts(graph)
        modes = [node for node in graph.all_nodes() if writes_modes(node)]
        self.transfer = TransferFunctions(
            grad_enabled=None if modes else grad_enabled,
            any_modes=any_modes,
            is_steady=all(node.kind == "aten::set_grad_enabled" for node in modes),
        )
        self.facts: dict[Value, Fact] = {}

    def run(self, input_types: Sequence[Type | None]) -> dict[Value, Type]:
        for value, type in zip(self.graph.inputs, input_types, strict=True):
            self.set(value, fact_of_type(type))
        self.block(self.graph.block)
        return {value: _type_of(value.type, fact) for value, fact in self.facts.items()}

    # ------------------------------------------------------------------------------------------------------------ facts

    def set(self, value: Value, fact: Fact) -> None:
        """Record a fact about ``value``, without the properties that mutation may change."""
        if isinstance(fact, TensorType):
            fact = self.steady.of(value, fact)
        elif fact is not None and isinstance(value.type, ListType) and self.steady.aliases.has_writers(value):
            fact = None
        self.facts[value] = fact

    def fact(self, value: Value) -> Fact:
        return self.facts.get(value)

    # ----------------------------------------------------------------------------------------------------------- visits

    def block(self, block: Block) -> list[Fact]:
        for node in block.nodes:
            self.node(node)
        return [self.fact(value) for value in block.outputs]

    def node(self, node: Node) -> None:
        kind = node.kind
        if kind == "prim::If":
            self.visit_if(node)
        elif kind == "prim::Loop":
            self.visit_loop(node)
        elif kind in INLINE_SUBGRAPH_KINDS and isinstance(node.attributes.get("Subgraph"), Graph):
            subgraph = node.get_graph("Subgraph")
            for parameter, value in zip(subgraph.inputs, node.inputs, strict=True):
                self.set(parameter, self.fact(value))
            self.set_outputs(node, self.block(subgraph.block))
        else:
            for block in node.blocks:
                self.forget(block)
            self.set_outputs(node, self.transfer.results(node, [self.fact(value) for value in node.inputs]))

    def set_outputs(self, node: Node, facts: Sequence[Fact]) -> None:
        for index, output in enumerate(node.outputs):
            self.set(output, facts[index] if len(facts) == len(node.outputs) else None)

    def forget(self, block: Block) -> None:
        """Visit a block that runs at an unknown time: nothing is known about its parameters."""
        for value in block.inputs:
            self.set(value, None)
        self.block(block)

    def visit_if(self, node: Node) -> None:
        condition = self.fact(node.input)
        if isinstance(condition, Constant) and not self.every_branch:
            results = [self.block(block) for block in node.blocks]
            self.set_outputs(node, results[0 if condition.value else 1])
            return
        then, otherwise = (self.block(block) for block in node.blocks)
        if always_raises(node.blocks[0]):
            then = otherwise
        elif always_raises(node.blocks[1]):
            otherwise = then
        self.set_outputs(node, [join(a, b) for a, b in zip(then, otherwise, strict=True)])

    def visit_loop(self, node: Node) -> None:
        view = LoopView(node)
        if not view.is_complete:
            self.forget(view.body)
            self.set_outputs(node, [])
            return
        # Facts only get weaker in the iterations of a loop around this one. Starting from those of the iteration before
        # keeps the time polynomial in the depth.
        initial = [self.fact(value) for value in view.initial]
        carried = [
            join(self.facts[parameter], fact) if parameter in self.facts else fact
            for parameter, fact in zip(view.parameters, initial, strict=True)
        ]
        for attempt in range(_MAX_ITERATIONS + 1):
            self.set(view.iteration, None)
            for parameter, fact in zip(view.parameters, carried, strict=True):
                self.set(parameter, fact)
            results = self.block(view.body)[1:]
            joined = [join(a, b) for a, b in zip(carried, results, strict=True)]
            if joined == carried:
                break
            carried = joined if attempt + 1 < _MAX_ITERATIONS else [None] * len(joined)
        self.set_outputs(node, carried)


_MAX_ITERATIONS: Final = 6
"""Number of iterations to a fixed point after which all carried facts of a loop are dropped."""


def _type_of(declared: Type, fact: Fact) -> Type:
    """Return the type that ``fact`` states, a subtype of ``declared``; if it states none, ``declared`` without the
    properties of tensors."""
    if isinstance(fact, TensorType) and isinstance(declared, (TensorType, OptionalType)):
        return fact
    if isinstance(fact, tuple) and isinstance(declared, TupleType) and len(fact) == len(declared.elements):
        return declared.with_contained([_type_of(t, f) for t, f in zip(declared.elements, fact, strict=True)])
    if isinstance(fact, Constant) and fact.value is None and NONE.is_subtype_of(declared):
        return NONE  # otherwise the node is unreachable
    return unshaped(declared)
