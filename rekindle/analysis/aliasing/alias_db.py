"""Alias database: which values may alias, which nodes write to them, and which nodes may be reordered.

.. code-block:: text

    graph(%x : Tensor, %y : Tensor):
      %c : Tensor = aten::neg(%x)                   new: may alias nothing but its own views
      %v : Tensor = aten::select(%c, %0, %0)        may alias %c
      %w : Tensor = aten::add_(%v, %y, %1)          writes to %c, so that a read of %c must not move across it
      return (%w)                                   %x and %y may alias: a caller may pass one tensor twice

The analysis is conservative: False is proven, True means "possibly". A pass that changes the graph updates the database
with the methods at the end, or creates a new one.
"""

from __future__ import annotations

from collections.abc import Iterable

from rekindle.analysis.aliasing.alias_builder import AliasTrackerBuilder
from rekindle.analysis.aliasing.alias_tracker import AliasTracker, MemoryLocations as MemoryLocations
from rekindle.analysis.aliasing.node_effects import EffectAnalysis, NodeEffects as NodeEffects
from rekindle.analysis.aliasing.reordering import Reordering
from rekindle.analysis.effects import is_immutable
from rekindle.analysis.mutability import may_share_memory
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import Type


class AliasDb:
    """The alias database of ``graph``. With ``is_frozen`` module attributes and constants are private to the graph:
    no caller passes them."""

    def __init__(self, graph: Graph, *, is_frozen: bool = False) -> None:
        self.graph = graph
        self._tracker = AliasTracker()
        self._rules = AliasTrackerBuilder(self._tracker, is_frozen=is_frozen)
        self._rules.visit_graph(graph)
        self._finder = EffectAnalysis(self._rules, graph)
        self._reordering = Reordering(self._finder.effects_of)

    # ----------------------------------------------------------------------------------------------------------- values

    @staticmethod
    def is_mutable_type(type: Type) -> bool:
        """Return whether a value of this type, or something in it, can be written to."""
        return not is_immutable(type)

    def memory(self, value: Value) -> MemoryLocations:
        """Return the memory that ``value`` itself may be. A tuple has none."""
        element = self._rules.element(value)
        return 0 if element is None else self._tracker.memory(element)

    def reachable(self, value: Value) -> MemoryLocations:
        """Return the memory that ``value`` may be, and that of all it may hold."""
        element = self._rules.element(value)
        return 0 if element is None else self._tracker.reachable(element)

    def may_alias(self, a: Value | Iterable[Value], b: Value | Iterable[Value]) -> bool:
        """Return whether ``a`` and ``b`` may share memory; if they are sets, whether a value of one and a value of the
        other may."""
        if isinstance(a, Value) and isinstance(b, Value) and not may_share_memory(a.type, b.type):
            return False
        return bool(self._memory_of(a) & self._memory_of(b))

    def may_contain_alias(self, a: Value | Iterable[Value], b: Value | Iterable[Value]) -> bool:
        """Return whether ``a`` and ``b``, or something in them, may share memory; if they are sets, whether some value
        of one and some value of the other may."""
        return bool(self._reachable_from(a) & self._reachable_from(b))

    def has_writers(self, subject: Value | Node) -> bool:
        """Return whether some node of the graph may write to a value or to an element of it; for a node: to its inputs,
        its outputs, or memory that it reads."""
        if isinstance(subject, Value):
            return bool(self.written and self.reachable(subject) & self.written)
        if not self.written:
            return False
        return any(self.has_writers(value) for value in (*subject.inputs, *subject.outputs)) or bool(
            self.effects_of(subject).reads & self.written
        )

    def outlives_call(self, value: Value) -> bool:
        """Return whether ``value`` or its contents may remain reachable once the call has returned, other than from
        its results: by a caller, a constant, an attribute."""
        return bool(self.reachable(value) & self.outliving_memory)

    def escapes(self, value: Value) -> bool:
        """Return whether ``value`` or something in it may be passed to unknown code, or stored in an object that
        unknown code can reach."""
        return bool(self.reachable(value) & self._tracker.escaped)

    @property
    def wildcard_memory(self) -> MemoryLocations:
        """All memory in the wildcard set: code outside of the graph may access it during the call."""
        return self._tracker.wildcard_memory

    @property
    def outliving_memory(self) -> MemoryLocations:
        """All memory that may remain reachable once the call has returned, other than from its results."""
        return self._finder.lasting

    @property
    def written(self) -> MemoryLocations:
        """All memory that some node may write to."""
        return self._finder.written

    def _memory_of(self, values: Value | Iterable[Value]) -> MemoryLocations:
        if isinstance(values, Value):
            return self.memory(values)
        found = 0
        for value in values:
            found |= self.memory(value)
        return found

    def _reachable_from(self, values: Value | Iterable[Value]) -> MemoryLocations:
        if isinstance(values, Value):
            return self.reachable(values)
        found = 0
        for value in values:
            found |= self.reachable(value)
        return found

    # ------------------------------------------------------------------------------------------------------------ nodes

    def writes_to(self, node: Node) -> MemoryLocations:
        """Return the memory that ``node`` may write to, its blocks and its subgraph included."""
        return self.effects_of(node).writes

    def reads_from(self, node: Node) -> MemoryLocations:
        """Return the memory that ``node`` may read, its blocks and its subgraph included."""
        return self.effects_of(node).reads

    def writes_to_alias(self, node: Node, values: Iterable[Value]) -> bool:
        """Return whether ``node`` may write to one of ``values``, or to something in them."""
        return bool(self.writes_to(node) & self._reachable_from(values))

    def has_untracked_effects(self, node: Node) -> bool:
        """Return whether ``node``, or a node in its blocks, may access the wildcard set in any way."""
        return node in self._rules.unknown or any(
            self.has_untracked_effects(inner) for block in node.blocks for inner in block.nodes
        )

    def effects_of(self, node: Node) -> NodeEffects:
        """Return all that ``node`` does beyond computing its outputs."""
        return self._finder.effects_of(node)

    # ----------------------------------------------------------------------------------------------------------- moving

    def can_swap(self, first: Node, second: Node) -> bool:
        """Return whether two neighbouring nodes of one block may be exchanged."""
        return self._reordering.can_swap(first, second)

    def could_move_after_topologically(self, node: Node, place: Node) -> bool:
        """Return whether :meth:`move_after_topologically_valid` would move ``node``."""
        return self._reordering.plan_after(node, place) is not None

    def could_move_before_topologically(self, node: Node, place: Node) -> bool:
        """Return whether :meth:`move_before_topologically_valid` would move ``node``."""
        return self._reordering.plan_before(node, place) is not None

    def nodes_to_move_before(self, node: Node, place: Node) -> list[Node] | None:
        """Return the nodes that :meth:`move_before_topologically_valid` would move, in order; None if the move is
        illegal."""
        return self._reordering.plan_before(node, place)

    def nodes_to_move_after(self, node: Node, place: Node) -> list[Node] | None:
        """Return the nodes that :meth:`move_after_topologically_valid` would move, in order; None if the move is
        illegal."""
        return self._reordering.plan_after(node, place)

    def move_after_topologically_valid(self, node: Node, place: Node) -> bool:
        """Move ``node`` directly after ``place``, in the same block, with the nodes that must keep their order with
        it. Return False, and move nothing, if that would change the program's behavior."""
        return self._reordering.move_after(node, place)

    def move_before_topologically_valid(self, node: Node, place: Node) -> bool:
        """Move ``node`` right before ``place``, which is in the same block or is its return node; see
        :meth:`move_after_topologically_valid`."""
        return self._reordering.move_before(node, place)

    # ----------------------------------------------------------------------------------------------- keeping up to date

    def create_value(self, value: Value) -> None:
        """Register a new ``value`` of the graph, with new memory that aliases nothing."""
        self._rules.elements.pop(value, None)
        self._rules.element(value)

    def copy_value(self, source: Value, target: Value) -> None:
        """Register a new value ``target`` of the graph, which has the memory of ``source``."""
        element = self._rules.element(source)
        if element is not None:
            self._rules.elements[target] = element

    def replace_with_new_value(self, old: Value, new: Value) -> None:
        """Register a new value ``new`` of the graph with the memory of ``old``, and forget ``old``, which the caller
        removes."""
        self.copy_value(old, new)
        self._rules.elements.pop(old, None)

    def add_node(self, node: Node) -> None:
        """Update the database for a node that was just inserted, or moved into another block."""
        self._finder.forget()
        self._rules.visit(node)
        self._rules.finish()

    def remove_node(self, node: Node) -> None:
        """Remove the effects of a node that is about to be destroyed."""
        self._finder.forget()
        self._rules.forget(node)
