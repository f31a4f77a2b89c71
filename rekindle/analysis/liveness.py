"""Liveness analysis: where each value is used for the last time.

A value lives from where it is defined until its last use. If that use depends on the control flow, the value dies at
the start of the branch that does not use it, or after the loop whose body uses it::

    %y = prim::If(%c)            # %x is last used inside: it dies at aten::neg,
      block0():
        %1 = aten::neg(%x)
        -> (%1)
      block1():                  # or here
        -> (%z)

Returning a value from a block to an unused output of its node is not a use.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from rekindle.ir.graph import Block, Graph, Node, Value


@dataclass(slots=True)
class Liveness:
    """The last uses in a graph, as it was when :func:`liveness` walked it."""

    dies_at: dict[Node, set[Value]] = field(default_factory=dict)
    """The values whose last use is a node, or lies within the blocks of one. For a block's return node: the values
    whose last use is to be returned."""
    dies_at_entry: dict[Block, list[Value]] = field(default_factory=dict)
    """Values that die at the entry of a block: unused parameters, and values that only another branch uses."""
    dies_after: dict[Node, list[Value]] = field(default_factory=dict)
    """Values that the body of a loop captures, and that are not used after the loop."""
    last_use: dict[Block, dict[Value, Node]] = field(default_factory=dict)
    """For each block, the last of its own nodes that uses a value, itself or within its blocks; the return node
    for an output."""
    _order: dict[Node, int] = field(default_factory=dict)
    _needed: dict[Value, bool] = field(default_factory=dict)

    def is_needed(self, value: Value) -> bool:
        """Return whether ``value`` has a use other than being returned to an unused output."""
        known = self._needed.get(value)
        if known is None:
            known = self._needed[value] = any(
                use.user.kind != "prim::Return" or self.is_needed_output(use.user.owning_block, use.offset)
                for use in value.uses
            )
        return known

    def is_needed_output(self, block: Block | None, index: int) -> bool:
        """Return whether output ``index`` of ``block`` is used: by an output of its node, or by the next iteration. The
        condition of a loop is, and so are all outputs of the graph and of blocks of nodes other than ``if`` and
        loops."""
        owner = None if block is None else block.owning_node
        if owner is None or owner.kind not in ("prim::If", "prim::Loop"):
            return True
        if owner.kind == "prim::If":
            return self.is_needed(owner.outputs[index])
        if index == 0:
            return True
        assert block is not None
        return block.inputs[index].has_uses or self.is_needed(owner.outputs[index - 1])

    def is_live_after(self, value: Value, node: Node) -> bool:
        """Return whether ``value``, which is visible at ``node``, may be read after ``node`` has run."""
        home = value.node.owning_block
        block = node.owning_block
        while block is not None:
            last = self.last_use[block].get(value)
            if last is not None and self._order[last] > self._order[node]:
                return True
            if block is home or block.owning_node is None:
                return False
            if last is not None and block.owning_node.kind == "prim::Loop":
                return True  # the next iteration reads it
            node = block.owning_node
            block = node.owning_block
        return False

    def live_after(self, node: Node) -> list[Value]:
        """Return the values that may be read once ``node`` has run, in the order of their numbers."""
        found: set[Value] = set()
        inner = node
        while inner.owning_block is not None:
            for value in self.last_use[inner.owning_block]:
                if self._is_defined(value, inner, node) and self.is_live_after(value, node):
                    found.add(value)
            if inner.owning_block.owning_node is None:
                break
            inner = inner.owning_block.owning_node
        return sorted(found, key=lambda value: value.unique)

    def sweep(self, graph: Graph) -> Iterator[tuple[Node, Set[Value]]]:
        """Yield every node of ``graph`` with the values that may be read once it has run, from the last node to the
        first.

        The same as :meth:`live_after` for each node, but for one walk and a copy of the set for each block. A set is
        valid until the next step.
        """
        yield from self._sweep(graph.block, set())

    def _sweep(self, block: Block, live: set[Value]) -> Iterator[tuple[Node, Set[Value]]]:
        """Sweep ``block`` backwards; ``live`` holds the values that are read after it, and in the end those read
        from its start on."""
        live.update(value for index, value in enumerate(block.outputs) if self.is_needed_output(block, index))
        for node in block.nodes_reversed:
            yield node, live
            for inner in node.blocks:
                yield from self._sweep_within(node, inner, live)
            live.difference_update(node.outputs)
            live.update(node.inputs)
            for inner in node.blocks:
                live.update(self._read_from_outside(inner))
        live.difference_update(block.inputs)

    def _sweep_within(self, node: Node, inner: Block, live: set[Value]) -> Iterator[tuple[Node, Set[Value]]]:
        """Yield the sweep of a block of ``node``, after which ``live`` is read; ``live`` is unchanged afterwards."""
        around = live - set(node.outputs)
        if node.kind == "prim::Loop":
            around |= self._read_from_outside(inner)  # the next iteration reads it
        yield from self._sweep(inner, around)

    def _read_from_outside(self, block: Block) -> set[Value]:
        return {value for value in self.last_use[block] if value.node.owning_block is not block}

    def _is_defined(self, value: Value, inner: Node, node: Node) -> bool:
        """Return whether ``value``, used in the block of ``inner``, which holds ``node``, is defined once ``node`` has
        run."""
        if value.node.kind == "prim::Param" or value.node is node:
            return True
        return self._order[value.node] < self._order[inner]


def liveness(graph: Graph) -> Liveness:
    """Find the last use of every value of ``graph``."""
    found = Liveness()
    _find_last_uses(found, graph.block, 0)
    _find_deaths(found, graph.block, set(graph.inputs))
    return found


def _find_last_uses(found: Liveness, block: Block, position: int) -> int:
    """Record the last uses in ``block`` and the blocks within, from the free ``position`` on. Return the next free
    position."""
    last = found.last_use[block] = {}
    for node in block.nodes:
        position = found._order[node] = position + 1
        for inner in node.blocks:
            position = _find_last_uses(found, inner, position)
            for value in found.last_use[inner]:
                if value.node.owning_block is not inner:
                    last[value] = node
        for value in node.inputs:
            last[value] = node
    end = block.return_node
    position = found._order[end] = position + 1
    for index, value in enumerate(block.outputs):
        if found.is_needed_output(block, index):
            last[value] = end
    return position


def _find_deaths(found: Liveness, block: Block, mortal: set[Value]) -> None:
    """Record where values die: those of ``mortal``, which are live at the start of ``block`` and not after it, and
    those defined in the block."""
    last = found.last_use[block]
    unused = sorted(mortal - last.keys(), key=lambda value: value.unique)
    if unused:
        found.dies_at_entry[block] = unused
    dying: dict[Node, set[Value]] = found.dies_at
    for value, node in last.items():
        if value in mortal or (value.node.owning_block is block and value.node.kind != "prim::Param"):
            dying.setdefault(node, set()).add(value)
    for node in block.nodes:
        if node.blocks:
            _find_deaths_within(found, node, dying.get(node, set()))


def _find_deaths_within(found: Liveness, node: Node, dying: set[Value]) -> None:
    used = set[Value]().union(*(found.last_use[inner] for inner in node.blocks))
    if node.kind == "prim::If":
        for inner in node.blocks:
            _find_deaths(found, inner, dying & used)
        return
    # The body of a loop may run again, or not at all: what it captures dies after it.
    after = sorted(dying & used, key=lambda value: value.unique)
    if after:
        found.dies_after[node] = after
    for inner in node.blocks:
        _find_deaths(found, inner, set(inner.inputs))
