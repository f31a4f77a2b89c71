"""Calls of itertools, collections and str.format give what Python gives, and are rejected where they cannot."""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import CompileError
from tests.support.calls import assert_calls_agree


def counts(n: int):
    both = Counter({"a": 2}, a=n, b=1)
    named = Counter(a=n)
    named["b"] += 1
    return both["a"], both["b"], Counter(["a"], a=3)["a"], named["a"], named["b"], named["z"]


def default_values(n: int):
    numbers = defaultdict(int, {"a": 1.5})
    floats = defaultdict(float, {"b": 2.5}, c=1.0)
    lists = defaultdict(list, {"a": [1]})
    fives = defaultdict(lambda: 5, {"a": 1})
    lists["q"].append(n)
    numbers["z"] += n
    return numbers["a"], numbers["b"], numbers["z"], floats["b"], floats["d"], lists["q"], fives["a"], fives["k"]


def sliced(start: int, stop: int, step: int):
    return list(itertools.islice(range(7), start, stop, step)), list(itertools.islice([1, 2, 3], start, None))


def first_items(n: int):
    return list(itertools.islice(range(5), n))


def compressed(xs: list[int], chosen: list[bool]):
    return list(itertools.compress(selectors=chosen, data=xs)), list(itertools.compress(xs, chosen))


def counted(start: float, step: float):
    found = [x for _, x in zip(range(10), itertools.count(start, step))]
    return found, list(itertools.islice(itertools.count(start, step), 2, 9, 3))


def formatted(x: Tensor):
    return (
        "{1!r} {0!r}".format("s", x.shape),
        "{!r} {!r} {:>{}}".format(x.shape, "t", "u", 3),
        "{:>{}} {!r}".format("u", 3, x.shape),
    )


def first_of_endless(xs: list[int]):
    pairs = next(zip(itertools.count(), itertools.repeat(3))), next(enumerate(itertools.count(4), 5))
    return pairs, next(itertools.count(0.5)), next(itertools.cycle(xs), 7), next(itertools.cycle(xs))


def compared(n: int):
    ordered, counter, default = OrderedDict(a=1, c=n), Counter(a=1, c=n, e=0), defaultdict(int, a=1, c=n)
    plain = {"c": 3, "a": 1}
    literals = ordered == {"c": 3, "a": 1}, {"c": 3, "a": 1} == ordered, counter == {"c": 3, "a": 1}, counter == {}
    variables = ordered == plain, plain != ordered, counter == plain, default == plain, ordered == default
    same_class = ordered == OrderedDict(c=n, a=1), counter == Counter(a=1, c=3), default == defaultdict(int, c=3, a=1)
    return literals, variables, same_class


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (counts, [(3,), (0,)]),
        (default_values, [(3,)]),
        (sliced, [(0, 5, 2), (1, 0, 1), (-1, 2, 1), (1, -2, 1), (1, 2, 0), (9, 12, 1)]),
        (first_items, [(2,), (0,), (9,), (-1,)]),
        (compressed, [([5, 6, 7], [True, False, True]), ([], [True])]),
        (first_of_endless, [([1, 2],), ([],)]),
        (compared, [(3,), (4,)]),
        (formatted, [(torch.ones(2),)]),
        (counted, [(0.1, 0.1), (0.0, -0.7)]),
    ],
)
def test_as_python(program: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    assert_calls_agree(program, *calls)


def default_of_another_type() -> Any:
    return defaultdict(str, {"a": 1})["b"]


def count_in_two_loops() -> Any:
    numbers = itertools.count()
    first = [i for _, i in zip([1, 2], numbers)]
    return first, [i for _, i in zip([1, 2], numbers)]


def cycle_in_two_loops() -> Any:
    numbers = itertools.cycle([1, 2, 3])
    first = [i for _, i in zip([1, 2], numbers)]
    return first, [i for _, i in zip([1, 2], numbers)]


def no_selectors(xs: list[int]) -> Any:
    return list(itertools.compress(data=xs))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (default_of_another_type, "the items of this defaultdict are int, and its default values str"),
        (count_in_two_loops, "'numbers' is an iterator"),
        (cycle_in_two_loops, "'numbers' is an iterator"),
        (no_selectors, "itertools.compress needs an argument for 'selectors'"),
    ],
)
def test_what_is_refused(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.script(program)
    assert message in str(caught.value)
