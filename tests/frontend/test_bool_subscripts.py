"""Bools in subscripts: of Tensors a new dimension of size 1 or 0, of lists and tuples and as keys of ints 0 or 1."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import UnsupportedError
from tests.support.calls import assert_calls_agree


def new_dimension(x: Tensor):
    return x[True], x[False], x[None, True], x[True, 0], x[0, False], x[True, None], x[True, True], x[1:, False, 0]


def of_a_parameter(x: Tensor, keep: bool):
    return x[keep], x[keep, 1:], x[1:, keep], x[keep, None, 0], x[keep, keep]


def with_tensors(x: Tensor, index: Tensor):
    return x[True, index], x[index, True], x[True, torch.tensor([0, 1])]


def with_a_mask(x: Tensor, keep: bool):
    return x[x > 0], x[keep, x > 0]


def assigned(x: Tensor, keep: bool):
    y = x.clone()
    y[keep] = 5.0
    z = x.clone()
    z[keep, 0] = x[1]
    x[True] = 2.0
    return x, y, z


def is_a_copy(x: Tensor):
    y = x[True]
    y.add_(1)
    return x, y


def of_lists(xs: List[int], second: bool):
    xs[second] += 5
    xs[True] = xs[False] + 1
    return xs[True], xs[second], (1, 2)[True], "abc"[second]


def of_a_list_of_several_types(second: bool):
    return [1, 2.5][second]


def deleted(xs: List[int], second: bool):
    del xs[second]
    return xs


def keys(d: Dict[int, int], key: bool):
    d[key] = 3
    d[True] += 2
    found = d[True], d[key]
    del d[True]
    return d, found


def keys_of_bools(d: Dict[bool, int], key: bool):
    d[key] += 3
    return d, d[True]


def condition_over_lists(size: List[int], h: int, w: int):
    if [h, w] == size:
        return 1
    if size != [w, h]:
        return 2
    return 3 if [h, [w][0]] == [1, 2] else 4


def condition_over_tuples(size: Tuple[int, int], h: int, w: int):
    if (h, w) == size:
        return 1
    if size == (h, w) or [1] == [h]:
        return 3
    return 2


X = torch.arange(6.0).reshape(2, 3)

CALLS: list[tuple[Any, tuple[Any, ...]]] = [
    (new_dimension, (X,)),
    (of_a_parameter, (X, True)),
    (of_a_parameter, (X, False)),
    (with_tensors, (X, torch.tensor([1, 0, 0]))),
    (with_a_mask, (X - 2, True)),
    (assigned, (X, True)),
    (assigned, (X, False)),
    (is_a_copy, (X,)),
    (of_lists, ([1, 2], True)),
    (of_lists, ([1, 2], False)),
    (of_a_list_of_several_types, (True,)),
    (of_a_list_of_several_types, (False,)),
    (deleted, ([1, 2], True)),
    (deleted, ([1, 2], False)),
    (keys, ({0: 1, 1: 2}, False)),
    (keys, ({0: 1, 1: 2}, True)),
    (keys_of_bools, ({True: 1}, True)),
    (keys_of_bools, ({True: 1}, False)),
    (condition_over_lists, ([1, 2], 1, 2)),
    (condition_over_lists, ([1, 2], 2, 1)),
    (condition_over_lists, ([1, 2, 3], 2, 1)),
    (condition_over_tuples, ((1, 2), 1, 2)),
    (condition_over_tuples, ((1, 2), 1, 3)),
    (condition_over_tuples, ((1, 2), 2, 3)),
]


@pytest.mark.parametrize(("function", "inputs"), CALLS)
def test_as_eager(function: Any, inputs: tuple[Any, ...]) -> None:
    assert_calls_agree(function, inputs)


class Resize(nn.Module):
    """As torchvision's: nothing to do where the sizes are those already."""

    def __init__(self, size: List[int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        if [h, w] == self.size:
            return x
        return nn.functional.interpolate(x[True][None], self.size)[0, 0]


@pytest.mark.parametrize("size", [[2, 3], [4, 6]])
def test_a_module_that_compares_sizes(size: list[int]) -> None:
    module = Resize(size)
    assert torch.equal(rekindle.script(module)(X), module(X))


def test_gradients_flow() -> None:
    def chosen(x: Tensor, keep: bool):
        return (x[True] * x[keep]).sum()

    for keep in (True, False):
        mine, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
        rekindle.script(chosen)(mine, keep).backward()
        chosen(theirs, keep).backward()
        assert mine.grad is not None
        assert theirs.grad is not None
        assert torch.equal(mine.grad, theirs.grad)


def test_refused_behind_dots() -> None:
    def dotted(x: Tensor):
        return x[..., True]

    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(dotted)
    assert str(caught.value).partition("\n")[0] == "a bool after '...' in a subscript is not supported"
