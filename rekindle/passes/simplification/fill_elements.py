"""Assign numbers to single elements without a Tensor of the number.

.. code-block:: text

    %e : Tensor() = aten::select(%x, %dim, %i)                  %e : Tensor() = aten::select(%x, %dim, %i)
    %d : int = prim::dtype(%e)
    %c : Device = prim::device(%e)
    %t : Tensor() = aten::tensor[assigned=1](%v, %d, %c, %no)
    %r : Tensor() = aten::copy_(%e, %t, %no)         becomes    %r : Tensor() = aten::fill_(%e, %v)

``x[i] = v`` is emitted as on the left. ``fill_`` converts the number as the operator that makes the Tensor does, and
raises the same errors for numbers out of range. Where there may be no element it would raise none, so that only targets
of rank 0 are filled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import BOOL, FLOAT, INT, TensorType
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.rewriting.changes import may_change

_NUMBERS: Final = (FLOAT, INT, BOOL)


@dataclass(slots=True)
class FillElements:
    '''Assign numbers to single elements without a Tensor of the number. See the module.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import FillElements, run_passes
        >>> graph = parse_graph("""
        ... graph(%e : Tensor(), %v : float):
        ...   %no : bool = prim::Constant[value=0]()
        ...   %d : int = prim::dtype(%e)
        ...   %c : Device = prim::device(%e)
        ...   %t : Tensor() = aten::tensor[assigned=1](%v, %d, %c, %no)
        ...   %r : Tensor() = aten::copy_(%e, %t, %no)
        ...   return (%r)
        ... """)
        >>> run_passes(graph, [FillElements()])
        True
        >>> print(graph)
        graph(%e : Tensor(),
              %v : float):
          %r : Tensor() = aten::fill_(%e, %v)
          return (%r)
    '''

    name: ClassVar[str] = "fill_elements"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.find_nodes("aten::copy_"):
            if _copies_number(node) and may_change("fill", node):
                target, made = node.inputs[0], node.inputs[1].node
                filled = graph.create(
                    "aten::fill_", [target, made.inputs[0]], types=[node.output.type], range=node.range
                )
                filled.insert_before(node)
                filled.output.copy_metadata(node.output)
                node.output.replace_all_uses_with(filled.output)
                node.destroy()
                changed = True
        if changed:
            run_nested(DeadCodeElimination(), graph)
        return changed


def _copies_number(node: Node) -> bool:
    """Return whether a node copies an assigned number to its only target, a tensor with one element."""
    target, source = node.inputs[0], node.inputs[1]
    made = source.node
    if made.kind != "aten::tensor" or not made.attributes.get("assigned") or made.inputs[0].type not in _NUMBERS:
        return False
    dtype, device = made.inputs[1].node, made.inputs[2].node
    return (
        isinstance(target.type, TensorType)
        and target.type.rank == 0
        and len(source.uses) == 1
        and (dtype.kind, device.kind) == ("prim::dtype", "prim::device")
        and dtype.inputs[0] is target
        and device.inputs[0] is target
    )
