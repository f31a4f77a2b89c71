"""Storage of packed weights: as floats, or in fewer bits, which kernels convert to floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.passes.frozen_modules.round_weights import as_int8, rounded_weights, row_scales

_SAMPLE: Final = 4096
"""Number of weights that are checked before all of them are."""
_ROUNDING: Final = 2.0**-21
"""Relative error that rounding may cause in the product of an int8 and a scale."""


@dataclass(frozen=True, slots=True)
class WeightStorage:
    """A dtype of packed weights. Its elements take ``size`` bytes; with ``is_scaled``, weights are the elements times
    a scale for each output channel."""

    name: str
    dtype: torch.dtype
    size: int
    is_scaled: bool = False

    def pack(self, weights: Tensor, scales: Tensor) -> Tensor:
        """Return ``weights`` (of any number of rows, by output channels) in the stored form. They must be weights for
        which :meth:`holds` returns True."""
        return as_int8(weights, scales) if self.is_scaled else weights.to(self.dtype)

    def scales(self, weight: Tensor) -> Tensor:
        """Return the scale of each output channel, the first dimension of ``weight``."""
        return row_scales(weight) if self.is_scaled else weight.new_ones(weight.shape[0])

    def holds(self, weight: Tensor) -> bool:
        """Return whether ``weight`` can be stored without loss; with scales, but for their rounding."""
        return all(self._holds(each) for each in (weight[:1].flatten()[:_SAMPLE][None], weight) if each.numel())

    def _holds(self, weight: Tensor) -> bool:
        difference = (rounded_weights(weight, self.dtype) - weight).abs()
        if not self.is_scaled:
            return bool((difference == 0).all())
        return bool((difference <= weight.abs() * _ROUNDING).all())  # of each: a small one beside large ones is not 0

    def load(self, f: FunctionBuilder, place: str, lanes: int) -> str:
        """Emit the load of a vector of ``lanes`` elements, and their conversion to floats."""
        vector = f"<{lanes} x float>"
        if self.dtype is torch.float32:
            return f.emit_value(f"load {vector}, ptr {place}, align 4")
        stored = f"<{lanes} x i{8 * self.size}>"
        bits = f.emit_value(f"load {stored}, ptr {place}, align {self.size}")
        if self.dtype is torch.int8:
            wide = f.emit_value(f"sext {stored} {bits} to <{lanes} x i32>")
            return f.emit_value(f"sitofp <{lanes} x i32> {wide} to {vector}")
        wide = f.emit_value(f"zext {stored} {bits} to <{lanes} x i32>")
        by = ", ".join(["i32 16"] * lanes)
        shifted = f.emit_value(f"shl <{lanes} x i32> {wide}, <{by}>")
        return f.emit_value(f"bitcast <{lanes} x i32> {shifted} to {vector}")


FLOAT32: Final = WeightStorage("float32", torch.float32, 4)
BFLOAT16: Final = WeightStorage("bfloat16", torch.bfloat16, 2)
"""For floats whose lower half is zero."""
INT8: Final = WeightStorage("int8", torch.int8, 1, is_scaled=True)

NARROW: Final = (BFLOAT16, INT8)
"""The storages of fewer bits."""
