"""``torch.FloatTensor(…)`` and its kin, ``x.type(dtype)``."""

from __future__ import annotations

from typing import Any, List

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import CompileError


def of_data(n: int, xs: List[int], x: Tensor):
    return (
        *(torch.BoolTensor([2]), torch.LongTensor([3]), torch.ByteTensor([4]), torch.CharTensor([5])),
        *(torch.DoubleTensor([6]), torch.FloatTensor([7]), torch.IntTensor([8]), torch.ShortTensor([1])),
        *(torch.HalfTensor([1]), torch.BFloat16Tensor([2]), torch.Tensor([1, 2]), torch.LongTensor([1.5, 2.5])),
        *(torch.FloatTensor([[1.0, 2.0], [3.0, 4.0]]), torch.FloatTensor((1, 2)), torch.FloatTensor(xs)),
        *(torch.FloatTensor([float(n)]), torch.DoubleTensor(), torch.Tensor(), isinstance(x, torch.Tensor)),
    )


def of_sizes(n: int, xs: List[int], x: Tensor):
    made = torch.LongTensor(2, n), torch.FloatTensor(x.shape), torch.Tensor(n), torch.DoubleTensor(x.size(0), n)
    return [(item.shape, item.dtype) for item in made]


def cast(n: int, xs: List[int], x: Tensor):
    return x.type(torch.float64), x.type(dtype=torch.int8), x.type(torch.float32, non_blocking=True)


@pytest.mark.parametrize("program", [of_data, of_sizes, cast])
def test_tensors_are_those_of_python(program: Any) -> None:
    args = (2, [1, 2, 3], torch.ones(2, 3))
    ours = rekindle.script(program)
    for _ in range(3):
        assert str(ours(*args)) == str(program(*args))


def mixed(x: Tensor):
    return torch.LongTensor(1, [2])


def copied(x: Tensor):
    return torch.FloatTensor(x)


@pytest.mark.parametrize(
    ("program", "message", "hint"),
    [
        (
            mixed,
            "the class 'LongTensor' takes sizes, or a list of numbers, and is given (int, List[int])",
            "write torch.tensor(…, dtype=torch.int64), or x.to(torch.int64)",
        ),
        (
            copied,
            "the class 'FloatTensor' takes sizes, or a list of numbers, and is given (Tensor)",
            "write torch.tensor(…, dtype=torch.float32), or x.to(torch.float32)",
        ),
    ],
)
def test_what_is_refused(program: Any, message: str, hint: str) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.script(program)
    first, *_, last = str(caught.value).splitlines()
    assert (first, last) == (message, f"Hint: {hint}")
