"""Node rules: rewrites of a single node and of what defines its inputs. A pass is a table of them.

.. code-block:: python

    def double_negation(at: RewriteSite) -> bool:
        inner = at.node.input.node
        return inner.kind == "aten::__not__" and at.replace_uses(inner.input)

    apply_node_rules(graph, {"aten::__not__": (double_negation,)}, "simplify")

A rule returns whether it changed anything. It changes the graph by the methods of its :class:`RewriteSite`. Changes are
announced first (:mod:`rekindle.rewriting.changes`): before :meth:`RewriteSite.insert`, ``insert_tensor``, ``constant``
and ``finish``, the rule calls :meth:`RewriteSite.begin`. The other methods announce their change themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.ir.graph import AttributeValue, Graph, Node, Value
from rekindle.ir.types import TENSOR, TensorType, Type
from rekindle.rewriting.changes import may_change


class AliasFacts:
    """The alias analysis of a graph, run when it is first needed and not updated. If it is ``disabled``, no value
    counts as unwritten."""

    def __init__(self, graph: Graph, *, disabled: bool = False) -> None:
        self._graph = graph
        self._disabled = disabled
        self._aliases: AliasDb | None = None

    def is_unwritten(self, *values: Value) -> bool:
        """Return whether no node writes to ``values`` or to memory that they may share, and none passes them to unknown
        code."""
        if self._disabled:
            return False
        if self._aliases is None:
            self._aliases = AliasDb(self._graph)
        return not any(self._aliases.has_writers(value) or self._aliases.escapes(value) for value in values)


@dataclass(slots=True)
class RewriteSite:
    """The node that a rule matches, and the changes that the rule may make there.

    Example:
        >>> from rekindle.rewriting.node_rules import RewriteSite, apply_node_rules
        >>> def double_negation(at: RewriteSite) -> bool:
        ...     inner = at.node.input.node
        ...     return inner.kind == "aten::neg" and at.bypass(inner.input)
        >>> graph = rekindle.script(lambda x: x.neg().neg()).graph
        >>> apply_node_rules(graph, {"aten::neg": (double_negation,)}, "simplify")
        True
        >>> [node.kind for node in graph.nodes if node.has_uses]
        []
    """

    node: Node
    verb: str
    """Verb for the effect of the pass on nodes, for its log: "simplify"."""
    aliases: AliasFacts

    def replace_uses(self, new: Value, of: Value | None = None) -> bool:
        """Replace the uses of the output (``of``, if there are several) by ``new``, unless it has none, its type does
        not allow it, or the pass has reached its limit. The node remains for dead code elimination. Return whether they
        were replaced."""
        old = self.node.output if of is None else of
        fits = old.type == new.type or (isinstance(old.type, TensorType) and new.type.is_subtype_of(old.type))
        if not old.has_uses or not fits or not may_change(self.verb, self.node):
            return False
        old.replace_all_uses_with(new)
        return True

    def fold(self, value: object) -> bool:
        """Replace the uses of the output by a constant. The node remains. Return whether they were replaced; not if it
        has no uses, or the pass has reached its limit."""
        if not self.node.has_uses or not may_change(self.verb, self.node):
            return False
        constant = self.node.graph.create_constant(value, range=self.node.range).insert_before(self.node)
        self.node.output.replace_all_uses_with(constant.output)
        return True

    def replace_node(
        self, kind: str, inputs: Sequence[Value], *, attributes: Mapping[str, AttributeValue] | None = None
    ) -> bool:
        """Replace the node by a new one, whose outputs have the types of the node's. Return whether it was replaced:
        not if the pass has reached its limit."""
        return may_change(self.verb, self.node) and self.finish(*self.insert(kind, inputs, attributes=attributes))

    # ------------------------------------------------------------------------------------ changes of several nodes

    def begin(self) -> bool:
        """Return whether the pass may make a change of several nodes, and count it. The rule then calls :meth:`insert`
        and :meth:`finish`."""
        return may_change(self.verb, self.node)

    def insert(
        self,
        kind: str,
        inputs: Sequence[Value],
        *,
        types: Sequence[Type] | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> Sequence[Value]:
        """Insert a node before this one, with its source location, and return its outputs. Without ``types`` they have
        the types of this node's outputs."""
        node = self.node
        types = [output.type for output in node.outputs] if types is None else types
        new = node.graph.create(kind, inputs, types=types, attributes=attributes, range=node.range)
        new.callstack, new.scope = node.callstack, node.scope
        return new.insert_before(node).outputs

    def insert_tensor(self, kind: str, *inputs: Value) -> Value:
        """Insert a node whose output is a tensor with unknown properties; return the output."""
        return self.insert(kind, inputs, types=[TENSOR])[0]

    def constant(self, value: object, type: Type | None = None) -> Value:
        """Insert a constant before the node; return it."""
        return self.node.graph.create_constant(value, type, self.node.range).insert_before(self.node).output

    def bypass(self, value: Value) -> bool:
        """Replace the outputs by the existing ``value``, and destroy the node. Return whether it was replaced: not if
        the pass has reached its limit."""
        if not may_change(self.verb, self.node):
            return False
        self.node.replace_with(value)
        return True

    def finish(self, *values: Value) -> bool:
        """Replace the outputs by ``values``, which were inserted and get their names and types, and destroy the node.
        Return True."""
        for output, value in zip(self.node.outputs, values, strict=True):
            output.replace_all_uses_with(value.copy_metadata(output))
        self.node.destroy()
        return True


NodeRule: TypeAlias = Callable[[RewriteSite], bool]
NodeRules: TypeAlias = Mapping[str, Sequence[NodeRule]]
"""Rules by the kind of node that they match, in the order in which they are applied."""


def apply_node_rules(graph: Graph, rules: NodeRules, verb: str, *, with_aliases: bool = True) -> bool:
    """Apply ``rules`` to every node once, in the order in which nodes run. Return whether anything changed.

    Nodes that a rule inserts are not visited.

    Args:
        rules: rules by the kind of the node.
        verb: what a rule does to a node, in logs.
        with_aliases: whether rules may query aliases. Without, ``is_unwritten`` is False for all values.

    Example:
        >>> from rekindle.rewriting.node_rules import apply_node_rules
        >>> graph = rekindle.script(lambda x: x.dim() + 1).graph
        >>> apply_node_rules(graph, {"aten::dim": (lambda at: at.fold(2),)}, "fold")
        True
        >>> graph.find_node("aten::add").inputs[0].node.attributes["value"]
        2
    """
    aliases = AliasFacts(graph, disabled=not with_aliases)
    changed = False
    for node in list(graph.all_nodes()):
        for rule in rules.get(node.kind, ()):
            if node.in_block:
                changed |= rule(RewriteSite(node, verb, aliases))
    return changed
