"""Merge ``chunk`` and the unpacking of its result into one node.

.. code-block:: text

    %l : Tensor[] = aten::chunk(%x, %two, %one)
    %a : Tensor, %b : Tensor = prim::ListUnpack(%l)

    becomes

    %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=1](%x)

Gradient formulas and kernels exist for that node. If a tensor is too short for so many chunks, it raises the same error
as ``prim::ListUnpack``. Only constants may lie between the two nodes, so that the error is raised at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.constants import constant_int
from rekindle.ir.graph import AttributeValue, Graph, Node
from rekindle.rewriting.node_rules import NodeRules, RewriteSite, apply_node_rules


def _unpacked_chunk(at: RewriteSite) -> bool:
    """Replace ``aten::chunk`` with constant options, whose list is only unpacked, directly after and into as many
    values as chunks, by ``prim::ConstantChunk``. Return whether that was done."""
    unpack, chunk = at.node, at.node.input.node
    if chunk.kind != "aten::chunk" or len(chunk.output.uses) != 1 or not _directly_follows(unpack, chunk):
        return False
    tensor, *options = chunk.inputs
    count, dim = map(constant_int, options)
    # Another number of names may be right for some tensors: a length of 8 gives four where five chunks are asked for.
    if count is None or dim is None or count != len(unpack.outputs):
        return False
    attributes: dict[str, AttributeValue] = {"chunks": count, "dim": dim}
    changed = at.replace_node("prim::ConstantChunk", [tensor], attributes=attributes)
    if changed:
        chunk.destroy()
    return changed


def _directly_follows(node: Node, first: Node) -> bool:
    if node.owning_block is not first.owning_block:
        return False
    following = first.next
    while following.kind == "prim::Constant":
        following = following.next
    return following is node


_RULES: Final[NodeRules] = {"prim::ListUnpack": (_unpacked_chunk,)}


@dataclass(slots=True)
class CanonicalizeOps:
    '''Merge ``chunk`` and the unpacking of its result into one node. The docstring of the module shows the IR before
    and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import CanonicalizeOps, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : int = prim::Constant[value=2]()
        ...   %2 : int = prim::Constant[value=1]()
        ...   %3 : Tensor[] = aten::chunk(%x, %1, %2)
        ...   %a : Tensor, %b : Tensor = prim::ListUnpack(%3)
        ...   return (%a, %b)
        ... """)
        >>> run_passes(graph, [CanonicalizeOps()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : int = prim::Constant[value=1]()
          %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=1](%x)
          return (%a, %b)
    '''

    name: ClassVar[str] = "canonicalize_ops"

    def run(self, graph: Graph) -> bool:
        return apply_node_rules(graph, _RULES, "join")
