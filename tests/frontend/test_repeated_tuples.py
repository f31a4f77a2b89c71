"""Repeated tuples are tuples, as in Python, and not lists."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import rekindle
from tests.support.calls import assert_calls_agree


class Pair(NamedTuple):
    a: int
    b: int


def repeated(n: int):
    thrice = (n,) * 3
    a, b, c = thrice
    padding = (0, 0) * (n - 1) + (1, 2)
    total = 0
    for i in range(len(thrice)):
        total += thrice[i]
    is_tuple = isinstance(thrice, tuple), thrice == (n, n, n), str(thrice), padding < thrice, n in padding
    thrice *= 2
    return a, b, c, padding, total, is_tuple, thrice, [thrice], 2 * ("a", "b"), (1.5,) * -n


def of_several_types(n: int):
    return (1, 2.0) * 2, (None,) * 3, () * n, Pair(1, n) * 2, ((1, "a"),) * n, (n, None) * 2


def sizes(x: Tensor):
    corner = x[(0,) * x.dim()]
    return (1,) * x.dim(), x.view((4,) + (1,) * x.dim()), torch.zeros((2,) * 3), corner, ((x,) * 2)[1]


@pytest.mark.parametrize(
    ("program", "calls"),
    [(repeated, [(2,), (1,)]), (of_several_types, [(2,), (0,)]), (sizes, [(torch.ones(2, 2),)])],
)
def test_as_python(program: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    assert_calls_agree(program, *calls)


def test_in_an_archive() -> None:
    file = io.BytesIO()
    rekindle.save(rekindle.script(repeated), file)
    file.seek(0)
    assert repr(rekindle.load(file)(2)) == repr(repeated(2))
