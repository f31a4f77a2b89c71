"""Subscripts with a tuple of one item: ``x[i,]``. Tensors and dicts take it, lists, tuples and strings do not."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import TypeMismatchError
from tests.support.calls import assert_calls_agree


def of_variables(x: Tensor, pair: Tuple[int, int], many: Tuple[int, ...], xs: List[int], mask: Tensor):
    return x[pair,], x[many,], x[xs,], x[mask,], x[x > 2,], x[pair], x[many]


def of_literals(x: Tensor):
    return x[0,], x[(1,)], x[0:1,], x[((1, 0),)], x[...,], x[None,], x[True,], x[[1, 0],]  # fmt: skip


def written(x: Tensor):
    rows = (1, 0)
    x[0,] = 3
    x[1:,] += 1
    x[rows,] = x[(0, 1),] * 2
    return x


def keys(d: Dict[Tuple[int], int]):
    d[3,] = 4
    d[3,] += 1
    del d[2,]
    return d, d[1,] + d[(3,)]


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (
            of_variables,
            [
                (torch.arange(float(n * 3)).view(n, 3), (1, 0), (0, 1), [1, 1, 0], torch.arange(n) % 2 == 1)
                for n in (2, 3, 5)
            ],
        ),
        (of_literals, [(torch.arange(6).view(2, 3),), (torch.arange(9).view(3, 3),)]),
        (written, [(torch.arange(6).view(2, 3),), (torch.arange(8.0).view(2, 4),)]),
        (keys, [({(1,): 1, (2,): 3},), ({(1,): 5, (2,): 3, (3,): 7},)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_index_as_in_eager_mode(program: Callable[..., Any], calls: List[Tuple[Any, ...]]) -> None:
    assert_calls_agree(program, *calls)


def of_a_list(xs: List[int], i: int):
    return xs[i,]


def of_a_tuple(xs: Tuple[int, int], i: int):
    return xs[i,]


def of_a_string(xs: str, i: int):
    return xs[i,]


def slice_of_a_list(xs: List[int], i: int):
    return xs[i:,]


@pytest.mark.parametrize(
    ("program", "type"),
    [(of_a_list, "List[int]"), (of_a_tuple, "Tuple[int, int]"), (of_a_string, "str"), (slice_of_a_list, "List[int]")],
)
def test_of_sequences_are_rejected(program: Callable[..., Any], type: str) -> None:
    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(program)
    assert str(caught.value).startswith(f"a value of type {type} takes one index, got a tuple\n")
