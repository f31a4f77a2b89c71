"""Chunks whose number and dimension are constants become nodes that give the chunks themselves, without a list.

.. code-block:: text

    %l : Tensor[] = aten::chunk(%x, %two, %one)
    %a : Tensor, %b : Tensor = prim::ListUnpack(%l)

    becomes

    %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=1](%x)

Derivatives and kernels know that node. A tensor that is too short for so many chunks raises the same error from it as
from ``prim::ListUnpack``; so that it does so at the same time, nothing but constants may stand between the two nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.ir.graph import Graph, Node
from rekindle.passes.changes import may_change
from rekindle.passes.constants import constant_int


@dataclass(slots=True)
class CanonicalizeOps:
    """See the module."""

    name: ClassVar[str] = "canonicalize_ops"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.find_nodes("prim::ListUnpack"):
            changed |= _unpacked_chunk(node)
        return changed


def _unpacked_chunk(unpack: Node) -> bool:
    chunk = unpack.input.node
    if chunk.kind != "aten::chunk" or len(chunk.output.uses) != 1 or not _directly_follows(unpack, chunk):
        return False
    count, dim = constant_int(chunk.inputs[1]), constant_int(chunk.inputs[2])
    # Another number of names may be right for some tensors: a length of 8 gives four where five chunks are asked for.
    if count is None or dim is None or count != len(unpack.outputs) or not may_change("join", unpack):
        return False
    new = unpack.graph.create(
        "prim::ConstantChunk",
        [chunk.inputs[0]],
        types=[output.type for output in unpack.outputs],
        attributes={"chunks": count, "dim": dim},
        range=unpack.range,
    )
    new.callstack, new.scope = unpack.callstack, unpack.scope
    new.insert_before(unpack)
    for old, output in zip(unpack.outputs, new.outputs, strict=True):
        old.replace_all_uses_with(output)
        output.copy_metadata(old)
    unpack.destroy()
    chunk.destroy()
    return True


def _directly_follows(node: Node, first: Node) -> bool:
    if node.owning_block is not first.owning_block:
        return False
    following = first.next
    while following.kind == "prim::Constant":
        following = following.next
    return following is node
