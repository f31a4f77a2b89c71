"""Remove dropout that is not in training mode.

.. code-block:: text

    %no : bool = prim::Constant[value=0]()
    %y : Tensor = aten::dropout(%x, %p, %no)        becomes        return (%x)
    return (%y)

Its result is its argument itself, and so it is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.constants import constant_bool
from rekindle.ir.graph import Graph
from rekindle.rewriting.node_rules import NodeRules, RewriteSite, apply_node_rules


def _not_training(at: RewriteSite) -> bool:
    if len(at.node.inputs) != 3:
        return False
    x, _, is_training = at.node.inputs
    return constant_bool(is_training) is False and at.bypass(x)


_RULES: Final[NodeRules] = {
    f"aten::{name}{in_place}": (_not_training,)
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
    for in_place in ("", "_")
}


@dataclass(slots=True)
class RemoveDropout:
    '''Remove dropout that is not in training mode. The docstring of the module shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import RemoveDropout, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor, %p : float):
        ...   %1 : bool = prim::Constant[value=0]()
        ...   %2 : Tensor = aten::dropout(%x, %p, %1)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [RemoveDropout()])
        True
        >>> print(graph)
        graph(%x : Tensor,
              %p : float):
          %1 : bool = prim::Constant[value=0]()
          return (%x)
    '''

    name: ClassVar[str] = "remove_dropout"

    def run(self, graph: Graph) -> bool:
        return apply_node_rules(graph, _RULES, "remove")
