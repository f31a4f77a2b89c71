"""Functions that declare a tuple and return None in place of one of its items."""

from __future__ import annotations

from typing import Any, Tuple

import pytest
import torch
from torch import Tensor

import rekindle


def with_none(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x + 1, None  # type: ignore[return-value]


def on_paths(x: Tensor) -> Tuple[Tensor, Tensor]:
    if x.size(0) > 2:
        return x + 1, None  # type: ignore[return-value]
    return x, x * 2


def caller(x: Tensor) -> Tensor:
    y, weights = with_none(x)
    return y if weights is None else y * weights


@pytest.mark.parametrize("program", [with_none, on_paths, caller], ids=lambda program: program.__name__)
def test_the_result_is_that_of_python(program: Any) -> None:
    compiled = rekindle.script(program)
    for size in (2, 3, 2):
        x = torch.randn(size)
        for one, other in zip(compiled(x), program(x), strict=True):
            assert (one is None) == (other is None)
            assert one is None or torch.equal(one, other)
