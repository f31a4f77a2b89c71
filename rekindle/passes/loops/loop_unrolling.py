"""Unroll loops with a small constant trip count.

.. code-block:: text

    %y : Tensor = prim::Loop(%two, %true, %x)
      block0(%i : int, %a : Tensor):                 %i.1 : int = prim::Constant[value=0]()
        %b : Tensor = aten::add(%a, %i, %one)        %b.1 : Tensor = aten::add(%x, %i.1, %one)
        -> (%true, %b)                      becomes  %i.2 : int = prim::Constant[value=1]()
                                                     %b.2 : Tensor = aten::add(%b.1, %i.2, %one)

Innermost loops are unrolled first; their unrolled size counts for the loops around them. A loop with a computed
condition is not unrolled, and neither is one that a condition may end. A loop with a computed trip count is not
unrolled either: unrolling it by eight measured no faster, since stepping a counter costs a plan almost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.constants import constant_bool, constant_int
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class LoopUnrolling:
    '''Unroll loops with few iterations. The docstring of the module shows the IR before and after.

    Loops of at most ``most_iterations`` iterations are unrolled if their body has at most ``most_nodes`` nodes, without
    constants.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import LoopUnrolling, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : int = prim::Constant[value=2]()
        ...   %2 : bool = prim::Constant[value=1]()
        ...   %y : Tensor = prim::Loop(%1, %2, %x)
        ...     block0(%i : int, %z : Tensor):
        ...       %3 : Tensor = aten::neg(%z)
        ...       -> (%2, %3)
        ...   return (%y)
        ... """)
        >>> run_passes(graph, [LoopUnrolling()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : bool = prim::Constant[value=1]()
          %8 : int = prim::Constant[value=0]()
          %9 : Tensor = aten::neg(%x)
          %10 : int = prim::Constant[value=1]()
          %11 : Tensor = aten::neg(%9)
          return (%11)
    '''

    name: ClassVar[str] = "loop_unrolling"
    most_iterations: int = 64
    most_nodes: int = 32

    def run(self, graph: Graph) -> bool:
        return self._visit(graph.block)

    def _visit(self, block: Block) -> bool:
        changed = False
        for node in block.nodes:
            for inner in node.blocks:
                changed |= self._visit(inner)
            if node.kind == "prim::Loop" and self._should_unroll(node) and may_change("unroll", node):
                _unroll(node)
                changed = True
        return changed

    def _should_unroll(self, loop: Node) -> bool:
        view = LoopView(loop)
        count = constant_int(view.trip_count)
        return (
            count is not None
            and count <= self.most_iterations
            and constant_bool(view.condition) is True
            and constant_bool(view.next_condition) is True
            and size_of(view.body) <= self.most_nodes
        )


def size_of(block: Block) -> int:
    """Return the number of nodes in ``block`` and its nested blocks, not counting constants."""
    return sum(node.kind != "prim::Constant" for node in block.all_nodes())


def _unroll(loop: Node) -> None:
    graph, view = loop.graph, LoopView(loop)
    body, carried = view.body, list(view.initial)
    for iteration in range(constant_int(view.trip_count) or 0):
        with graph.inserting_before(loop):
            counter = graph.insert_constant(iteration, range=loop.range)
        local: dict[Value, Value] = dict(zip(body.inputs, (counter, *carried), strict=True))

        def mapped(value: Value, local: dict[Value, Value] = local) -> Value:
            return local.get(value, value)

        for node in body.nodes:
            copy = graph.create_clone(node, mapped).insert_before(loop)
            local.update(zip(node.outputs, copy.outputs, strict=True))
        carried = [mapped(value) for value in view.following]
    loop.replace_with(*carried)
