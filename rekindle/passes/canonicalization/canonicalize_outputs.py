"""Sort the outputs of ``if`` and loops by their first use, unused ones last.

.. code-block:: text

    %a : int, %b : int = prim::If(%c)              %b : int, %a : int = prim::If(%c)
      block0():                                      block0():
        -> (%1, %2)                      becomes       -> (%2, %1)
      block1():                                      block1():
        -> (%3, %4)                                    -> (%4, %3)
    %d : int = aten::neg(%b)                       %d : int = aten::neg(%b)
    %e : int = aten::neg(%a)                       %e : int = aten::neg(%a)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class CanonicalizeOutputs:
    '''Sort the outputs of ``if`` and loops by their first use, unused ones last. The docstring of the module shows the
    IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import CanonicalizeOutputs, run_passes
        >>> graph = parse_graph("""
        ... graph(%p : bool, %x : int, %y : int):
        ...   %a : int, %b : int = prim::If(%p)
        ...     block0():
        ...       -> (%x, %y)
        ...     block1():
        ...       -> (%y, %x)
        ...   %1 : int = aten::neg(%b)
        ...   %2 : int = aten::neg(%a)
        ...   return (%1, %2)
        ... """)
        >>> run_passes(graph, [CanonicalizeOutputs()])
        True
        >>> print(graph)
        graph(%p : bool,
              %x : int,
              %y : int):
          %b : int, %a : int = prim::If(%p)
            block0():
              -> (%y, %x)
            block1():
              -> (%x, %y)
          %1 : int = aten::neg(%b)
          %2 : int = aten::neg(%a)
          return (%1, %2)
    '''

    name: ClassVar[str] = "canonicalize_outputs"

    def run(self, graph: Graph) -> bool:
        positions: dict[Node, int] = {}
        _number(graph.block, positions)
        return _visit(graph.block, positions)


def _number(block: Block, positions: dict[Node, int]) -> None:
    """Add the nodes of ``block`` and of its nested blocks to ``positions``, numbered in textual order. The return node
    of a block follows its other nodes."""
    for node in block.nodes:
        positions[node] = len(positions)
        for inner in node.blocks:
            _number(inner, positions)
    positions[block.return_node] = len(positions)


def _visit(block: Block, positions: dict[Node, int]) -> bool:
    changed = False
    # From the end: the order of a node's outputs depends on the nodes after it; that of its blocks' results on its own.
    for node in block.nodes_reversed:
        if node.kind in ("prim::If", "prim::Loop"):
            order = _order(node.outputs, positions)
            if order != list(range(len(order))) and may_change("order the outputs of", node):
                _permute(node, order)
                changed = True
        for inner in node.blocks:
            changed |= _visit(inner, positions)
    return changed


def _order(values: Sequence[Value], positions: dict[Node, int]) -> list[int]:
    def first_use(index: int) -> tuple[float, int]:
        uses = ((positions[use.user], use.offset) for use in values[index].uses)
        return min(uses, default=(float("inf"), 0))

    return sorted(range(len(values)), key=first_use)


def _permute(node: Node, order: list[int]) -> None:
    """Permute the outputs of an ``if`` or a loop, and with them the results of its blocks and the loop-carried values:
    the new output ``i`` is the old output ``order[i]``."""
    if node.kind == "prim::Loop":
        body = node.blocks[0]
        carried = [node.inputs[index + 2] for index in order]
        results = [body.outputs[index + 1] for index in order]
        for index, (initial, result) in enumerate(zip(carried, results, strict=True)):
            node.replace_input(index + 2, initial)
            body.replace_output(index + 1, result)
        _permute_outputs(body.param_node, [0, *(index + 1 for index in order)])
    else:
        for block in node.blocks:
            results = [block.outputs[index] for index in order]
            for index, result in enumerate(results):
                block.replace_output(index, result)
    _permute_outputs(node, order)


def _permute_outputs(node: Node, order: list[int]) -> None:
    # Values cannot be moved within a node: new ones take the places.
    old = list(node.outputs)
    for index in order:
        new = node.add_output(old[index].type)
        old[index].replace_all_uses_with(new)
        name = old[index].name if old[index].has_name else ""
        old[index].set_name("")
        if name:
            new.set_name(name)
    for index in reversed(range(len(old))):
        node.erase_output(index)
