"""One int for a list of ints, and what may be one or a tuple; names that NumPy gives arguments."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple, Union

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._jit_internal import BroadcastingList2, BroadcastingList3
from torch.nn.common_types import _size_2_t

import rekindle
from rekindle.errors import CompileError


def pooled(x: Tensor, size: _size_2_t, stride: Optional[_size_2_t] = None) -> Tensor:
    if stride is None:
        stride = 1
    return torch.max_pool2d(x, size, stride) + F.avg_pool2d(x, size, stride)


def pooled_by_lists(x: Tensor, size: Union[int, List[int], Tuple[int, int]]) -> Tensor:
    return F.max_pool2d(x, size)


X = torch.arange(16.0).view(1, 1, 4, 4).sin()


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (pooled, (X, 2)),
        (pooled, (X, (2, 1))),
        (pooled, (X, (2, 1), (1, 2))),
        (pooled_by_lists, (X, 2)),
        (pooled_by_lists, (X, [2, 1])),
        (pooled_by_lists, (X, (1, 2))),
    ],
)
def test_sizes_that_are_ints_or_tuples(program: Any, args: Any) -> None:
    ours = rekindle.script(program)
    for _ in range(3):
        assert torch.equal(ours(*args), program(*args))


def test_names_of_numpy() -> None:
    def named(x: Tensor):
        return (
            *(torch.sum(x, axis=1, keepdims=True), x.sum(axis=0), torch.cat([x, x], axis=1), x.argmax(axis=1)),
            *(torch.max(x, axis=1)[0], torch.add(a=x, x2=x), torch.cumsum(x, axis=0), torch.unsqueeze(x, axis=0)),
            *(torch.softmax(x, axis=1), torch.amax(x, axis=(0, 1)), torch.sum(a=x), x.std(axis=1, keepdims=True)),
        )

    x = torch.arange(6.0).view(2, 3)
    torch.testing.assert_close(rekindle.script(named)(x), named(x))


def test_names_of_functions_that_are_written_in_python() -> None:
    def named(x: Tensor, sizes: list[int]):
        halves = torch.split(tensor=x, split_size_or_sections=2)
        return *halves, *torch.split(dim=1, split_size_or_sections=sizes, tensor=x)[:2]

    x = torch.arange(12.0).view(4, 3)
    torch.testing.assert_close(rekindle.script(named)(x, [1, 2]), named(x, [1, 2]))


def test_a_name_twice() -> None:
    def twice(x: Tensor):
        return torch.sum(x, dim=1, axis=1)

    with pytest.raises(CompileError):
        rekindle.script(twice)


def test_a_device_in_a_string_does_not_make_floats_of_ints() -> None:
    def made(n: int):
        return torch.tensor(4, device="cpu"), torch.tensor(n, device="cpu"), torch.as_tensor(n, device="cpu")

    assert [item.dtype for item in rekindle.script(made)(3)] == [torch.int64] * 3


def test_python_passes_one_number_for_a_list() -> None:
    def sizes(x: BroadcastingList2[int], y: Optional[BroadcastingList3[float]] = None):
        return x, y

    ours, theirs = rekindle.script(sizes), torch.jit.script(sizes)
    for args in ((3,), ([1, 2], 1.5), ((1, 2), (1.0, 2.0, 3.0)), (1, None)):
        assert ours(*args) == theirs(*args)
    with pytest.raises(TypeError):
        ours("no")
