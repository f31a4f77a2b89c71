"""Dtypes are numbers in the IR, but no sizes in a program."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import CompileError
from tests.support.equality import assert_same


def _as_ints(x: Tensor) -> Tensor:
    return x.view(torch.int32)


def _as_other(x: Tensor, y: Tensor) -> Tensor:
    return x.view(y.dtype) + x.view(2, 2).view(-1).view(dtype=torch.int16)[:2]


def _as_given(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.view_copy(x, dtype) if x.dim() > 1 else x.view(dtype)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (_as_ints, (torch.ones(3),)),
        (_as_other, (torch.ones(4), torch.ones(2, dtype=torch.float64))),
        (_as_given, (torch.ones(3), torch.int32)),
    ],
)
def test_a_dtype_is_no_size(function: Any, arguments: tuple[Any, ...]) -> None:
    """``torch.int32`` has the number 3."""
    compiled = rekindle.script(function)
    loaded = io.BytesIO()
    rekindle.save(compiled, loaded)
    loaded.seek(0)
    for each in (compiled, rekindle.load(loaded)):
        assert_same(each(*arguments), function(*arguments))


def test_a_dtype_among_sizes_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"argument 'size': expected List\[int\], got torch\.dtype"):
        rekindle.script(lambda: torch.zeros(2, torch.int32))
