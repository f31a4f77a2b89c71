"""Round the weights of large linear maps to numbers that fewer bits hold.

.. code-block:: text

    %y : Tensor = aten::linear(%x, %w, %b)       w = [[0.1234567, …], …]

becomes, for bfloat16,

    %y : Tensor = aten::linear(%x, %v, %b)       v = [[0.1235352, …], …]

The rounded weights are 32-bit floats in the program, so that gradients and other devices have the same. Packed
operators store them in fewer bits. Other operators that read ``w``, such as an embedding with the same weights, keep
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch import Tensor

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import value_of
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import TensorType
from rekindle.passes.frozen_modules.pack_weights import SMALLEST_LINEAR, has_fixed_weights
from rekindle.rewriting.changes import may_change

DTYPES: Final = (torch.bfloat16, torch.int8)
"""The dtypes that weights are rounded to."""
_LEVELS: Final = 127
"""The largest int8 that stands for a weight, and minus the smallest."""


@dataclass(slots=True)
class RoundWeights:
    """Round the constant weights of linear maps to ``dtype``, one of :data:`DTYPES`. See the module.

    Example:
        >>> from rekindle.passes import RoundWeights, run_passes
        >>> frozen = rekindle.freeze(rekindle.script(torch.nn.Linear(256, 256).eval()))
        >>> run_passes(frozen.graph, [RoundWeights(torch.bfloat16)])
        True
    """

    name: ClassVar[str] = "round_weights"
    dtype: torch.dtype = torch.bfloat16
    smallest: int = SMALLEST_LINEAR
    """Linear maps of fewer weights are not rounded."""

    def run(self, graph: Graph) -> bool:
        aliases = AliasDb(graph, is_frozen=True)
        replaced: dict[Value, Value] = {}
        for node in list(graph.find_nodes("aten::linear")):
            value = node.named_input("weight")
            if value in replaced.values() or not has_fixed_weights(node, aliases, 2):
                continue
            weight = value_of(value.node)
            assert isinstance(weight, Tensor)
            if weight.numel() < self.smallest or not may_change("round the weights of", node):
                continue
            if value not in replaced:
                rounded = rounded_weights(weight.detach(), self.dtype)
                if torch.equal(rounded, weight) or not torch.isfinite(rounded).all():
                    continue
                with graph.inserting_before(value.node):
                    replaced[value] = graph.insert_constant(rounded, TensorType.of(rounded), value.node.range)
            node.replace_input(node.inputs.index(value), replaced[value])
        return bool(replaced)


def rounded_weights(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``weight``, in its own dtype, rounded to numbers that ``dtype`` represents; for int8, to multiples of the
    scale of each row."""
    if dtype is not torch.int8:
        return weight.to(dtype).to(weight.dtype)
    scales = row_scales(weight).reshape(-1, *[1] * (weight.dim() - 1))
    return as_int8(weight, scales).to(weight.dtype) * scales


def row_scales(weight: Tensor) -> Tensor:
    """Return for each row of ``weight``, its first dimension, the number that an int8 of 1 stands for."""
    return weight.flatten(1).abs().amax(1) / _LEVELS if weight.numel() else weight.new_zeros(weight.shape[0])


def as_int8(weight: Tensor, scales: Tensor) -> Tensor:
    """Return ``weight`` divided by ``scales``, which broadcast to it, rounded to int8; 0 where a scale is 0."""
    return (weight / torch.where(scales == 0, 1.0, scales)).round().to(torch.int8)
