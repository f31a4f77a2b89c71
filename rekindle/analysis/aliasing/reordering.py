"""Code motion: move nodes within a block without changing the program's behavior.

The nodes that must keep their order with the moved node move with it::

    a = f(x)        to move a after c:    b reads a, so that both move:   c = h(x)
    b = g(a)                                                              a = f(x)
    c = h(x)                                                              b = g(a)

If c itself must run after one of them, nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rekindle.analysis.aliasing.node_effects import NodeEffects
from rekindle.ir.graph import Node


class Reordering:
    """Determines which nodes may be moved, given the effects of each node."""

    def __init__(self, effects_of: Callable[[Node], NodeEffects]) -> None:
        self._effects_of = effects_of

    def can_swap(self, first: Node, second: Node) -> bool:
        """Return whether two neighbouring nodes of one block may be exchanged."""
        if not _are_in_one_block(first, second):
            return False
        if second.is_before(first):
            first, second = second, first
        return second not in _users(first) and not self._effects_of(first).conflicts_with(self._effects_of(second))

    def move_after(self, node: Node, place: Node) -> bool:
        """Move ``node``, and the nodes that must move with it, directly after ``place``. Return False if that is
        illegal, or if they are in different blocks."""
        moving = self.plan_after(node, place)
        if moving is None:
            return False
        for each in moving:
            each.move_after(place)
            place = each
        return True

    def move_before(self, node: Node, place: Node) -> bool:
        """Move ``node``, and the nodes that must move with it, directly before ``place``. Return False if that is
        illegal, or if they are in different blocks."""
        moving = self.plan_before(node, place)
        if moving is None:
            return False
        for each in moving:
            each.move_before(place)
        return True

    def plan_after(self, node: Node, place: Node) -> list[Node] | None:
        """Return the nodes that have to move after ``place`` with ``node``, in order; None if the move is illegal,
        or they are in different blocks."""
        if not _are_in_one_block(node, place) or place.kind == "prim::Return":
            return None
        if node is place:
            return []
        if node.is_after(place):
            moving = self._gather(node, _from(node.prev, place, forwards=False), _makers)
            return None if moving is None else moving[::-1]
        return self._gather(node, _from(node.next, place, forwards=True), _users, place)

    def plan_before(self, node: Node, place: Node) -> list[Node] | None:
        """Return the nodes that have to move before ``place`` with ``node``, in order; None if the move is illegal,
        or they are in different blocks."""
        if not _are_in_one_block(node, place):
            return None
        if node is place:
            return []
        if node.is_before(place):
            return self._gather(node, _from(node.next, place, forwards=True), _users)
        moving = self._gather(node, _from(node.prev, place, forwards=False), _makers, place)
        return None if moving is None else moving[::-1]

    def _gather(
        self,
        node: Node,
        between: Iterator[Node],
        bound_to: Callable[[Node], set[Node]],
        place: Node | None = None,
    ) -> list[Node] | None:
        """Return ``node``, and those of the nodes ``between`` that must keep their order with the gathered ones, the
        nearest first; None if ``place`` is one of them. ``bound_to`` returns the nodes that a node passes data to, or
        takes it from."""
        moving = [node]
        bound = bound_to(node)
        effects = NodeEffects()
        effects.include(self._effects_of(node))
        for other in between:
            theirs = self._effects_of(other)
            if other in bound or effects.conflicts_with(theirs):
                moving.append(other)
                bound |= bound_to(other)
                effects.include(theirs)
        if place is not None and (place in bound or effects.conflicts_with(self._effects_of(place))):
            return None
        return moving


def _are_in_one_block(node: Node, place: Node) -> bool:
    """Return whether the nodes are in one block, and ``node`` is not its return node."""
    return node.in_block and place.owning_block is node.owning_block and node.kind != "prim::Return"


def _from(node: Node, end: Node, *, forwards: bool) -> Iterator[Node]:
    """Yield the nodes from ``node`` to before ``end``. In reverse order, through predecessors, without ``forwards``."""
    while node is not end:
        yield node
        node = node.next if forwards else node.prev


def _users(node: Node) -> set[Node]:
    """Return the nodes of the same block that use an output of ``node``, themselves or in their blocks."""
    block = node.owning_block
    assert block is not None
    found = {block.ancestor_of(use.user) for output in node.outputs for use in output.uses}
    return {user for user in found if user is not None}


def _makers(node: Node) -> set[Node]:
    """Return the nodes of the same block whose outputs ``node`` uses, itself or in its blocks."""
    return {value.node for value in node.used_values() if value.node.owning_block is node.owning_block}
