"""Store constant matrices row by row, if matrix products have them as second factors.

.. code-block:: text

    %w : Float(64, 256, strides=[1, 64]) = prim::Constant[value=<Tensor>]()
    %y : Tensor = aten::mm(%x, %w)

becomes

    %v : Float(64, 256, strides=[256, 1]) = prim::Constant[value=<Tensor>]()
    %y : Tensor = aten::mm(%x, %v)

Such constants are often transposes of weights, as in ``x.mm(w.t())``. A kernel multiplies a row of the second factor by
one number, without horizontal sums. Only small products have kernels, so that larger constants are not copied. The
result of a product has the same strides in both cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch import Tensor

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import TensorType
from rekindle.passes.frozen_modules.foldable import fixed_tensor
from rekindle.rewriting.changes import may_change

_PRODUCTS: Final = ("aten::mm", "aten::matmul")
_MAX_ELEMENTS: Final = 1 << 19
"""Constants of more elements are not copied: a product with one row already has more multiplications than kernels
compute."""


@dataclass(slots=True)
class LayOutFactors:
    """Store constant second factors of matrix products row by row. See the module.

    Example:
        >>> from rekindle.passes import LayOutFactors, run_passes
        >>> from rekindle.analysis.constants import value_of
        >>> class Net(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.weight = torch.nn.Parameter(torch.ones(16, 8))
        ...     def forward(self, x):
        ...         return x.mm(self.weight.t())
        >>> graph = rekindle.freeze(rekindle.script(Net().eval())).graph
        >>> run_passes(graph, [LayOutFactors()])
        True
        >>> value_of(graph.find_node("aten::mm").inputs[1].node).stride()
        (16, 1)
    """

    name: ClassVar[str] = "lay_out_factors"

    def run(self, graph: Graph) -> bool:
        aliases = AliasDb(graph, is_frozen=True)
        replaced: dict[Value, Value] = {}
        for node in graph.all_nodes():
            if node.kind not in _PRODUCTS:
                continue
            value = node.inputs[1]
            factor = fixed_tensor(value, aliases)
            if factor is None or not _is_transposed(factor) or not may_change("store the constant factor of", node):
                continue
            if value not in replaced:
                rows = factor.detach().contiguous()
                with graph.inserting_before(value.node):
                    replaced[value] = graph.insert_constant(rows, TensorType.of(rows), value.node.range)
            node.replace_input(1, replaced[value])
        return bool(replaced)


def _is_transposed(tensor: Tensor) -> bool:
    """Return whether ``tensor`` is a small matrix of floats on the CPU whose columns are contiguous, and whose rows are
    not."""
    return (
        tensor.dim() == 2
        and tensor.dtype in (torch.float32, torch.float64)
        and tensor.device.type == "cpu"
        and tensor.numel() <= _MAX_ELEMENTS
        and not tensor.is_contiguous()
        and tensor.t().is_contiguous()
    )
