"""The result of attention lies in memory as PyTorch's kernel lays it out, so that views that follow can be had."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from rekindle.autodiff.backward_operators.attention import attention


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_results_are_laid_out_as_by_the_kernel(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 7, 2, 8).transpose(1, 2), torch.randn(2, 2, 7, 8)
    mask = torch.ones(7, 7, dtype=dtype).tril()
    wanted = F.scaled_dot_product_attention(query, key, key, attn_mask=mask)
    found = attention(query, key, key, mask, 0.0, False, None, False)[0]
    torch.testing.assert_close(found, wanted)
    assert found.stride() == wanted.stride()
