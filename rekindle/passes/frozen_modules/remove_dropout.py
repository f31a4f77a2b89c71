"""Dropout that is not training is no dropout.

.. code-block:: text

    %no : bool = prim::Constant[value=0]()
    %y : Tensor = aten::dropout(%x, %p, %no)        becomes        return (%x)
    return (%y)

Its result is its argument itself, and so it is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.ir.graph import Graph
from rekindle.passes.changes import may_change
from rekindle.passes.constants import constant_bool

_DROPOUTS: Final = frozenset(
    f"aten::{name}{in_place}"
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
    for in_place in ("", "_")
)


@dataclass(slots=True)
class RemoveDropout:
    """See the module."""

    name: ClassVar[str] = "remove_dropout"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.all_nodes()):
            if node.kind not in _DROPOUTS or len(node.inputs) != 3 or constant_bool(node.inputs[2]) is not False:
                continue
            if may_change("remove", node):
                node.output.replace_all_uses_with(node.inputs[0])
                node.destroy()
                changed = True
        return changed
