"""Ranges beside loops: ``reversed``, ``in``, subscripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rekindle

_NUMBERS = (-9, -2, -1, 0, 1, 2, 5, 12)


def reversed_ranges(n: int):
    digits = 0
    kept = range(1, n)
    for i in reversed(kept):
        digits = digits * 3 + i
    lists = [list(reversed(range(n))), list(reversed(range(-3, n, 3))), [i for i in reversed(range(n, -9, -2))]]
    return digits, lists, [(i, k) for i, k in zip(reversed(range(n)), range(n))], list(reversed("abc"))


def members(n: int):
    kept = range(-5, 9, 3)
    found = [k in range(n, 6, 2) for k in range(-8, 8)] + [k in range(n, -6, -3) for k in range(-8, 8)]
    if n in kept and n not in range(2):
        return found, 1
    return found, n in kept


def item(n: int):
    return range(3, 20, 4)[n]


def last(n: int):
    return range(n)[-1]


def first_of_pairs(n: int):
    return zip([n], [n])[0]


@pytest.mark.parametrize("function", [reversed_ranges, members])
def test_ranges_equal_those_of_python(function: Callable[[int], Any]) -> None:
    compiled = rekindle.script(function)
    for n in _NUMBERS:
        assert compiled(n) == function(n)


@pytest.mark.parametrize("function", [item, last])
def test_subscripts_of_ranges_are_checked(function: Callable[[int], int]) -> None:
    compiled = rekindle.script(function)
    for n in _NUMBERS:
        try:
            expected = function(n)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                compiled(n)
        else:
            assert compiled(n) == expected


def test_iterators_cannot_be_indexed() -> None:
    with pytest.raises(rekindle.errors.TypeMismatchError) as caught:
        rekindle.script(first_of_pairs)
    assert str(caught.value).partition("\n")[0] == "zip or enumerate cannot be indexed"
