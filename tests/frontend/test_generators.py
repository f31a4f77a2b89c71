"""Generators compute their elements one by one, where what goes over them asks for the next."""

from __future__ import annotations

import itertools
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import UnsupportedError
from tests.frontend import lazily
from tests.support.calls import assert_calls_agree
from tests.support.golden import GoldenTexts

LISTS: tuple[list[int], ...] = ([1, 2, 3, 0], [], [0], [1, 7, 3], [3, 1, 7], [2, 2, 2], [1, 1])

PROGRAMS = {
    name: item
    for name, item in vars(lazily).items()
    if callable(item) and getattr(item, "__module__", "") == lazily.__name__ and name != "computed"
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_eager(name: str) -> None:
    assert_calls_agree(PROGRAMS[name], *((numbers, []) for numbers in LISTS))


@pytest.mark.parametrize("name", ["first_that_fits", "interleaved"])
def test_the_graph(name: str, golden: GoldenTexts) -> None:
    text = str(rekindle.script(PROGRAMS[name]).graph)
    golden(f"frontend/generators/{name}", "\n".join(line.partition(" # ")[0] for line in text.splitlines()))


class Searches(nn.Module):
    """Goes over its layers in generators."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        self.calls: int = 0

    def called(self, layer: int, x: Tensor) -> Tensor:
        self.calls += 1
        return x * layer

    def forward(self, x: Tensor) -> Tensor:
        for y in (layer(x) for layer in self.layers):
            x = x + y
        if any(self.called(i, x).sum().item() != 0 for i in range(5)):
            x = x * next(self.called(i, x) for i in range(1, 5) if i > 1)
        return x


def test_modules_and_gradients() -> None:
    torch.manual_seed(0)
    module = Searches()
    compiled = rekindle.script(module)
    for _ in range(3):
        found, expected = (torch.ones(2, requires_grad=True) for _ in range(2))
        before = module.calls
        module(expected).sum().backward()
        count, module.calls = module.calls - before, before
        compiled(found).sum().backward()
        assert found.grad is not None
        assert expected.grad is not None
        torch.testing.assert_close(found.grad, expected.grad)
        assert count == 3
    assert compiled.calls == 9


def test_generators_that_read_what_is_not_assigned() -> None:
    def reads(c: bool, xs: list[int]):
        if c:
            y = 1
        return any(x == y for x in xs)

    assert_calls_agree(reads, (True, [1]), (False, []), (False, [1]))


def chained_before_a_change(xs: list[int]):
    both = itertools.chain(xs, [9])
    xs.append(5)
    return list(both)


def accumulated_late(xs: list[int]):
    factor = 2
    sums = itertools.accumulate(xs, lambda a, b: a * b * factor, initial=1)
    factor = 3
    xs.append(4)
    return max(sums)


def taken_late(xs: list[int]):
    def asked(x: int):
        print(x)  # noqa: T201
        return x < 3

    before = itertools.takewhile(asked, xs)
    print("made")  # noqa: T201
    return sum(before)


def of_iterators(xs: list[int]):
    spread = itertools.chain(*(xs, xs))
    doubled = itertools.chain((2 * x for x in xs), xs)
    pairs = itertools.combinations(xs, 2)
    return list(spread), [x + 1 for x in doubled], [a * b for a, b in pairs]


def grouped(xs: list[int]):
    groups = itertools.groupby(xs)
    first = itertools.islice(xs, 2)
    padded = itertools.zip_longest(xs, [1], fillvalue=0)
    return {key: sum(group) for key, group in groups}, any(x > 1 for x in first), dict(padded)


def side_by_side(xs: list[int]):
    first, second = map(lambda x: x + 1, xs), zip(xs, xs)
    both, n = itertools.chain(xs, xs), len(xs)
    doubled, xs = (2 * x for x in xs), [n]
    xs.append(3)
    return list(first), list(second), list(both), list(doubled), xs


@pytest.mark.parametrize(
    "function", [chained_before_a_change, accumulated_late, taken_late, of_iterators, grouped, side_by_side]
)
def test_iterators_in_variables_compute_when_they_are_asked(function: Any) -> None:
    assert_calls_agree(function, ([1, 2, 2],), ([3, 3, 1],))


def consumed_twice(xs: list[int]):
    g = (v for v in xs)
    return sum(g) + sum(g)


def consumed_in_a_loop(xs: list[int]):
    pairs = enumerate(xs)
    total = 0
    for _ in range(2):
        for i, x in pairs:
            total += i * x
    return total


def iterator_consumed_twice(xs: list[int]):
    pairs = itertools.product(xs, repeat=2)
    total = 0
    for a, b in pairs:
        total += a * b
    return total + len(list(pairs))


def iterator_consumed_in_a_loop(xs: list[int]):
    both = chain(xs, [9])
    return [sum(both) for _ in range(2)]


def side_by_side_consumed_twice(xs: list[int]):
    plus, n = map(lambda x: x + 1, xs), 1
    return list(plus), list(plus), n


def computed_too_early(xs: list[int]):
    return [x + i for i, x in enumerate(lazily.computed(x, xs) for x in xs if x > 1)]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (consumed_twice, "'g' is a generator, which is used up by the first who goes over it"),
        (consumed_in_a_loop, "'pairs' is an iterator, which is used up by the first who goes over it"),
        (iterator_consumed_twice, "'pairs' is an iterator, which is used up by the first who goes over it"),
        (iterator_consumed_in_a_loop, "'both' is an iterator, which is used up by the first who goes over it"),
        (side_by_side_consumed_twice, "'plus' is a generator, which is used up by the first who goes over it"),
        (
            computed_too_early,
            "the elements of this generator do more than give values, and would be computed too early here",
        ),
    ],
)
def test_what_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedError) as refused:
        rekindle.script(function)
    assert str(refused.value).partition("\n")[0] == message
