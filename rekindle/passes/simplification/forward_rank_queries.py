"""Query the rank of an operand in place of that of the result.

.. code-block:: text

    %c : Tensor = aten::conv2d(%x, %w, …)              %c : Tensor = aten::conv2d(%x, %w, …)
    %d : int = aten::dim(%c)                 becomes   %d : int = aten::dim(%x)
    %n : Tensor = aten::batch_norm(%c, …)              %n : Tensor = aten::batch_norm(%c, …)

The normalization is then the only use of the convolution. A rank that is known is a constant: that of a flattened
tensor, or after a check that raises for other ranks. A graph that changes dimensions in place is not rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.rank_inference import Ranks, in_order, operand_of_same_rank, ranks_are_fixed
from rekindle.ir.graph import Graph
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class ForwardRankQueries:
    '''Query the rank of an operand in place of that of the result. The docstring of the module shows the IR before and
    after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import ForwardRankQueries, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor, %w : Tensor):
        ...   %1 : Tensor = aten::relu(%x)
        ...   %2 : int = aten::dim(%1)
        ...   return (%1, %2)
        ... """)
        >>> run_passes(graph, [ForwardRankQueries()])
        True
        >>> print(graph)
        graph(%x : Tensor,
              %w : Tensor):
          %1 : Tensor = aten::relu(%x)
          %2 : int = aten::dim(%x)
          return (%1, %2)
    '''

    name: ClassVar[str] = "forward_rank_queries"

    def run(self, graph: Graph) -> bool:
        if not graph.find_nodes("aten::dim") or not ranks_are_fixed(graph):
            return False
        ranks = Ranks()
        changed = False
        for node in in_order(graph, ranks):
            if node.kind != "aten::dim":
                continue
            value = node.input
            known = ranks.exactly(value)
            if known is not None and may_change("compute", node):
                with graph.inserting_before(node):
                    node.output.replace_all_uses_with(graph.insert_constant(known, range=node.range))
                node.destroy()
                changed = True
                continue
            while (operand := operand_of_same_rank(value)) is not None:
                value = operand
            if value is not node.input and may_change("ask the operand in", node):
                node.replace_input(0, value)
                changed = True
        return changed
