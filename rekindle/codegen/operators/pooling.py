"""Pooling: an extremum or a mean of each window of an image. If windows extend over the edge, the image is first copied
with neutral padding; means that exclude the padding run in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.codegen.layout import Ints
from rekindle.codegen.loop_ir.builder import Builder
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.loop_ir.scalar_types import ScalarType
from rekindle.codegen.operators.pointwise_ops import PointwiseOp, ResultDtype
from rekindle.codegen.operators.reductions import amax, mean
from rekindle.codegen.operators.rows import RowOp
from rekindle.codegen.operators.views import AffineExpr, View

_MAXIMUM: Final = RowOp(amax, is_folded=True)
_MEAN: Final = RowOp(mean, is_folded=True)


@dataclass(frozen=True, slots=True)
class Pool:
    """An operator on windows of ``dims`` dimensions. ``around`` is the value of elements beyond the edge. With
    ``is_adaptive``, the operator takes the size of the result instead of the size of windows. Without ``pays_alone``,
    PyTorch computes it in less time than a kernel of it alone."""

    rule: RowOp
    dims: int
    is_adaptive: bool = False
    around: float = 0.0
    pays_alone: bool = True

    @property
    def is_mean(self) -> bool:
        return self.rule is _MEAN

    def filling(self, scalar: ScalarType) -> PointwiseOp:
        """Return the operator without operands whose result consists of ``around``."""
        around = self.around

        def build(b: Builder) -> Expression:
            return b.constant(around, scalar)

        return PointwiseOp(build, ResultDtype.SELF)


POOLS: Final[dict[str, Pool]] = {
    "aten::max_pool1d": Pool(_MAXIMUM, 1, around=-math.inf, pays_alone=False),
    "aten::max_pool2d": Pool(_MAXIMUM, 2, around=-math.inf),
    **{f"aten::avg_pool{dims}d": Pool(_MEAN, dims) for dims in (1, 2)},
    **{f"aten::adaptive_avg_pool{dims}d": Pool(_MEAN, dims, is_adaptive=True) for dims in (1, 2)},
}
"""By qualified name."""


def beyond_the_edge(size: int, kernel: int, stride: int, padding: int, dilation: int, ceils: bool) -> int:
    """Return how many elements windows extend beyond the end of a dimension of ``size`` elements, which begins with
    ``padding``. ``ceils`` rounds the number of windows up, as ``ceil_mode`` does.

    Raises:
        ValueError: the numbers are out of range, or no window fits.
    """
    reach = dilation * (kernel - 1) + 1
    if kernel < 1 or stride < 1 or dilation < 1 or not 0 <= padding <= reach // 2 or size + 2 * padding < reach:
        raise ValueError(kernel)
    last = (size + 2 * padding - reach + (stride - 1 if ceils else 0)) // stride
    if ceils and last * stride >= size + padding:
        last -= 1
    beyond = last * stride + reach - size - padding
    return max(0, beyond)


def windows(sizes: Ints, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> View:
    """Return the windows of an image: a view with an additional trailing dimension for each dimension of a window.

    Raises:
        ValueError: a number is not positive, or a window does not fit into the image.
    """
    outer, count = len(sizes) - len(kernel), len(kernel)
    rank = len(sizes) + count
    places: list[AffineExpr] = [(0, tuple(int(loop == dim) for loop in range(rank))) for dim in range(outer)]
    found = list(sizes[:outer])
    for at in range(count):
        reach = dilation[at] * (kernel[at] - 1) + 1
        if kernel[at] < 1 or stride[at] < 1 or dilation[at] < 1 or sizes[outer + at] < reach:
            raise ValueError(kernel)
        found.append((sizes[outer + at] - reach) // stride[at] + 1)
        steps = {outer + at: stride[at], outer + count + at: dilation[at]}
        places.append((0, tuple(steps.get(loop, 0) for loop in range(rank))))
    return (*found, *kernel), tuple(places)
