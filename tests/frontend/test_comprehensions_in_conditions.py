"""Conditions that compare lists which comprehensions make: what is in them is found out when the program runs."""

from __future__ import annotations

from typing import Any, List

import pytest
import torch
from torch import Tensor

import rekindle
from tests.support.calls import assert_calls_agree


def has_an_empty_one(xs: List[Tensor]) -> str:
    if 0 in [x.size(0) for x in xs]:
        return "empty"
    return "full"


def reduces_all(x: Tensor, dims: List[int]) -> Tensor:
    if [d % x.dim() for d in dims] == [0, 1]:
        return x.sum()
    return x


def of_one_rank(x: Tensor, y: Tensor) -> int:
    return 1 if [i for i in range(x.dim())] == [i for i in range(y.dim())] else 2


def names_a_bias(names: List[str]) -> bool:
    if "bias" not in [name.strip() for name in names]:
        return False
    return True


def counts(n: int) -> int:
    k = 0
    while [i for i in range(k)] != [i for i in range(n)]:
        k += 1
    return k


def in_other_lists(n: int) -> int:
    if (n, [i for i in range(n)]) == (2, [0, 1]):
        return 1
    if [[i for i in range(n)]] == [[0]]:
        return 2
    return 3


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (has_an_empty_one, [([torch.ones(2), torch.ones(0)],), ([torch.ones(2)],), ([],)]),
        (reduces_all, [(torch.ones(2, 3), [0, 1]), (torch.ones(2, 3), [-2, -1]), (torch.ones(2, 3), [0])]),
        (of_one_rank, [(torch.ones(2, 3), torch.ones(3)), (torch.ones(2), torch.ones(3))]),
        (names_a_bias, [(["weight", " bias"],), (["weight"],), ([],)]),
        (counts, [(0,), (3,)]),
        (in_other_lists, [(0,), (1,), (2,)]),
    ],
)
def test_lists_of_comprehensions(function: Any, calls: list[tuple[Any, ...]]) -> None:
    assert_calls_agree(function, *calls)


def test_what_is_asserted_of_a_comprehension() -> None:
    def first(xs: List[Tensor]) -> Tensor:
        assert [x.dim() for x in xs] != [], "nothing is given"
        return xs[0]

    compiled = rekindle.script(first)
    x = torch.ones(2)
    assert compiled([x]) is x
    with pytest.raises(AssertionError, match="nothing is given"):
        compiled([])
