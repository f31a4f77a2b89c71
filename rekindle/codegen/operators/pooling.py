"""Pooling: an extreme or a mean of each window of an image. A window that reaches over the edge is left to PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.codegen.layout import Ints
from rekindle.codegen.operators.reductions import amax, mean
from rekindle.codegen.operators.rows import RowRule
from rekindle.codegen.operators.views import Place, View

_MAXIMUM: Final = RowRule(amax, is_folded=True)
_MEAN: Final = RowRule(mean, is_folded=True)


@dataclass(frozen=True, slots=True)
class Pool:
    """An operator on windows of ``dims`` dimensions; ``is_adaptive`` tells the size of the result instead."""

    rule: RowRule
    dims: int
    is_adaptive: bool = False


POOLS: Final[dict[str, Pool]] = {
    **{f"aten::max_pool{dims}d": Pool(_MAXIMUM, dims) for dims in (1, 2)},
    **{f"aten::avg_pool{dims}d": Pool(_MEAN, dims) for dims in (1, 2)},
    **{f"aten::adaptive_avg_pool{dims}d": Pool(_MEAN, dims, is_adaptive=True) for dims in (1, 2)},
}
"""By qualified name."""


def windows(sizes: Ints, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> View:
    """The windows of an image: a view with a dimension for each dimension of a window behind the others.

    Raises:
        ValueError: there is none.
    """
    outer, count = len(sizes) - len(kernel), len(kernel)
    rank = len(sizes) + count
    places: list[Place] = [(0, tuple(int(loop == dim) for loop in range(rank))) for dim in range(outer)]
    found = list(sizes[:outer])
    for at in range(count):
        reach = dilation[at] * (kernel[at] - 1) + 1
        if kernel[at] < 1 or stride[at] < 1 or dilation[at] < 1 or sizes[outer + at] < reach:
            raise ValueError(kernel)
        found.append((sizes[outer + at] - reach) // stride[at] + 1)
        steps = {outer + at: stride[at], outer + count + at: dilation[at]}
        places.append((0, tuple(steps.get(loop, 0) for loop in range(rank))))
    return (*found, *kernel), tuple(places)
