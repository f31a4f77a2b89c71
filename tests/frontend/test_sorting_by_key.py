"""``sorted`` and ``sort`` with a key: the order is Python's, also where keys are NaN."""

from __future__ import annotations

import io
import math
import random
from typing import Any, Callable, List

import pytest
import torch
from torch import Tensor

import rekindle


def by_number(xs: List[float]):
    return sorted(xs, key=lambda v: v)


def downwards(xs: List[float]):
    return sorted(xs, key=lambda v: -v, reverse=True)


def by_field(xs: List[float]):
    return sorted([(x, i) for i, x in enumerate(xs)], key=lambda pair: pair[0])


def by_tuple(xs: List[float]):
    return sorted([(x, i) for i, x in enumerate(xs)], key=lambda pair: (pair[0], "a"), reverse=True)


def by_list(xs: List[float]):
    return sorted(xs, key=lambda v: [v, 1.0])


def by_sum(xs: List[float]):
    return sorted([[x] for x in xs], key=sum)  # the sum is an int or a float: of no numbers it is the int 0


def in_place(xs: List[float]):
    xs.sort(key=lambda v: v * 2, reverse=len(xs) % 2 == 0)
    return xs


def by_tensor(xs: List[Tensor]):
    return sorted(xs, key=lambda x: x.sum())


def by_item(xs: List[Tensor]):
    return sorted(xs, key=lambda x: x.sum().item(), reverse=True)


def _numbers(count: int) -> List[float]:
    others = (math.nan, -0.0, 0.0, math.inf, 2.5)
    return [random.choice(others) if random.random() < 0.5 else float(random.randrange(count)) for _ in range(count)]


@pytest.mark.parametrize("program", [by_number, downwards, by_field, by_tuple, by_list, by_sum, in_place])
def test_the_order_of_numbers_is_pythons(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    for count in (0, 1, 2, 3, 8, 63, 64, 65, 200) * 5:
        xs = _numbers(count)
        assert repr(compiled(list(xs))) == repr(program(list(xs)))


@pytest.mark.parametrize("program", [by_tensor, by_item])
def test_the_order_of_tensors_is_pythons(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    for count in (0, 2, 3, 20):
        xs = [torch.tensor([each]) for each in _numbers(count)]
        assert [id(x) for x in compiled(xs)] == [id(x) for x in program(xs)]


def test_the_order_is_the_same_after_loading() -> None:
    archive = io.BytesIO()
    rekindle.save(rekindle.script(by_tuple), archive)
    archive.seek(0)
    loaded: Any = rekindle.load(archive)
    xs = _numbers(70)
    assert repr(loaded(xs)) == repr(by_tuple(xs))
