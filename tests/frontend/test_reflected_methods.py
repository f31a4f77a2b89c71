"""Operators on objects whose left operand lacks the method, and whose right one has the reflected method."""

from __future__ import annotations

from typing import List, Tuple

import pytest

import rekindle
from rekindle.errors import UndefinedNameError
from tests.support.calls import assert_calls_agree


class Ordered:
    def __init__(self, n: int):
        self.n = n

    def __lt__(self, other: Ordered) -> bool:
        return self.n < other.n

    def __ge__(self, other: Ordered) -> bool:
        return self.n >= other.n


class Plain:
    def __init__(self, n: int):
        self.n = n


class Compared:
    def __init__(self, n: int):
        self.n = n

    def __eq__(self, other: Plain) -> bool:  # type: ignore[override]
        return self.n == other.n

    def __rsub__(self, other: Plain) -> int:
        return other.n - self.n

    def __ge__(self, other: Plain) -> bool:
        return self.n >= other.n


class Added:
    def __init__(self, n: int):
        self.n = n

    def __radd__(self, other: Added) -> int:
        return self.n


def of_one_class(a: int, b: int) -> Tuple[bool, bool, int, int, List[int]]:
    x, y = Ordered(a), Ordered(b)
    return x > y, x <= y, max(x, y).n, min(x, y).n, [each.n for each in sorted([x, y])]


def of_two_classes(a: int, b: int) -> Tuple[bool, bool, int, bool, bool]:
    x, y = Plain(a), Compared(b)
    return x == y, x != y, x - y, x <= y, y != x


def added(a: int) -> int:
    return Added(a) + Added(a)


def test_comparisons_of_objects_of_one_class() -> None:
    assert_calls_agree(of_one_class, (1, 2), (2, 1), (2, 2))


def test_operators_on_objects_of_two_classes() -> None:
    assert_calls_agree(of_two_classes, (1, 2), (2, 1), (2, 2))


def test_arithmetic_on_objects_of_one_class_is_not_reflected() -> None:
    with pytest.raises(TypeError):
        added(1)
    with pytest.raises(UndefinedNameError) as caught:
        rekindle.script(added)
    assert str(caught.value).startswith("'Added' has no attribute or method '__add__'\n")
