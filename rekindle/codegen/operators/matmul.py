"""Matrix products: kernels have loops for small ones; BLAS computes the others."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.loop_ir.builder import Unsupported

PRODUCTS: Final = frozenset({"aten::mm", "aten::bmm", "aten::matmul", "aten::linear", "aten::addmm"})
"""By qualified name."""

MAX_MULTIPLICATIONS: Final = 1 << 19
"""Maximum number of multiplications of a product in a kernel; for larger ones, BLAS amortizes the overhead of its call.
"""

LEFT_TO_BLAS: Final = "a product of matrices so large that BLAS is faster"
"""Reason why a larger product has no kernel."""


class TooManyMultiplications(Unsupported):
    """Raised for a product of so many ``multiplications`` that BLAS is faster."""

    def __init__(self, multiplications: int) -> None:
        super().__init__(LEFT_TO_BLAS)
        self.multiplications = multiplications


LEFT_ON_GPU: Final = "a GPU has no kernels for products of matrices, scans and indices of extremes"
"""Reason why such a group has no kernel as a whole; the rest of the group has kernels."""

ROWS_AS_MATRIX: Final = "aten::flatten.using_ints"
"""Composites apply it to the dimensions before the last one of an operand of a product."""
