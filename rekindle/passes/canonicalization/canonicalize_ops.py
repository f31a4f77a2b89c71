"""Merge operators that create lists of tensors with the nodes that use the lists.

.. code-block:: text

    %l : Tensor[] = aten::chunk(%x, %two, %one)
    %a : Tensor, %b : Tensor = prim::ListUnpack(%l)

    becomes

    %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=1](%x)

and

.. code-block:: text

    %l : Tensor[] = prim::ListConstruct(%x, %y)
    %m : Tensor[] = aten::broadcast_tensors(%l)
    %a : Tensor, %b : Tensor = prim::ListUnpack(%m)
    %2 : Tensor = aten::mse_loss(%a, %b, %one)

    becomes

    %2 : Tensor = aten::mse_loss(%x, %y, %one)

Gradient formulas and kernels exist for the new nodes. They raise the errors of the old ones: if a tensor is too short
for so many chunks, or two sizes do not match. Only constants may lie between the old nodes, so that the error is raised
at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.constants import constant_int
from rekindle.ir.graph import AttributeValue, Graph, Node
from rekindle.rewriting.node_rules import NodeRules, RewriteSite, apply_node_rules


def _unpacked_chunk(at: RewriteSite) -> bool:
    """Replace ``aten::chunk``, with constant options and a list that is only unpacked, by ``prim::ConstantChunk``.
    Return whether that was done."""
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


def _broadcast_loss(at: RewriteSite) -> bool:
    """Pass two tensors to a loss, which broadcasts them, without ``aten::broadcast_tensors``. Return whether that was
    done."""
    loss, unpack = at.node, at.node.inputs[0].node
    if unpack.kind != "prim::ListUnpack" or list(unpack.outputs) != list(loss.inputs[:2]):
        return False
    broadcast = unpack.input.node
    if broadcast.kind != "aten::broadcast_tensors":
        return False
    made = broadcast.input.node
    if made.kind != "prim::ListConstruct" or len(made.inputs) != len(unpack.outputs):
        return False
    follows = all(map(_directly_follows, (loss, unpack, broadcast), (unpack, broadcast, made)))
    if not follows or not at.replace_node(loss.kind, [*made.inputs, *loss.inputs[2:]]):
        return False
    for node in (unpack, broadcast, made):  # the loss raises their errors
        if node.has_uses:
            break
        node.destroy()
    return True


def _directly_follows(node: Node, first: Node) -> bool:
    if node.owning_block is not first.owning_block:
        return False
    following = first.next
    while following.kind == "prim::Constant":
        following = following.next
    return following is node


_LOSSES: Final = ("aten::mse_loss", "aten::l1_loss", "aten::smooth_l1_loss", "aten::huber_loss")
"""Losses that broadcast their first two operands, and that :mod:`torch.nn.functional` calls after it broadcast them."""

_RULES: Final[NodeRules] = {
    "prim::ListUnpack": (_unpacked_chunk,),
    **dict.fromkeys(_LOSSES, (_broadcast_loss,)),
}


@dataclass(slots=True)
class CanonicalizeOps:
    '''Merge operators that create lists of tensors with the nodes that use the lists. The docstring of the module shows
    the IR before and after.

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
