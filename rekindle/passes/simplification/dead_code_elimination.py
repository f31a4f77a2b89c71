"""Eliminate dead code: remove nodes without effects and uses, and unused outputs of ``if`` and loops.

.. code-block:: text

    %1 : Tensor = aten::neg(%x)
    %2 : Tensor = aten::zeros_like(%x, …)
    %3 : Tensor = aten::add_(%2, %x, %one)        becomes    %1 : Tensor = aten::neg(%x)
    %4 : int = aten::dim(%x)                                 return (%1)
    return (%1)

A write is kept if a live value may alias the memory that it writes to. An operator on numbers, strings or containers
that may raise is kept (:mod:`rekindle.analysis.raising`); an unused operator on Tensors is removed although it might
raise, as in ``torch.jit``. A loop on a computed condition is kept, since it may not terminate. With
``keep_raising=False`` unused operators that may raise are removed too. This is for backward graphs: their reads of
saved values are in bounds, and their other operators have run in the forward graph, and would have raised there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.aliasing.alias_db import AliasDb, MemoryLocations
from rekindle.analysis.effects import has_side_effects, may_write
from rekindle.analysis.raising import may_raise
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class DeadCodeElimination:
    '''Remove nodes whose results are not used. The docstring of the module shows the IR before and after.

    ``keep_raising`` keeps unused operators on numbers, strings and containers that may raise.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import DeadCodeElimination, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Tensor = aten::exp(%x)
        ...   %2 : Tensor = aten::neg(%x)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [DeadCodeElimination()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %2 : Tensor = aten::neg(%x)
          return (%2)
    '''

    name: ClassVar[str] = "dead_code_elimination"
    keep_raising: bool = True

    def run(self, graph: Graph) -> bool:
        rewrite = self.name, self.keep_raising
        if graph.is_settled(rewrite):
            return False
        elimination = _Elimination(graph, self.keep_raising)
        changed = elimination.run()
        if not elimination.was_limited:
            graph.settle(rewrite)
        return changed


class _Elimination:
    def __init__(self, graph: Graph, keep_raising: bool) -> None:
        self.graph = graph
        self.keep_raising = keep_raising
        self.aliases: AliasDb | None = None
        """Made when the first node that writes is met: most graphs have none."""
        self.needed: set[Node] = set()
        self.live: set[Value] = set()
        self.live_memory: MemoryLocations = 0
        """The written memory that is read later on; unknown before ``aliases`` is."""
        self.changed = False
        self.was_limited = False
        """Whether dead code remains because the number of changes is limited."""

    def run(self) -> bool:
        for value in self.graph.outputs:
            self._make_live(value)
        self._mark_block(self.graph.block)
        self._sweep(self.graph.block)
        return self.changed

    # ---------------------------------------------------------------------------------------------------------- marking

    def _mark_block(self, block: Block) -> bool:
        """Mark the live nodes of ``block``, from its end; returns whether any was newly marked."""
        found = self._mark_results(block)
        for node in block.nodes_reversed:
            if node.kind == "prim::Loop":
                found |= self._mark_loop(node.blocks[0])
            else:
                for inner in node.blocks:
                    found |= self._mark_block(inner)
            if node not in self.needed and self._is_needed(node):
                self._mark(node)
                found = True
        return found

    def _mark_loop(self, body: Block) -> bool:
        """Mark the body of a loop to a fixpoint: an iteration may read what the previous one writes. Return whether any
        node was newly marked."""
        found = False
        while True:
            known = self.live_memory
            found |= self._mark_block(body)
            if self.live_memory == known:
                # Nothing new is read that a write might have been for.
                return found

    def _mark_results(self, block: Block) -> bool:
        """Mark the outputs of ``block`` that are needed after its node, or by the next iteration. Return whether any
        was newly marked."""
        before = len(self.live)
        owner = block.owning_node
        if owner is None:
            return False
        if owner.kind == "prim::Loop" and len(owner.inputs) == len(owner.outputs) + 2:
            self._make_live(block.outputs[0])
            for output, inner, result in zip(owner.outputs, block.inputs[1:], block.outputs[1:], strict=True):
                if output in self.live or inner.has_uses:
                    self._make_live(result)
        elif owner.kind == "prim::If":
            for output, result in zip(owner.outputs, block.outputs, strict=True):
                if output in self.live:
                    self._make_live(result)
        else:
            for result in block.outputs:
                self._make_live(result)
        return len(self.live) > before

    def _is_needed(self, node: Node) -> bool:
        for output in node.outputs:
            if output in self.live:
                return True
        if node.kind == "prim::Constant":  # the most frequent kind
            return False
        if has_side_effects(node):
            return True
        if self.keep_raising and may_raise(node):
            return True
        if node.operator is not None and node.operator.is_nondeterministic:
            return True  # it advances the random generator, which the next draw observes
        if not may_write(node):
            return False
        aliases = self._aliases()
        return bool(aliases.writes_to(node) & (self.live_memory | aliases.outliving_memory))

    def _aliases(self) -> AliasDb:
        if self.aliases is None:
            self.aliases = AliasDb(self.graph)
            for value in self.live:
                self._read(self.aliases, value)
        return self.aliases

    def _read(self, aliases: AliasDb, value: Value) -> None:
        self.live_memory |= aliases.reachable(value) & aliases.written

    def _mark(self, node: Node) -> None:
        current: Node | None = node
        while current is not None and current not in self.needed:
            self.needed.add(current)
            for value in current.inputs:
                self._make_live(value)
            block = current.owning_block
            current = None if block is None else block.owning_node

    def _make_live(self, value: Value) -> None:
        if value in self.live:
            return
        self.live.add(value)
        if self.aliases is not None:
            self._read(self.aliases, value)

    # --------------------------------------------------------------------------------------------------------- sweeping

    def _sweep(self, block: Block) -> None:
        for node in block.nodes_reversed:
            if node.kind == "prim::If":
                self._remove_if_outputs(node)
            elif node.kind == "prim::Loop":
                self._remove_carried(node)
            for inner in node.blocks:
                self._sweep(inner)
            if node not in self.needed and not node.has_uses and self._may_change("remove", node):
                node.destroy()
                self.changed = True

    def _may_change(self, what: str, node: Node) -> bool:
        permitted = may_change(what, node)
        self.was_limited = self.was_limited or not permitted
        return permitted

    def _remove_if_outputs(self, node: Node) -> None:
        for index in reversed(range(len(node.outputs))):
            if not node.outputs[index].has_uses and self._may_change("take out an output of", node):
                node.erase_output(index)
                for block in node.blocks:
                    block.erase_output(index)
                self.changed = True

    def _remove_carried(self, node: Node) -> None:
        body = node.blocks[0]
        if len(node.inputs) != len(node.outputs) + 2:
            return
        for index in reversed(range(len(node.outputs))):
            is_dead = not node.outputs[index].has_uses and not body.inputs[index + 1].has_uses
            if is_dead and self._may_change("take out what is carried by", node):
                remove_carried(node, index)
                self.changed = True


def remove_carried(loop: Node, index: int) -> None:
    """Remove the unused carried value ``index`` from a loop."""
    body = loop.blocks[0]
    loop.erase_output(index)
    loop.remove_input(index + 2)
    body.erase_output(index + 1)
    body.erase_input(index + 1)
