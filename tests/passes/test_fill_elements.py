"""Numbers that are assigned to elements: results and errors are those of eager, for all dtypes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle

DTYPES = (torch.float32, torch.float16, torch.int8, torch.uint8, torch.int64, torch.bool, torch.complex64)


def write_float(x: Tensor, i: int, value: float) -> Tensor:
    x[i] = value
    return x


def write_int(x: Tensor, i: int, value: int) -> Tensor:
    x[i] = value
    return x


def write_bool(x: Tensor, i: int, value: bool) -> Tensor:
    x[i] = value
    return x


def outcome(function: Any, x: Tensor, i: int, value: object) -> tuple[type, str]:
    try:
        found = function(x, i, value)
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    return type(found), str(found)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_results_and_errors_are_those_of_eager(dtype: torch.dtype) -> None:
    cases = [
        *((write_float, value) for value in (1.5, -0.0, 1e300, math.inf, math.nan)),
        *((write_int, value) for value in (0, -1, 300, 2**40)),
        *((write_bool, value) for value in (True, False)),
    ]
    for function, value in cases:
        scripted = rekindle.script(function)
        for i in (1, -1, 7) if value == 0 else (1, -1):  # eager converts the number before it looks for the element
            for _ in range(3):
                ours, theirs = (torch.zeros(3, dtype=dtype) for _ in range(2))
                assert outcome(scripted, ours, i, value) == outcome(function, theirs, i, value), (value, i)


def test_a_gradient_does_not_flow_into_the_element() -> None:
    def masked(x: Tensor, value: float) -> Tensor:
        y = x * 2
        y[1] = value
        return y.exp().sum()

    scripted = rekindle.script(masked)
    for _ in range(4):
        gradients: list[Tensor] = []
        for function in (scripted, masked):
            x = torch.arange(3.0, requires_grad=True)
            function(x, 0.5).backward()
            assert x.grad is not None
            gradients.append(x.grad)
        assert torch.equal(gradients[0], gradients[1])
        assert gradients[0][1] == 0
