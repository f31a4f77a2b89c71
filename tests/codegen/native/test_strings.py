"""Loops over the characters of strings become machine code that agrees with Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.codegen.native.support import assert_same_outcome, compiled, left_to_the_plan, outcome


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            cost = corner if a[i] == b[j] else corner + 1
            corner = row[j + 1]
            row[j + 1] = min(cost, min(row[j] + 1, corner + 1))
    return row[len(b)]


def number_in(text: str) -> int:
    """Its digits, a sign if there is one."""
    value, negative = 0, False
    for c in text:
        if c == "-":
            negative = True
        elif c.isdigit():
            value = 10 * value + ord(c) - ord("0")
    return -value if negative else value


def largest(text: str) -> str:
    best = text[0]
    for c in text:
        if c > best:
            best = c
    return best


def rotated(text: str, by: int) -> str:
    last = text
    for c in text:
        last = chr(ord(c) + by)
    return last


def at(text: str, index: int, times: int) -> str:
    found = text
    for _ in range(times):
        found = text[index]
    return found


def matches(text: str, other: str, times: int) -> int:
    count = 0
    for i in range(times):
        if text == other or text == "long" or text != "x" or len(text) == i:
            count += 1
    return count


def classes(text: str) -> int:
    found = 0
    for c in text:
        found = 8 * found + (
            int(c.isalpha()) + 2 * int(c.isupper()) + 3 * int(c.islower()) + int(c.isalnum()) + 5 * int(c.isspace())
        )
        found = found % 1000003
    return found


TEXTS = ["", "a", "kitten", "sitting", "-12a3", "Grüße, 世界 \U0001f600", "\ud800x", "long", "x", "A b\tC\x1f9"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("function", [number_in, largest, classes])
def test_one_string(function: Any, text: str) -> None:
    both = compiled(function)
    assert len(both.regions) == 1
    assert_same_outcome(outcome(both.native, (text,)), outcome(both.plan, (text,)))


@pytest.mark.parametrize("a", TEXTS)
def test_two_strings(a: str) -> None:
    both, equality = compiled(edit_distance), compiled(matches)
    for b in TEXTS:
        assert_same_outcome(outcome(both.native, (a, b)), outcome(both.plan, (a, b)))
        assert_same_outcome(outcome(equality.native, (a, b, 3)), outcome(equality.plan, (a, b, 3)))
    assert both.native("kitten", "sitting") == 3


@pytest.mark.parametrize("text", TEXTS)
def test_places(text: str) -> None:
    both = compiled(at)
    for index in (-8, -7, -2, -1, 0, 1, 5, 6):
        for times in (0, 2):
            assert_same_outcome(outcome(both.native, (text, index, times)), outcome(both.plan, (text, index, times)))


def test_code_points() -> None:
    both = compiled(rotated)
    for text in TEXTS:
        for by in (-200, 0, 1, 0x10FFFF):
            assert_same_outcome(outcome(both.native, (text, by)), outcome(both.plan, (text, by)))
    assert both.native("HAL", 1) == "M"


def test_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not the plan that answers; for classes of characters beyond ASCII it is."""
    left = left_to_the_plan(monkeypatch)
    assert compiled(number_in).native("-12") == -12
    assert compiled(edit_distance).native("kitten", "sitting") == 3
    assert compiled(at).native("text", -1, 1) == "t"
    assert left == []
    assert outcome(compiled(number_in).native, ("\u06632",)) == outcome(compiled(number_in).plan, ("\u06632",))
    assert left == [("\u06632",)]


@settings(max_examples=50)
@given(st.text(max_size=12), st.text(max_size=12))
def test_any_strings(a: str, b: str) -> None:
    both = compiled(edit_distance)
    assert both.native(a, b) == edit_distance(a, b)
