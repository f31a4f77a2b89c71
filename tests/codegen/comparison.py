"""Comparing what kernels give with what PyTorch gives, bit by bit."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

_BITS: Final = {8: torch.int64, 4: torch.int32, 2: torch.int16}


def units_apart(a: Tensor, b: Tensor) -> int:
    """How many floats of the dtype lie between two tensors, at the worst element; NaNs equal each other."""
    ordinary = ~(a.isnan() & b.isnan())
    a, b = a[ordinary], b[ordinary]
    if not a.numel():
        return 0
    return int((_rank(a) - _rank(b)).abs().max())


def _rank(values: Tensor) -> Tensor:
    """The number of each float in their order; -0 and 0 have the same."""
    bits = values.contiguous().view(_BITS[values.element_size()]).to(torch.int64)
    least = -(1 << (values.element_size() * 8 - 1))
    return torch.where(bits < 0, least - bits, bits)


def assert_as_eager(
    found: Tensor, expected: Tensor, most: int = 0, *, atol: float = 0.0, signs_of_zeros: bool = True
) -> None:
    """Fails unless dtype, sizes, strides, NaNs and ``signs_of_zeros`` are the same, and each element is at most
    ``most`` floats away, or ``atol`` by value."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.stride() == expected.stride()
    if not expected.dtype.is_floating_point:
        assert torch.equal(found, expected)
        return
    assert torch.equal(found.isnan(), expected.isnan())
    far = (found.double() - expected.double()).abs() > atol if atol else torch.ones_like(found, dtype=torch.bool)
    assert units_apart(found[far], expected[far]) <= most
    zeros = (found == 0) & (expected == 0)
    assert not signs_of_zeros or torch.equal(found[zeros].signbit(), expected[zeros].signbit())
