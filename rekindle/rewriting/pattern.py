"""Patterns: small graphs whose occurrences in a program a rewrite replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rekindle.analysis.constants import constant_int
from rekindle.errors import RuleError, SourceRange
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.traits import Trait


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A graph to search for: ``graph`` computes ``roots``, its results, from ``inputs``, which has its inputs by
    name."""

    name: str
    graph: Graph
    inputs: dict[str, Value]
    roots: tuple[Value, ...]

    @property
    def nodes(self) -> list[Node]:
        """The nodes to match: all but the constants, and the tuple in which several results are returned."""
        return [node for node in self.graph.nodes if node.kind != "prim::Constant" and node is not self._packing]

    @property
    def _packing(self) -> Node | None:
        """The tuple in which several results are returned; it is not matched. None for a single result."""
        return packing_of(self.graph)


def pattern_of(name: str, graph: Graph) -> Pattern:
    """Return the pattern of the computation of ``graph``; ``name`` is for messages.

    Raises:
        RuleError: a result is an input or a constant, there are no operators, there is control flow, or no result
            depends on a node.
    """
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


def named_inputs(graph: Graph) -> dict[str, Value]:
    """Return the inputs of a graph by name; those without a name by their index, as a string."""
    return {value.base_name or str(index): value for index, value in enumerate(graph.inputs)}


def packing_of(graph: Graph) -> Node | None:
    """Return the node that constructs the returned tuple of several results; None if there is none, or the tuple has
    other uses."""
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


def commutes(node: Node) -> bool:
    """Return whether the first two inputs of ``node`` may be exchanged."""
    if len(node.inputs) < 2:
        return False
    left, right, *others = node.inputs
    if left.type.kind != right.type.kind:
        return False
    if node.kind == "aten::add" and left.type.kind in ("TensorType", "IntType", "FloatType"):
        return all(constant_int(alpha) == 1 for alpha in others)
    return node.has_trait(Trait.COMMUTATIVE)
