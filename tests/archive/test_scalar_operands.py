"""Numbers beside tensors in traces of PyTorch's are tensors in their archives, and numbers again once loaded."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle

FLOAT = torch.tensor(2.5, dtype=torch.float64)
INT = torch.tensor(3)
TRACED: dict[str, Callable[[Tensor], Tensor]] = {
    "mul": lambda x: 2.5 * x,
    "add": lambda x: x + 1.5,
    "add with alpha": lambda x: torch.add(x, 1.5, alpha=2),
    "sub": lambda x: x - 3,
    "sub from a number": lambda x: 2.5 - x,
    "div": lambda x: x / 2,
    "true_divide": lambda x: torch.true_divide(x, 2.5),
    "complex": lambda x: x * 2j,
    "floor": lambda x: torch.div(x, 2.5, rounding_mode="floor"),
    "power": lambda x: x**2.5,
    "in place": lambda x: x.float().mul_(2.5),
}


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32, torch.float16], ids=str)
def test_dtypes_of_loaded_traces(name: str, dtype: torch.dtype) -> None:
    function = TRACED[name]
    x = torch.arange(1, 5, dtype=dtype)
    archive = io.BytesIO()
    torch.jit.save(torch.jit.trace(function, x, check_trace=False), archive)
    expected = torch.jit.load(io.BytesIO(archive.getvalue()))(x)
    loaded = rekindle.load(io.BytesIO(archive.getvalue()))
    again = rekindle.load(loaded.save_to_buffer())
    for program in (loaded, again):
        for _ in range(3):
            found = program(x)
            assert found.dtype == expected.dtype
            torch.testing.assert_close(found, expected)
    if name != "floor":  # torch.jit does not take this number for one
        assert expected.dtype == function(x).dtype


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("factor", FLOAT.clone())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


WRITTEN: dict[str, Callable[[], Any]] = {
    "trace with a tensor from outside": lambda: rekindle.trace(lambda x: (x + INT) / FLOAT, torch.arange(4)),
    "frozen buffer": lambda: rekindle.freeze(rekindle.script(Scaled().eval())),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_tensors_that_are_saved_stay_tensors(name: str) -> None:
    program = WRITTEN[name]()
    x = torch.arange(4)
    archive = program.save_to_buffer()
    for loaded in (rekindle.load(archive), torch.jit.load(io.BytesIO(archive))):
        for _ in range(3):
            assert loaded(x).dtype == program(x).dtype == torch.float64
            torch.testing.assert_close(loaded(x), program(x))
