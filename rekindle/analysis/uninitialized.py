"""Which values may be uninitialised: those that ``prim::Uninitialized`` reaches through branches and loops.

.. code-block:: text

    %nothing : int = prim::Uninitialized()
    %a : int = prim::If(%c)                    # may be uninitialised: where %c is false
      block0():
        -> (%three)
      block1():
        -> (%nothing)

A program reads such a value only after a guard, so an operator on it must not move to where the guard has not run.
"""

from __future__ import annotations

from rekindle.ir.graph import Graph, Value


def may_be_uninitialized(graph: Graph) -> set[Value]:
    """The values of ``graph`` that may hold nothing where they are made."""
    pending = [node.output for node in graph.find_nodes("prim::Uninitialized")]
    found = set(pending)
    while pending:
        for user, offset in pending.pop().uses:
            block = user.owning_block
            made: list[Value] = []
            if user.kind == "prim::Loop" and offset >= 2:
                made = [user.outputs[offset - 2], user.blocks[0].inputs[offset - 1]]
            elif user.kind == "prim::Return" and block is not None and block.owning_node is not None:
                outer = block.owning_node
                if outer.kind == "prim::Loop" and offset >= 1:
                    made = [outer.outputs[offset - 1], block.inputs[offset]]
                elif outer.kind == "prim::If":
                    made = [outer.outputs[offset]]
            elif user.kind == "prim::unchecked_cast":
                made = [user.output]
            fresh = [value for value in made if value not in found]
            found.update(fresh)
            pending += fresh
    return found
