"""Remove expansions before operators that broadcast.

.. code-block:: text

    %1 : Tensor = aten::expand(%x, %sizes, %true)
    %2 : Tensor = aten::add(%1, %y, %one)              becomes    %2 : Tensor = aten::add(%x, %y, %one)

The producer of the graph declares that the expansion is implicit: a tracer that recorded operands being broadcast. An
expansion with a use other than an operator that broadcasts is kept, and so is one that is written to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_bool
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import TensorType
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class RemoveExpands:
    '''Remove expansions before operators that broadcast. The docstring of the module shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import DeadCodeElimination, RemoveExpands, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor, %y : Tensor, %sizes : int[]):
        ...   %1 : bool = prim::Constant[value=1]()
        ...   %2 : int = prim::Constant[value=1]()
        ...   %3 : Tensor = aten::expand(%x, %sizes, %1)
        ...   %4 : Tensor = aten::add(%3, %y, %2)
        ...   return (%4)
        ... """)
        >>> run_passes(graph, [RemoveExpands(), DeadCodeElimination()])
        True
        >>> print(graph)
        graph(%x : Tensor,
              %y : Tensor,
              %sizes : int[]):
          %2 : int = prim::Constant[value=1]()
          %4 : Tensor = aten::add(%x, %y, %2)
          return (%4)
    '''

    name: ClassVar[str] = "remove_expands"

    def run(self, graph: Graph) -> bool:
        expands = [node for node in graph.find_nodes("aten::expand") if _is_for_broadcasting(node)]
        if not expands:
            return False
        aliases = AliasDb(graph)
        changed = False
        for node in expands:
            if not aliases.has_writers(node.output) and may_change("remove", node):
                node.output.replace_all_uses_with(node.named_input("self"))
                changed = True
        if changed:
            run_nested(DeadCodeElimination(), graph)
        return changed


def _is_for_broadcasting(node: Node) -> bool:
    """Return whether an expansion is implicit, and used by operators that broadcast it against another tensor."""
    return (
        constant_bool(node.named_input("implicit")) is True
        and node.output.has_uses
        and all(use.user.has_trait(Trait.POINTWISE) and _tensors(use.user) > 1 for use in node.output.uses)
    )


def _tensors(node: Node) -> int:
    return sum(isinstance(value.type, TensorType) for value in node.inputs)
