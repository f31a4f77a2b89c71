"""Eliminate common subexpressions: compute equal expressions once.

.. code-block:: text

    %a : Tensor = aten::relu(%x)
    %b : Tensor = aten::relu(%x)                 %a : Tensor = aten::relu(%x)
    %c : Tensor = aten::add(%a, %b, %1)  becomes %c : Tensor = aten::add(%a, %a, %1)

A node is replaced by an equal one before it, in its block or an enclosing one. Nodes that write, print or draw random
numbers are kept, and so are those whose operands or results are written to. Two nodes are not equal if a mode
(``no_grad``) changes between them. If both results reach a caller, both are kept, since the caller may write to one of
them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb, MemoryLocations
from rekindle.analysis.constants import attribute_key
from rekindle.analysis.effects import (
    FORWARDING_KINDS,
    FRESH_VALUE_KINDS,
    is_immutable,
    is_nondeterministic,
    reads_modes,
    writes_modes,
)
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.ir.operators.traits import Trait
from rekindle.ops.registration.traits import queries_of
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class CommonSubexpressionElimination:
    '''Eliminate common subexpressions. The docstring of the module shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import CommonSubexpressionElimination, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Tensor = aten::exp(%x)
        ...   %2 : Tensor = aten::exp(%x)
        ...   %3 : Tensor = aten::mul(%1, %2)
        ...   return (%3)
        ... """)
        >>> run_passes(graph, [CommonSubexpressionElimination()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %1 : Tensor = aten::exp(%x)
          %3 : Tensor = aten::mul(%1, %1)
          return (%3)
    '''

    name: ClassVar[str] = "common_subexpression_elimination"

    def run(self, graph: Graph) -> bool:
        if graph.is_settled(self.name):
            return False
        elimination = _Elimination(graph)
        changed = elimination.block(graph.block, [])
        if not elimination.was_limited:
            graph.settle(self.name)
        return changed


_NOT_ELIMINATED: Final = FRESH_VALUE_KINDS | {"prim::profile"}
_IDENTITY_TESTS: Final = queries_of(Trait.READS_IDENTITY)

_Scope = dict[Hashable, Node]


class _Elimination:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.has_modes = any(_sets_modes_within(node) for node in graph.block.nodes)
        self.modes = 0
        """Counts the changes of modes."""
        self.was_limited = False
        """Whether equal expressions remain because the number of changes is limited."""

    @cached_property
    def aliases(self) -> AliasDb:
        """The alias database, created when two nodes look alike for the first time."""
        return AliasDb(self.graph)

    @cached_property
    def known_later(self) -> MemoryLocations:
        """The memory that a caller or another thread may access after the call has returned."""
        found = self.aliases.outliving_memory
        for value in self.graph.outputs:
            found |= self.aliases.reachable(value)
        return found

    def block(self, block: Block, around: list[_Scope]) -> bool:
        """Walk ``block``; ``around`` holds the nodes before it in enclosing blocks, the innermost scope last. Return
        whether anything changed."""
        changed = False
        own: _Scope = {}
        scopes = [*around, own]
        for node in block.nodes:
            changes_modes = self.has_modes and self.aliases.effects_of(node).sets_modes
            if node.blocks:
                self.modes += changes_modes
                for inner in node.blocks:
                    changed |= self.block(inner, scopes)
            elif _has_key(node):
                key = self._key(node)
                known = next((scope[key] for scope in reversed(scopes) if key in scope), None)
                if known is None or not self._is_candidate(known):
                    own[key] = node
                elif self._is_candidate(node) and self._may_be_one(known, node):
                    if may_change("merge with another", node):
                        self._merge(known, node)
                        changed = True
                    else:
                        self.was_limited = True
            self.modes += changes_modes
        return changed

    def _is_candidate(self, node: Node) -> bool:
        effects = self.aliases.effects_of(node)
        if effects.has_side_effects or effects.writes or self.aliases.has_untracked_effects(node):
            return False
        return not self.aliases.has_writers(node)

    def _key(self, node: Node) -> Hashable:
        attributes = tuple((name, attribute_key(value)) for name, value in sorted(node.attributes.items()))
        types = tuple(output.type for output in node.outputs)
        modes = self.modes if reads_modes(node) else -1
        return node.kind, tuple(node.inputs), attributes, types, modes

    def _may_be_one(self, known: Node, node: Node) -> bool:
        """Return whether the results of two equal nodes may be merged: no observer distinguishes the objects, nor,
        except for views, their memory."""
        schema = node.schema
        for index, (mine, theirs) in enumerate(zip(known.outputs, node.outputs, strict=True)):
            if is_immutable(mine.type) or node.kind == "prim::GetAttr":
                continue
            if _may_leave(mine) and _may_leave(theirs):
                return False
            is_view = schema is not None and index < len(schema.returns) and schema.returns[index].alias is not None
            if not is_view and self._is_known_later(mine) and self._is_known_later(theirs):
                return False
        return True

    def _is_known_later(self, value: Value) -> bool:
        return bool(self.aliases.reachable(value) & self.known_later) or self.aliases.escapes(value)

    def _merge(self, known: Node, node: Node) -> None:
        for mine, theirs in zip(known.outputs, node.outputs, strict=True):
            if self._is_known_later(theirs):
                self.known_later |= self.aliases.reachable(mine)
        node.replace_all_uses_with(known)
        node.destroy()


def _sets_modes_within(node: Node) -> bool:
    """Return whether the node, or a node in its blocks or subgraph, may change a global mode."""
    if writes_modes(node) or any(_sets_modes_within(inner) for block in node.blocks for inner in block.nodes):
        return True
    subgraph = node.attributes.get("Subgraph")
    return isinstance(subgraph, Graph) and any(_sets_modes_within(inner) for inner in subgraph.block.nodes)


def _has_key(node: Node) -> bool:
    """Return whether a node may be merged with an equal one, as far as that depends on its kind and attributes."""
    if not node.outputs or node.kind in _NOT_ELIMINATED or is_nondeterministic(node):
        return False
    return not any(isinstance(value, (torch.Tensor, Graph)) for value in node.attributes.values())


def _may_leave(value: Value) -> bool:
    """Return whether ``value`` itself, not just its memory, may reach an observer of its identity: the caller, a
    container, an identity test."""
    return any(_may_leave_by(use.user) for use in value.uses)


def _may_leave_by(user: Node) -> bool:
    if user.kind in _IDENTITY_TESTS or user.kind in FORWARDING_KINDS or user.blocks or user.kind == "prim::Return":
        return True
    operator = user.operator
    if (
        operator is None
        or operator.may_alias_inputs
        or operator.effects in (AliasAnalysisKind.CONSERVATIVE, AliasAnalysisKind.SPECIAL)
    ):
        return True
    if Trait.VIEW in operator.traits:
        return False  # a new tensor each time, though the memory is that of its argument
    return any(result.alias is not None for result in operator.schema.returns)
