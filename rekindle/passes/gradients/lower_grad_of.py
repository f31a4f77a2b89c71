"""Replace ``prim::GradOf`` with an ``if`` that tests whether the incoming gradients are defined.

.. code-block:: text

    %g : Tensor = prim::GradOf[name="aten::relu"](%d)            %p : bool = prim::AutogradAnyNonZero(%d)
      block0():                                                  %g : Tensor = prim::If(%p)
        %h : Tensor = aten::threshold_backward(%d, %x, %zero)      block0():
        -> (%h)                                        becomes       %h : Tensor = aten::threshold_backward(…)
                                                                     -> (%h)
                                                                   block1():
                                                                     %n : Tensor = prim::AutogradZero()
                                                                     -> (%n)

No operator runs a ``prim::GradOf``: this pass, or :class:`SpecializeAutogradZero`, has to replace it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import BOOL
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class LowerGradOf:
    '''Replace ``prim::GradOf`` with an ``if`` that tests whether the incoming gradients are defined. The docstring of
    the module shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import LowerGradOf, run_passes
        >>> graph = parse_graph("""
        ... graph(%d : Tensor):
        ...   %g : Tensor = prim::GradOf[name="aten::neg"](%d)
        ...     block0():
        ...       %h : Tensor = aten::neg(%d)
        ...       -> (%h)
        ...   return (%g)
        ... """)
        >>> run_passes(graph, [LowerGradOf()])
        True
        >>> print(graph)
        graph(%d : Tensor):
          %3 : bool = prim::AutogradAnyNonZero(%d)
          %g : Tensor = prim::If(%3)
            block0():
              %h : Tensor = aten::neg(%d)
              -> (%h)
            block1():
              %5 : Tensor = prim::AutogradZero()
              -> (%5)
          return (%g)
    '''

    name: ClassVar[str] = "lower_grad_of"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.find_nodes("prim::GradOf"):
            if may_change("lower", node):
                _lower(node)
                changed = True
        return changed


def _lower(node: Node) -> None:
    graph = node.graph
    exists = graph.create("prim::AutogradAnyNonZero", node.inputs, types=[BOOL], range=node.range).insert_before(node)
    types = [output.type for output in node.outputs]
    choice = graph.create("prim::If", [exists.output], types=types, range=node.range)
    choice.callstack, choice.scope = node.callstack, node.scope
    then, otherwise = choice.add_block(), choice.add_block()
    choice.insert_before(node)
    body = node.blocks[0]
    for inner in body.nodes:
        inner.move_before(then.return_node)
    for result in body.outputs:
        then.add_output(result)
        zero = graph.create("prim::AutogradZero", range=node.range)
        otherwise.add_output(otherwise.append(zero).output)
    for old, output in zip(node.outputs, choice.outputs, strict=True):
        old.replace_all_uses_with(output)
        output.copy_metadata(old)
    node.destroy()
