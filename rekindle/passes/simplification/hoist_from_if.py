"""Hoist nodes that both branches of an ``if`` begin with.

.. code-block:: text

    %r : Tensor = prim::If(%p)                           %a : Tensor = aten::relu(%x)
      block0():                                          %r : Tensor = prim::If(%p)
        %a : Tensor = aten::relu(%x)                       block0():
        %b : Tensor = aten::neg(%a)                          %b : Tensor = aten::neg(%a)
        -> (%b)                             becomes          -> (%b)
      block1():                                            block1():
        %c : Tensor = aten::relu(%x)                         -> (%a)
        -> (%c)

A node with effects may be hoisted too: either branch would run it first. Nodes with blocks, or with attributes other
than ints and strings, are not hoisted; neither is ``prim::Enter``, which stays in the block of its ``prim::Exit``. An
error that a hoisted node raises names the line of the first branch. Constants in the branches are skipped: pooling
moves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.ir.graph import Block, Graph, Node
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class HoistFromIf:
    '''Hoist nodes that both branches of an ``if`` begin with. The docstring of the module shows the IR before and
    after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import HoistFromIf, run_passes
        >>> graph = parse_graph("""
        ... graph(%p : bool, %x : Tensor):
        ...   %r : Tensor = prim::If(%p)
        ...     block0():
        ...       %a : Tensor = aten::relu(%x)
        ...       %b : Tensor = aten::neg(%a)
        ...       -> (%b)
        ...     block1():
        ...       %c : Tensor = aten::relu(%x)
        ...       -> (%c)
        ...   return (%r)
        ... """)
        >>> run_passes(graph, [HoistFromIf()])
        True
        >>> print(graph)
        graph(%p : bool,
              %x : Tensor):
          %a : Tensor = aten::relu(%x)
          %r : Tensor = prim::If(%p)
            block0():
              %b : Tensor = aten::neg(%a)
              -> (%b)
            block1():
              -> (%a)
          return (%r)
    '''

    name: ClassVar[str] = "hoist_from_if"

    def run(self, graph: Graph) -> bool:
        return _visit(graph.block)


def _visit(block: Block) -> bool:
    changed = False
    for node in block.nodes:
        for inner in node.blocks:
            changed |= _visit(inner)
        if node.kind == "prim::If":
            changed |= _hoist(node)
    return changed


def _hoist(branches: Node) -> bool:
    changed = False
    while True:
        mine, theirs = (_first(block) for block in branches.blocks)
        if mine is None or theirs is None or not _are_alike(mine, theirs) or not may_change("hoist", mine):
            return changed
        mine.move_before(branches)
        theirs.replace_all_uses_with(mine)
        theirs.destroy()
        changed = True


def _first(block: Block) -> Node | None:
    return next((node for node in block.nodes if node.kind != "prim::Constant"), None)


def _are_alike(mine: Node, theirs: Node) -> bool:
    """Return whether both nodes compute the same, from values defined outside of the branches."""
    return (
        mine.kind == theirs.kind
        and mine.kind != "prim::Enter"
        and not mine.blocks
        and not theirs.blocks
        and list(mine.inputs) == list(theirs.inputs)
        and [output.type for output in mine.outputs] == [output.type for output in theirs.outputs]
        and mine.operator is theirs.operator
        and mine.attributes.keys() == theirs.attributes.keys()
        and all(_is_same(value, theirs.attributes[name]) for name, value in mine.attributes.items())
    )


def _is_same(mine: object, theirs: object) -> bool:
    return isinstance(mine, (int, str)) and type(mine) is type(theirs) and mine == theirs
