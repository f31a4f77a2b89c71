"""``torch.tensor`` of a Tensor is a copy of the same dtype."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle


def copied(x: Tensor) -> Tensor:
    return torch.tensor(x)


def by_name(x: Tensor) -> Tensor:
    return torch.tensor(data=x, device="cpu", dtype=torch.float64)


def as_ints(x: Tensor) -> Tensor:
    return torch.tensor(x, dtype=torch.int64)


def as_leaf(x: Tensor) -> Tensor:
    return torch.tensor(x.double(), requires_grad=True)


def changed(x: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.tensor(x)
    y += 1
    return x, y


def of_others(x: Tensor) -> list[Tensor]:
    return [torch.tensor(x.numel()), torch.tensor([1.5, 2.0]), torch.tensor([[1, 2]], dtype=torch.int8)]


VALUES = [
    torch.tensor(2**53 + 1),
    torch.tensor(0.1, dtype=torch.float64),
    torch.tensor(True),
    torch.arange(6.0).reshape(2, 3).t(),
    torch.ones(2, requires_grad=True),
    torch.tensor([1, 2], dtype=torch.int8),
    torch.tensor(1 + 2j),
]


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize(
    ("function", "value"),
    [
        *((function, value) for function in (copied, by_name, as_ints, of_others) for value in VALUES),
        *((function, value) for function in (as_leaf, changed) for value in VALUES if value.is_floating_point()),
    ],
)
def test_tensors_of_tensors(function: Callable[[Tensor], Any], value: Tensor) -> None:
    scripted = rekindle.script(function)
    for _ in range(3):
        found, expected = scripted(value), function(value)
        torch.testing.assert_close(found, expected, rtol=0, atol=0, check_stride=True)
        if isinstance(expected, Tensor):
            assert (found.requires_grad, found.is_leaf) == (expected.requires_grad, expected.is_leaf)
            assert found.data_ptr() != value.data_ptr()


def test_a_tensor_is_an_index() -> None:
    def largest(x: Tensor) -> Tensor:
        return x[torch.tensor(x.argmax())]

    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        expected = largest(torch.tensor([1.0, 3.0]))
    assert torch.equal(rekindle.script(largest)(torch.tensor([1.0, 3.0])), expected)


def test_archives_keep_the_copy() -> None:
    buffer = io.BytesIO()
    rekindle.save(rekindle.script(copied), buffer)
    for load in (rekindle.load, torch.jit.load):
        buffer.seek(0)
        assert torch.equal(load(buffer)(torch.tensor(2**53 + 1)), torch.tensor(2**53 + 1))
