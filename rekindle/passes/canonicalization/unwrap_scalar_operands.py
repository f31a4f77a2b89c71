"""Replace constant zero-dimensional tensors by numbers in programs from archives.

.. code-block:: text

    %c : Tensor = prim::Constant[value={2.5}]()                   %c : float = prim::Constant[value=2.5]()
    %1 : Tensor = aten::mul(%x, %c)                    becomes    %1 : Tensor = aten::mul(%x, %c)

The dtype of the result may change: an int tensor times a tensor of float64 is of float64, times a number of the default
dtype. :mod:`rekindle.ops.tensor.scalar_operands` says why the number is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.ir.graph import Graph
from rekindle.ops.tensor.scalar_operands import scalar_operand
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class UnwrapScalarOperands:
    '''Replace constant tensors without dimensions with numbers, in programs from archives. The docstring of the module
    shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import UnwrapScalarOperands, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Tensor = prim::Constant[value={2.5}]()
        ...   %2 : Tensor = aten::mul(%x, %1)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [UnwrapScalarOperands()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %1 : Tensor = prim::Constant[value={2.5}]()
          %4 : float = prim::Constant[value=2.5]()
          %2 : Tensor = aten::mul(%x, %4)
          return (%2)
    '''

    name: ClassVar[str] = "unwrap_scalar_operands"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.all_nodes()):
            number = scalar_operand(node)
            if number is None or not may_change("unwrap", node):
                continue
            constant = graph.create_constant(number, range=node.range).insert_before(node)
            node.replace_input(1, constant.output)
            changed = True
        return changed
