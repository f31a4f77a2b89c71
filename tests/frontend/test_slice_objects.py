"""Slice objects as indices: those of variables, parameters, attributes and globals."""

from __future__ import annotations

import copy
from typing import Any, List, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import CompileError

ROWS = slice(1, 3)


def of_lists(xs: List[int], text: str, t: Tuple[int, str, float]):
    rows, start, rest = slice(1, 3), slice(2), slice(1, None)
    return xs[rows], xs[start], xs[slice(None, None, 2)], xs[ROWS], text[rest], t[rest]


def of_tensors(x: Tensor, n: int, first: Optional[int]):
    rows, rest = slice(None, n, 2), slice(first, None)
    return x[rows], x[rows, slice(1)], x[..., ROWS], x[rest], x[rest, 0], x[ROWS, rows], rows.stop, rows.start


def written(x: Tensor, xs: List[int], n: int):
    rows = slice(1, n)
    x[rows] = 0
    x[rows, 0] = 7
    x[:, rows] += 1
    xs[rows] = [9, 9]
    return x, xs


def taken(x, rows):
    return x[rows]


def passed(x: Tensor, n: int):
    return taken(x, slice(n)), taken(x, slice(0, n, 2)), torch.stack([x[s].sum() for s in (slice(0, 1), ROWS)])


class Cropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = slice(0, 2)

    def forward(self, x: Tensor):
        return x[self.rows], x[self.rows, 0]


X = torch.arange(20).view(5, 4)


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (of_lists, ([1, 2, 3, 4], "abc", (1, "a", 2.0))),
        (of_tensors, (X, 3, 1)),
        (of_tensors, (X, 3, None)),
        (written, (X, [1, 2, 3, 4], 3)),
        (passed, (X, 2)),
        (Cropped(), (X,)),
    ],
)
def test_slices_index_as_in_python(program: Any, args: Any) -> None:
    expected = program(*copy.deepcopy(args))
    ours = rekindle.script(program)
    for _ in range(3):
        assert str(ours(*copy.deepcopy(args))) == str(expected)


def kept(n: int):
    return [slice(n)]


def named(xs: List[int]):
    return xs[slice(1, stop=2)]


def of_text(xs: List[int], text: str):
    rows = slice(text)
    return xs[rows]


def of_a_tuple(n: int):
    return (n, 2.0)[::0]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (of_a_tuple, "slice step cannot be zero"),
        (kept, "a slice is not a value that a program can keep"),
        (named, "slice takes one to three arguments, and none by name"),
        (of_text, "the stop of a slice must be an int, got str"),
    ],
)
def test_slices_that_are_refused(program: Any, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.script(program)
    assert str(caught.value).partition("\n")[0] == message
