"""What is known of tensors is written into the types of values, for passes that look there.

.. code-block:: text

    %1 : Float(2, 3) = prim::BailOut[index=0](%x, %t)             %1 : Float(2, 3) = prim::BailOut[index=0](%x, %t)
    %y : Tensor = aten::relu(%1)                       becomes    %y : Float(2, 3) = aten::relu(%1)

All starts from guards, bailouts and constants: what the types of the graph's inputs say is not checked when it runs.
It is one change: the types of all values, or of none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.type_propagation import propagate_types
from rekindle.ir.graph import Graph
from rekindle.ir.types import TensorType
from rekindle.passes.changes import may_change


@dataclass(slots=True)
class RefineTypes:
    """See the module."""

    name: ClassVar[str] = "refine_types"

    def run(self, graph: Graph) -> bool:
        types = propagate_types(graph, [None] * len(graph.inputs))
        news = {
            value: type
            for value, type in types.items()
            if value.graph is graph
            and isinstance(value.type, TensorType)
            and type != value.type
            and value.node is not graph.param_node
        }
        # What loops carry has to be refined with what their bodies return: all or nothing.
        if not news or not may_change("refine the types behind", graph.return_node):
            return False
        for value, type in news.items():
            value.set_type(type)
        return True
