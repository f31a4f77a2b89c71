"""Differences between releases of PyTorch."""

from __future__ import annotations

import pytest
import torch

from rekindle.ops.releases import RELEASE, v2_15


@pytest.mark.parametrize(("number", "dtype"), [(1e5, torch.float16), (1e300, torch.bfloat16), (100000, torch.float16)])
def test_numbers_that_do_not_fit_are_assigned_as_in_the_release(
    monkeypatch: pytest.MonkeyPatch, number: float, dtype: torch.dtype
) -> None:
    x = torch.zeros(2, dtype=dtype)
    if RELEASE < (2, 15):
        x[:] = number
        assert x.isinf().all()
        v2_15.check_assigned_number(number, dtype)
    monkeypatch.setattr(v2_15, "RELEASE", (2, 15))
    with pytest.raises(RuntimeError, match="without overflow"):
        v2_15.check_assigned_number(number, dtype)
    v2_15.check_assigned_number(1.0, dtype)
    v2_15.check_assigned_number(1e300, torch.float32)
