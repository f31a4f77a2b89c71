"""Find which nodes are printed as part of the expression that uses them, and which as statements of their own.

A node may become part of its user's expression only if the order of evaluation stays the same: between the two run only
other operands of that expression. So the search goes backwards over the nodes, and from right to left over the operands
of each expression, as long as both sequences agree.

.. code-block:: text

    %1 : Tensor = aten::relu(%x)                 torch.add(torch.relu(x), torch.neg(y))
    %2 : Tensor = aten::neg(%y)            ->
    %3 : Tensor = aten::add(%1, %2, %one)
"""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Block, Node, Value

_KEEP_THEIR_INPUTS: Final = frozenset({"prim::fork", "prim::awaitable", "prim::rpc_async", "prim::rpc_sync"})
"""Kinds whose subgraphs may use an input more than once."""


def is_constant(node: Node) -> bool:
    return node.kind == "prim::Constant"


def inlined_nodes(block: Block) -> set[Node]:
    """Return the nodes in ``block``, and in its inner blocks, that are printed within the expression of their user.
    They include all constants that are used."""
    scan = _Scan()
    scan.block(block)
    return scan.inlined


def _may_be_inlined(value: Value) -> bool:
    node = value.node
    if len(node.outputs) != 1 or len(value.uses) != 1 or node.blocks:
        return False
    ((user, offset),) = value.uses
    if value.has_name and user.kind != "prim::Return":
        return False  # the author wrote a variable
    if user.kind == "prim::Loop" and offset >= 2:
        return False  # it starts a variable before the condition is computed
    if user.kind in _KEEP_THEIR_INPUTS:
        return False
    # As the condition of an if it would refine types again; the casts are in the text already.
    return node.kind != "prim::isinstance"


class _Scan:
    """Search for inlined nodes in one function."""

    def __init__(self) -> None:
        self.inlined: set[Node] = set()

    def block(self, block: Block) -> None:
        self.node(block.return_node)
        for node in block.nodes_reversed:
            self.node(node)

    def node(self, node: Node) -> None:
        """Find the operands of ``node`` that can be printed within its expression, from right to left, and likewise
        their operands."""
        if node in self.inlined:
            return
        for inner in node.blocks:
            self.block(inner)
        point = node_before(node)
        pending = list(node.inputs)  # what is left to look at, the next one last
        while pending:
            value = pending.pop()
            made_by = value.node
            if made_by is point and _may_be_inlined(value):
                self.inlined.add(made_by)
                point = node_before(made_by)
                pending += made_by.inputs
            elif is_constant(made_by):
                self.inlined.add(made_by)


def node_before(node: Node) -> Node:
    """Return the node that runs directly before ``node``, other than a constant."""
    before = node.prev
    while is_constant(before):
        before = before.prev
    return before
