"""Local functions and lambdas that are passed to functions: they read what Python's read there."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
import torch

import rekindle
from rekindle.errors import UnsupportedError
from tests.support.messages import message_of


def apply(f, v):
    return f(v)


def reassigned(n: int):
    k = 2
    f = lambda v: v * k  # noqa: E731
    first = apply(f, n)
    k = 3
    return first, apply(f, n), f(n)


def reassigned_in_loop(n: int):
    k = 1
    f = lambda v: v * k  # noqa: E731
    found = []
    for i in range(3):
        k = i
        found.append(apply(f, n))
    return found


def of_containers(n: int):
    table, items = {"k": 1}, [1]
    f = lambda v: v + table["k"] + len(items)  # noqa: E731
    first = apply(f, n)
    table["k"] = 10
    items.append(2)
    second = apply(f, n)
    table = {"k": 100}
    return first, second, apply(f, n)


def as_keys(n: int):
    k = 5

    def f(v: int):
        return -v * k

    g = f
    k = n
    return sorted([3, 1, 2], key=f), list(map(lambda v: v * k, [1, 2])), g(n), apply(g, n), max([1, 2], key=g)


def method_of_a_deque(n: int):
    last = collections.deque([0], maxlen=2)
    for i in range(4):
        apply(last.append, i * n)
    return list(last)


@pytest.mark.parametrize("program", [method_of_a_deque, reassigned, reassigned_in_loop, of_containers, as_keys])
def test_what_they_read_when_they_are_called(program: Callable[..., Any]) -> None:
    assert repr(rekindle.script(program)(3)) == repr(program(3))


def counts(n: int):
    total = 0

    def add(v: int):
        nonlocal total
        total += v
        return total

    return apply(add, n), total


def test_what_assigns_nonlocal_variables_is_not_passed_on() -> None:
    """The function that it is passed to would assign a copy of the variable."""
    assert (
        message_of(UnsupportedError, lambda: rekindle.script(counts))
        == """\
the function 'add' assigns the nonlocal variable 'total', and cannot be passed to a function: that would assign a \
variable of its own
  File "FILE", line N
            total += v
            return total

        return apply(add, n), total
               ^^^^^
Hint: return the new value, and assign it where the function is called"""
    )


def called_in_place(n: int):
    count = 0

    def f(v: int):
        nonlocal count
        count += 1
        return v + count

    found = [f(i) for i in range(n)], list(map(f, [1, 2])), sum(f(i) for i in range(2)), f(f(1))
    return found, any(f(i) > 100 for i in range(3)), count


def test_calls_by_their_name_assign_nonlocal_variables() -> None:
    assert rekindle.script(called_in_place)(3) == called_in_place(3)


def narrowed(x):
    v = x[0].item()
    if isinstance(v, int):
        return int(v), isinstance(v, bool), v, v + 1, -v, [5, 6, 7, 8][v], v * x
    if isinstance(v, float):
        return 0, False, v, v + 1, -v, 0, v * x
    return 1, False, v, v + 1, -v, 0, v * x


@pytest.mark.parametrize("value", [3, 2.5, True, False, 1j])
def test_a_bool_is_an_int_to_isinstance_and_stays_a_bool(value: complex) -> None:
    x = torch.tensor([value])
    assert repr(rekindle.script(narrowed)(x)) == repr(narrowed(x))
