"""Effects of a node, including the nodes in its blocks: the memory that it reads and writes, and other properties
that constrain the order of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rekindle.analysis.aliasing.alias_builder import AliasTrackerBuilder
from rekindle.analysis.aliasing.alias_summaries import alias_summary_of
from rekindle.analysis.aliasing.alias_tracker import MemoryLocations
from rekindle.analysis.effects import (
    DEFERRED_SUBGRAPH_KINDS,
    FORWARDING_KINDS,
    FRESH_VALUE_KINDS,
    GUARDS,
    INLINE_SUBGRAPH_KINDS,
    WAITS,
    has_side_effects,
    is_nondeterministic,
    reads_modes,
    writes_modes,
)
from rekindle.analysis.raising import may_raise
from rekindle.analysis.uninitialized import may_be_uninitialized
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.registry import AliasAnalysisKind

_READS_CONTAINER: Final = frozenset({"prim::ListUnpack", "prim::GetAttr"})
"""Kinds that read the container that is their argument, but not its elements."""

_SHOWS_PROGRESS: Final = frozenset({"prim::Print", "archive::Print", "prim::PythonOp"})
"""Kinds of :attr:`NodeEffects.shows_progress`."""

_READS_ALL: Final = frozenset({"prim::profile"})
"""Kinds that return their input, and read it."""


@dataclass(slots=True)
class NodeEffects:
    """The effects of a node: the memory that it reads and writes, and the flags below."""

    reads: MemoryLocations = 0
    writes: MemoryLocations = 0
    has_side_effects: bool = False
    uses_rng: bool = False
    sets_modes: bool = False
    reads_modes: bool = False
    may_fail: bool = False
    """Whether it raises for some numbers, texts or containers, or for a variable that has no value yet."""
    always_raises: bool = False
    """Whether it is a ``prim::RaiseException``. No node may move past it: a Tensor operator before it may raise another
    error, and one after it may rely on the condition that the error checks."""
    shows_progress: bool = False
    """Whether it prints, or calls Python. No node may move past it: if one after it raises, the text must have been
    printed, and if one before it raises, it must not."""

    def include(self, other: NodeEffects) -> None:
        self.reads |= other.reads
        self.writes |= other.writes
        self.has_side_effects |= other.has_side_effects
        self.uses_rng |= other.uses_rng
        self.sets_modes |= other.sets_modes
        self.reads_modes |= other.reads_modes
        self.may_fail |= other.may_fail
        self.always_raises |= other.always_raises
        self.shows_progress |= other.shows_progress

    def conflicts_with(self, other: NodeEffects) -> bool:
        """Return whether the order of the two may be observable. Prints, calls of Python and ``raise`` conflict with
        every node."""
        return bool(
            self.writes & (other.reads | other.writes)
            or self.reads & other.writes
            or (self.has_side_effects and other.has_side_effects)
            or (self.uses_rng and other.uses_rng)
            or (self.sets_modes and other.reads_modes)
            or (self.reads_modes and other.sets_modes)
            or (self.may_fail and (other.may_fail or other.has_side_effects))
            or (self.has_side_effects and other.may_fail)
            or self.always_raises
            or other.always_raises
            or self.shows_progress
            or other.shows_progress
        )


class EffectAnalysis:
    """Finds the effects of nodes, and keeps them until the elements change."""

    def __init__(self, rules: AliasTrackerBuilder, graph: Graph) -> None:
        self._rules = rules
        self._graph = graph
        self._tracker = rules.tracker
        self._changes = -1
        self._known: dict[Node, NodeEffects] = {}
        self._written: MemoryLocations | None = None
        self._lasting: MemoryLocations | None = None
        self._later: NodeEffects | None = None
        self._uninitialized: set[Value] | None = None

    def forget(self) -> None:
        """Discard cached effects: the graph has changed."""
        self._changes = self._tracker.changes
        self._known.clear()
        self._written = self._lasting = self._later = None

    def effects_of(self, node: Node) -> NodeEffects:
        """Return the effects of ``node``, its blocks and its subgraph included."""
        self._check()
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = self._find(node)
        return found

    @property
    def written(self) -> MemoryLocations:
        """All memory that some node may write to."""
        self._check()
        if self._written is None:
            found = self._tracker.wildcard_memory if self._rules.unknown else 0
            for elements in self._rules.writers.values():
                for element in elements:
                    found |= self._tracker.memory(element)
            self._written = found
        return self._written

    @property
    def lasting(self) -> MemoryLocations:
        """All memory that may remain reachable once the call has returned, other than from its results."""
        self._check()
        if self._lasting is None:
            found = self._tracker.wildcard_memory
            for element in self._rules.lasting:
                found |= self._tracker.reachable(element)
            self._lasting = found
        return self._lasting

    def _check(self) -> None:
        if self._changes != self._tracker.changes:
            self.forget()

    # ---------------------------------------------------------------------------------------------------------- finding

    def _find(self, node: Node) -> NodeEffects:
        kind = node.kind
        has_own = not node.blocks and kind not in DEFERRED_SUBGRAPH_KINDS and kind not in INLINE_SUBGRAPH_KINDS
        found = NodeEffects(
            has_side_effects=has_side_effects(node),
            uses_rng=has_own and (is_nondeterministic(node) or kind in GUARDS),
            sets_modes=has_own and writes_modes(node),
            reads_modes=has_own and (reads_modes(node) or kind in GUARDS),
            may_fail=has_own and (may_raise(node) or self._reads_uninitialized(node)),
            shows_progress=kind in _SHOWS_PROGRESS,
        )
        for block in node.blocks:
            self._include_block(found, block)
        subgraph = node.attributes.get("Subgraph")
        if isinstance(subgraph, Graph) and kind not in FRESH_VALUE_KINDS:
            self._include_block(found, subgraph.block)
        if node in self._rules.unknown or (kind in WAITS and self._may_wait_for_others(node)):
            found.reads |= self._tracker.wildcard_memory
            found.writes |= self._tracker.wildcard_memory
        if self._rules.later and (node in self._rules.unknown or kind in WAITS):
            found.include(self._later_effects())
        found.reads |= self._own_reads(node)
        if found.may_fail and has_own:
            found.reads |= self._tracker.wildcard_memory  # the handler of the exception sees it
        for element in self._rules.writers.get(node, ()):
            found.writes |= self._tracker.memory(element)
        found.always_raises = kind == "prim::RaiseException"  # in a block, it may not run
        return found

    def _reads_uninitialized(self, node: Node) -> bool:
        """Return whether ``node`` computes with a possibly uninitialized value: only the check before it proves that it
        has a value."""
        if node.kind in FORWARDING_KINDS or node.kind in FRESH_VALUE_KINDS:
            return False
        if self._uninitialized is None:
            self._uninitialized = may_be_uninitialized(self._graph)
        return not self._uninitialized.isdisjoint(node.inputs)

    def _own_reads(self, node: Node) -> MemoryLocations:
        kind = node.kind
        if kind == "prim::RaiseException":
            return self._tracker.wildcard_memory  # the handler of the exception sees it
        if kind in GUARDS:  # its continuation sees that too
            return self._tracker.wildcard_memory | self._reachable_from(node)
        if kind in _READS_CONTAINER:
            return self._memory(node.input)
        if (kind in FORWARDING_KINDS and kind not in _READS_ALL) or kind in FRESH_VALUE_KINDS or node.blocks:
            return 0
        operator = node.operator
        within = (
            operator is None
            or operator.effects is AliasAnalysisKind.SPECIAL
            or alias_summary_of(operator).reads_contents
        )
        if within:
            return self._reachable_from(node)
        found = 0
        for value in node.inputs:
            found |= self._memory(value)
        return found

    def _may_wait_for_others(self, node: Node) -> bool:
        """Return whether the awaited task may have been started outside of the graph."""
        return bool(self._memory(node.input) & self._tracker.wildcard_memory)

    def _memory(self, value: Value) -> MemoryLocations:
        element = self._rules.element(value)
        return 0 if element is None else self._tracker.memory(element)

    def _reachable(self, value: Value) -> MemoryLocations:
        element = self._rules.element(value)
        return 0 if element is None else self._tracker.reachable(element)

    def _reachable_from(self, node: Node) -> MemoryLocations:
        found = 0
        for value in node.inputs:
            found |= self._reachable(value)
        return found

    def _include_block(self, found: NodeEffects, block: Block) -> None:
        for node in block.nodes:
            found.include(self.effects_of(node))

    def _later_effects(self) -> NodeEffects:
        """Return the effects of tasks that the graph starts and that may run in parallel with it. A task may run until
        it is waited for."""
        if self._later is None:
            self._later = NodeEffects()  # what is started may wait for what was started
            found = NodeEffects()
            for node in self._rules.later:
                subgraph = node.attributes.get("Subgraph")
                if isinstance(subgraph, Graph):
                    self._include_block(found, subgraph.block)
            self._later = found
            self._known.clear()
        return self._later
