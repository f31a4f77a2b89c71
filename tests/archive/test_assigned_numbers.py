"""A number that is assigned to a part of a Tensor is converted as in eager PyTorch, also after saving and loading."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from tests.versions.differences import RELEASE


def whole(x: Tensor, number: float) -> Tensor:
    x[:] = number
    return x


def one(x: Tensor, number: int) -> Tensor:
    x[0] = number
    return x


def complex_part(x: Tensor, number: complex) -> Tensor:
    x[1:] = number
    return x


def flag(x: Tensor, number: bool) -> Tensor:
    x[0] = number
    return x


def _outcome(function: Callable[..., Any], dtype: torch.dtype, number: complex) -> str:
    try:
        made = function(torch.zeros(2, dtype=dtype), number)
    except (RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[-1].removeprefix('RuntimeError: ')}"
    return f"{made.dtype} {made.tolist()}"


@pytest.mark.parametrize(
    ("function", "dtype", "number"),
    [
        *((whole, torch.float32, number) for number in (1e300, 0.1, math.nan, math.inf)),
        *((whole, torch.int64, number) for number in (1e300, 123456789.0, math.nan)),
        (whole, torch.float16, 1e5),
        (whole, torch.float64, 0.1),
        *((one, torch.uint8, number) for number in (300, -3, 255)),
        (one, torch.bool, 3),
        *((complex_part, torch.float32, number) for number in (1j, 1 + 0j)),
        (flag, torch.float32, True),
    ],
)
def test_the_number_is_converted_as_eager_does(function: Callable[..., Any], dtype: torch.dtype, number: Any) -> None:
    file = io.BytesIO()
    compiled = rekindle.script(function)
    rekindle.save(compiled, file)
    expected = _outcome(function, dtype, number)
    assert _outcome(compiled, dtype, number) == expected
    if dtype is torch.float16 and RELEASE >= (2, 15):
        expected = "torch.float16 [inf, inf]"  # the check of that release is in no operator that an archive can call
    for load in (rekindle.load, torch.jit.load):
        file.seek(0)
        assert _outcome(load(file), dtype, number) == expected
