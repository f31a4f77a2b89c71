"""Spell convolutions as ``torch.jit``'s tracer does, for tools that know those operators.

Before::

    %y : Tensor = aten::conv2d(%x, %w, %b, %stride, %padding, %dilation, %groups)

After::

    %y : Tensor = aten::_convolution(%x, %w, %b, %stride, %padding, %dilation, %transposed, %output_padding, %groups,
                                     %benchmark, %deterministic, %cudnn_enabled, %allow_tf32)

A convolution whose padding is a string is ``aten::_convolution_mode``.
"""

from __future__ import annotations

from typing import Final

import torch

from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import StringType

_CONVOLUTIONS: Final = {
    **{f"aten::conv{rank}d": False for rank in (1, 2, 3)},
    **{f"aten::conv_transpose{rank}d": True for rank in (1, 2, 3)},
}
"""The kinds of convolutions, and whether they are transposed."""


def as_tracer_spells(graph: Graph) -> None:
    """Replace the convolutions of ``graph`` in place with ``aten::_convolution`` or ``aten::_convolution_mode``. The
    flags of cuDNN are the current ones of ``torch.backends.cudnn``."""
    for node in list(graph.all_nodes()):
        if node.kind in _CONVOLUTIONS:
            _replace(node, transposed=_CONVOLUTIONS[node.kind])


def _replace(node: Node, *, transposed: bool) -> None:
    graph = node.graph
    argument = node.named_input
    shared = [argument(name) for name in ("input", "weight", "bias", "stride", "padding")]
    with graph.inserting_before(node):
        if isinstance(argument("padding").type, StringType):
            kind, inputs = "aten::_convolution_mode", [*shared, argument("dilation"), argument("groups")]
        else:
            kind = "aten::_convolution"
            none = [0] * (int(node.kind[-2]))
            output_padding = argument("output_padding") if transposed else graph.insert_constant(none)
            flags = (
                torch.backends.cudnn.benchmark,
                torch.backends.cudnn.deterministic,
                torch.backends.cudnn.enabled,
                torch.backends.cudnn.allow_tf32,
            )
            inputs = [
                *shared,
                argument("dilation"),
                graph.insert_constant(transposed),
                output_padding,
                argument("groups"),
                *map(graph.insert_constant, flags),
            ]
        made = graph.insert_node(graph.create(kind, inputs, range=node.range))
    made.scope = node.scope
    made.output.copy_metadata(node.output)
    node.replace_all_uses_with(made)
    node.destroy()
