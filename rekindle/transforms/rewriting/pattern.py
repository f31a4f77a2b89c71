"""What a rule looks for: a small graph, made of a Python function or of IR text."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rekindle.errors import RuleError, SourceRange
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.parser import parse_graph
from rekindle.ir.traits import Trait
from rekindle.ir.verifier import verify
from rekindle.passes import run_passes
from rekindle.passes.constants import constant_int
from rekindle.program.calling import inlined
from rekindle.program.function import Function
from rekindle.runtime.pipelines import NORMAL_FORM
from rekindle.scripting.callables.functions import underlying_function
from rekindle.scripting.script import script


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """``graph`` computes ``roots`` from its inputs; ``inputs`` are these by name."""

    name: str
    graph: Graph
    inputs: dict[str, Value]
    roots: tuple[Value, ...]

    @property
    def nodes(self) -> list[Node]:
        """What has to be found: all but the constants."""
        return [node for node in self.graph.nodes if node.kind != "prim::Constant" and node is not self._packing]

    @property
    def _packing(self) -> Node | None:
        """The tuple that several results are returned in, which nobody looks for."""
        return packing_of(self.graph)


def pattern_of(source: Any) -> Pattern:
    """The pattern that a Python function or IR text describes.

    Raises:
        CompileError: it cannot be compiled.
        RuleError: it can be no pattern.
    """
    name, graph = graph_of(source)
    packing = packing_of(graph)
    roots = tuple(graph.outputs if packing is None else packing.inputs)
    inputs = named_inputs(graph)
    for root in roots:
        if root.node.kind in ("prim::Param", "prim::Constant"):
            raise RuleError(
                f"the pattern '{name}' returns what it is given or a constant (%{root.name}), which every program has",
                root.node.range,
            )
    pattern = Pattern(name, graph, inputs, roots)
    if not pattern.nodes:
        raise RuleError(f"the pattern '{name}' has no operators")
    for node in pattern.nodes:
        if node.blocks:
            raise RuleError(f"the pattern '{name}' has control flow, which no rule can look for", node.range)
    reached = _reached(roots)
    for node in pattern.nodes:
        if node not in reached:
            raise RuleError(f"nothing that the pattern '{name}' returns needs this {node.kind}", node.range)
    return pattern


def graph_of(source: Any) -> tuple[str, Graph]:
    """The name and the graph of a Python function, compiled or not, of IR text, or of a graph; in normal form: calls
    inlined, constants folded."""
    if isinstance(source, str):
        name, graph = "text", parse_graph(source.strip() + "\n")
    elif isinstance(source, Graph):
        name, graph = "graph", source.copy()
    else:
        function = source if isinstance(source, Function) else _compiled(source)
        name, graph = function.name, inlined(function._record)
    normalise(graph)
    verify(graph)
    return name, graph


def _compiled(source: Any) -> Function:
    if not isinstance(underlying_function(source) or source, types.FunctionType):
        raise RuleError(f"a {type(source).__qualname__} cannot be part of a rule; write a function, or IR text")
    found = script(source)
    if not isinstance(found, Function):
        raise RuleError(f"the function '{source.__name__}' has overloads and cannot be part of a rule")
    return found


def normalise(graph: Graph) -> bool:
    """Bring a graph into the form in which patterns and programs are compared; returns whether anything changed."""
    return run_passes(graph, NORMAL_FORM)


def named_inputs(graph: Graph) -> dict[str, Value]:
    """The inputs of a graph by their names; those without one are called by their place."""
    return {value.base_name or str(index): value for index, value in enumerate(graph.inputs)}


def packing_of(graph: Graph) -> Node | None:
    """The node that makes a tuple of several results right before they are returned."""
    if len(graph.outputs) != 1:
        return None
    node = graph.outputs[0].node
    return node if node.kind == "prim::TupleConstruct" and len(node.output.uses) == 1 else None


def _reached(roots: Sequence[Value]) -> set[Node]:
    found: set[Node] = set()
    pending = [root.node for root in roots]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(value.node for value in node.inputs)
    return found


def place_of(item: Node | Value) -> SourceRange:
    return item.node.range if isinstance(item, Value) else item.range


# ----------------------------------------------------------------------------------------------------------- commuting


def commutes(node: Node) -> bool:
    """Whether the first two inputs of ``node`` may change places."""
    if len(node.inputs) < 2 or node.inputs[0].type.kind != node.inputs[1].type.kind:
        return False
    if node.kind == "aten::add" and node.inputs[0].type.kind in ("TensorType", "IntType", "FloatType"):
        return len(node.inputs) == 2 or constant_int(node.inputs[2]) == 1
    return node.has_trait(Trait.COMMUTATIVE)
