"""Replace attention by an operator that chooses the fastest kernel.

.. code-block:: text

    %a : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %mask, %dropout, %causal, %scale, %gqa)

becomes

.. code-block:: text

    %a : Tensor = prim::attention(%q, %k, %v, %mask, %dropout, %causal, %scale, %gqa)

What runs this kind, and how it is chosen: :mod:`rekindle.codegen.attention.attention_operator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.constants import is_constant, value_of
from rekindle.ir.graph import Graph, Node
from rekindle.rewriting.changes import may_change

ATTENTION: Final = "prim::attention"


@dataclass(slots=True)
class SelectAttention:
    """See the module."""

    name: ClassVar[str] = "select_attention"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.find_nodes("aten::scaled_dot_product_attention")):
            if _has_no_dropout(node) and may_change("choose a kernel for", node):
                _replace(node)
                changed = True
        return changed


def _has_no_dropout(node: Node) -> bool:
    dropout = node.named_input("dropout_p")
    return is_constant(dropout) and value_of(dropout.node) == 0.0


def _replace(node: Node) -> None:
    made = node.graph.create(ATTENTION, node.inputs)
    made.set_range(node.range)
    made.callstack = node.callstack
    made.insert_before(node)
    made.output.copy_metadata(node.output)
    made.output.type = node.output.type
    node.output.replace_all_uses_with(made.output)
    node.destroy()
