"""Products of matrices: of small ones, kernels have loops; the others stay with BLAS."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.loop_ir.builder import Unsupported

PRODUCTS: Final = frozenset({"aten::mm", "aten::bmm", "aten::matmul", "aten::linear", "aten::addmm"})
"""By qualified name."""

MAX_MULTIPLICATIONS: Final = 1 << 19
"""Number of multiplications from which BLAS amortizes the overhead of its call."""

LEFT_TO_BLAS: Final = "a product of matrices so large that BLAS is faster"
"""Why there is no kernel for larger ones."""


class TooManyMultiplications(Unsupported):
    """A product has so many ``multiplications`` that it is left to BLAS."""

    def __init__(self, multiplications: int) -> None:
        super().__init__(LEFT_TO_BLAS)
        self.multiplications = multiplications


LEFT_ON_GPU: Final = "a GPU has no kernels for products of matrices, scans and indices of extremes"
"""Why there is no kernel for such a group; the rest of it has kernels."""

ROWS_AS_MATRIX: Final = "aten::flatten.using_ints"
"""Composites apply it to the dimensions before the last one of an operand of a product."""
