"""Ints at the edges of what machine code computes with: results, and errors, are Python's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, List, Tuple

import pytest

from tests.codegen.native.support import assert_same_outcome, compiled, left_to_the_plan, outcome

EDGES = sorted(
    {
        sign * (2**bits + near)
        for bits in (0, 1, 31, 32, 62, 63)
        for near in (-1, 0, 1)
        for sign in (1, -1)
        if abs(2**bits + near) <= 2**63
    }
    - {2**63}
)
"""Around 0, and around the powers of two at which words of 32 and 64 bits end. All have 64 bits."""


def divided(a: int, b: int, n: int) -> Tuple[int, int]:
    quotient = 0
    rest = 0
    for _ in range(n):
        quotient = a // b
        rest = a % b
    return quotient, rest


def divided_naturals(a: int, b: int, n: int) -> Tuple[int, int]:
    quotient = 0
    rest = 0
    x = a & 9223372036854775807
    y = b & 9223372036854775807
    for _ in range(n):
        quotient = x // y
        rest = x % y
    return quotient, rest


def divided_by_a_natural(a: int, b: int, n: int) -> Tuple[int, int]:
    quotient = 0
    rest = 0
    y = b & 9223372036854775807
    for _ in range(n):
        quotient = a // y
        rest = a % y
    return quotient, rest


def remainder_of_a_divisor(a: int, b: int, n: int) -> int:
    while b != n - n:
        a, b = b, a % b
    return a


def sums(a: int, b: int, n: int) -> Tuple[int, int, int]:
    x = 0
    y = 0
    z = 0
    for _ in range(n):
        x = a + b
        y = a - b
        z = a * b
    return x, y, z


def chosen_sum(a: int, b: int, n: int) -> int:
    x = 0
    for _ in range(n):
        if a > 0:
            x = a * 3 + 1
        else:
            x = b - a
    return x


def chosen_by_parity(a: int, b: int, n: int) -> int:
    x = a
    for _ in range(n):
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        if b < x:
            x -= b
    return x


def chosen_difference(a: int, b: int, n: int) -> int:
    x = 0
    for _ in range(n):
        if a != b:
            x = -a
        else:
            x = b + b + b
    return x


def chosen_by_a_flag(a: int, b: int, n: int) -> int:
    x = 0
    for _ in range(n):
        is_less = a < b
        if is_less:
            x = a + 1
        else:
            x = b * -7
        if is_less:
            x = x + a
    return x


PAIRS: list[Callable[..., Any]] = [
    divided,
    divided_naturals,
    divided_by_a_natural,
    remainder_of_a_divisor,
    sums,
    chosen_sum,
    chosen_by_parity,
    chosen_difference,
    chosen_by_a_flag,
]


@pytest.mark.parametrize("function", PAIRS, ids=[function.__name__ for function in PAIRS])
def test_pairs_of_edges(function):
    both = compiled(function)
    assert both.regions
    for arguments in itertools.product(EDGES, EDGES, (1,)):
        expected = outcome(function, arguments)
        assert_same_outcome(outcome(both.native, arguments), expected)
        assert_same_outcome(outcome(both.plan, arguments), expected)


def test_an_exit_is_taken_for_the_branch_that_runs(monkeypatch):
    both = compiled(chosen_sum)
    left = left_to_the_plan(monkeypatch)
    assert both.native(-1, 2**63 - 2, 1) == 2**63 - 1  # a * 3 + 1 is not computed
    assert both.native(5, -(2**63), 1) == 16  # nor is b - a
    assert left == []
    assert both.native(2**62, 0, 1) == 3 * 2**62 + 1
    assert both.native(-2, 2**63 - 1, 1) == 2**63 + 1
    assert len(left) == 2


# ----------------------------------------------------------------------------------------------------------- counters


def count_up(start: int, step: int, n: int) -> Tuple[int, int]:
    by_one = start
    by_step = start
    for _ in range(n):
        by_one += 1
        by_step += step
    return by_one, by_step


def count_pairs(n: int) -> Tuple[int, int]:
    up = 0
    down = 0
    for i in range(n):
        j = i
        while j > 0:
            up += 127
            down -= 1
            j -= 2
        if i % 3 == 0:
            up -= 100
    return up, down


def test_counters():
    both = compiled(count_up)
    for start, step, n in itertools.product(EDGES, (1, -1, 2**62, -(2**62), 0), (0, 1, 2, 3, 5)):
        assert_same_outcome(outcome(both.native, (start, step, n)), outcome(count_up, (start, step, n)))
    both = compiled(count_pairs)
    for n in (-1, 0, 1, 50):
        assert both.native(n) == count_pairs(n)


def elements(start: int, stop: int, step: int) -> List[int]:
    found: List[int] = []
    for i in range(start, stop, step):
        found.append(i)
        if len(found) == 4:
            break
    return found


def test_elements_of_ranges():
    both = compiled(elements)
    steps = (1, 2, -1, -3, 2**62, -(2**62), 2**63 - 1, -(2**63), 0)
    for arguments in itertools.product(EDGES, EDGES, steps):
        assert_same_outcome(outcome(both.native, arguments), outcome(elements, arguments))


# ------------------------------------------------------------------------------------------------------------- breaks


def first_divisor(n: int, limit: int) -> Tuple[int, bool, int]:
    is_prime = True
    d = 2
    rounds = 0
    while d * d <= n:
        rounds += 1
        if n % d == 0:
            is_prime = False
            break
        if rounds == limit:
            d = 0
        d += 1
    return d, is_prime, rounds


def divisors_in_lists(rows: List[List[int]], wanted: int) -> Tuple[int, int]:
    found = -1
    tested = 0
    for i in range(len(rows)):
        for j in range(len(rows[i])):
            tested += 1
            if wanted % rows[i][j] == 0:
                found = rows[i][j]
                break
        if found >= 0:
            break
    return found, tested


def test_breaks():
    both = compiled(first_divisor)
    for n in (*range(-2, 60), 2**31 - 1, 2**32 + 1, 46337 * 46337):
        assert_same_outcome(outcome(both.native, (n, -1)), outcome(first_divisor, (n, -1)))
    assert_same_outcome(outcome(both.native, (97, 3)), outcome(first_divisor, (97, 3)))
    both = compiled(divisors_in_lists)
    for wanted in (0, 1, 7, 12, 35, -35):
        for rows in ([], [[]], [[5, 3], [7]], [[9], [], [4, 2]], [[4, 0], [1]]):
            arguments = (rows, wanted)
            assert_same_outcome(outcome(both.native, arguments), outcome(divisors_in_lists, arguments))
