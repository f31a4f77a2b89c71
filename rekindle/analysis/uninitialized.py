"""Which values may be uninitialized: those that ``prim::Uninitialized`` reaches through branches, loops and the lists
in which the variables of a ``try`` are kept.

.. code-block:: text

    %nothing : int = prim::Uninitialized()
    %a : int = prim::If(%c)                    # may be uninitialized: where %c is false
      block0():
        -> (%three)
      block1():
        -> (%nothing)

A program reads such a value only after a guard, so an operator on it must not move to where the guard has not run.
"""

from __future__ import annotations

from typing import Final

from rekindle.analysis.effects import CONSTRUCTS, UNPACKS
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value

_TAKES: Final = UNPACKS | {"aten::__getitem__"}


def may_be_uninitialized(graph: Graph) -> set[Value]:
    """Return the values of ``graph`` that may be uninitialized: variables that are not assigned on every path."""
    found: set[Value] = set()
    kept: set[Value] = set()
    """Lists and tuples that hold some."""
    pending = [(node.output, found) for node in graph.find_nodes("prim::Uninitialized")]
    while pending:
        value, known = pending.pop()
        if value in known:
            continue
        known.add(value)
        for user, offset in value.uses:
            pending += [(made, known) for made in _passed_on(user, offset)]
            if user.kind in CONSTRUCTS:
                pending.append((user.output, kept))
            elif user.kind in _TAKES and known is kept and offset == 0:
                pending += [(made, found) for made in user.outputs]
    return found


def _passed_on(user: Node, offset: int) -> list[Value]:
    """Return the outputs or block inputs that the value used by a node becomes, unchanged: by a branch, a loop or a
    cast."""
    block = user.owning_block
    if user.kind == "prim::Loop" and offset >= 2:
        return [user.outputs[offset - 2], LoopView(user).parameters[offset - 2]]
    if user.kind == "prim::unchecked_cast":
        return [user.output]
    if user.kind != "prim::Return" or block is None or block.owning_node is None:
        return []
    outer = block.owning_node
    if outer.kind == "prim::Loop" and offset >= 1:
        return [outer.outputs[offset - 1], block.inputs[offset]]
    return [outer.outputs[offset]] if outer.kind == "prim::If" else []
