"""Builtins that iterate over a text, which is its characters, or are given a number, which is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, List, Union

import pytest
import torch

import rekindle
from rekindle.errors import TypeMismatchError


def orders(s: str):
    return sorted(s), sorted(s, reverse=True), sorted(set(s)), [sorted(word) for word in s.split()]


def extremes(s: str):
    return max(s + "a"), min(s + "b"), max(s, default="-"), min(s + "c", key=lambda c: -ord(c)), max(s, "x")


def joined(s: str):
    return ",".join(s), s.join("ab"), "".join(sorted(s)), ", ".join(word for word in s.split())


@pytest.mark.parametrize("program", [orders, extremes, joined])
def test_texts(program: Callable[[str], Any]) -> None:
    compiled = rekindle.script(program)
    for text in ("hello there", "", "a"):
        assert compiled(text) == program(text)


def sum_of_an_int(n: int):
    return sum(n)


def largest_of_a_float(x: float):
    return max(x)


def any_of_a_bool(b: bool):
    return any(b)


def sorted_of_an_int(n: int):
    return sorted(n)


def length_of_an_int(n: int):
    return len(n)


def sorted_of_two(n: int):
    return sorted(n, n)


def joined_number(n: int):
    return ",".join(n)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (sum_of_an_int, "'int' object is not iterable"),
        (largest_of_a_float, "'float' object is not iterable"),
        (any_of_a_bool, "'bool' object is not iterable"),
        (sorted_of_an_int, "'int' object is not iterable"),
        (length_of_an_int, "object of type 'int' has no len()"),
        (sorted_of_two, "sorted takes one argument, got 2"),
        (joined_number, "'int' object is not iterable"),
    ],
)
def test_numbers(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError):
        program(True)
    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(program)
    assert str(caught.value).splitlines()[0] == message


def length_of_any(x: Any):
    return len(x)


def length_of_a_union(x: Union[List[int], str]):
    return len(x)


def length_of_some_list(x: Any):
    return len(x) if isinstance(x, list) else 0


def length_of_a_device(x: torch.device):
    return len(x)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (length_of_any, "the length of a value of type Any depends on its class"),
        (length_of_a_union, "the length of a value of type Union[List[int], str] depends on its class"),
        (length_of_some_list, "the length of a value of type list depends on its class"),
        (length_of_a_device, "object of type 'torch.device' has no len()"),
    ],
)
def test_lengths_of_what_is_not_a_container(program: Callable[..., Any], message: str) -> None:
    """The operator would return 1: it accepts a value as a list of one item."""
    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(program)
    assert str(caught.value).splitlines()[0] == message


def length_of_a_refined_value(x: Union[List[int], str, int]):
    return len(x) if isinstance(x, str) else len(x) + 10 if isinstance(x, list) else x


def test_lengths_of_refined_values() -> None:
    compiled = rekindle.script(length_of_a_refined_value)
    for value in ("abc", [1, 2], 7):
        assert compiled(value) == length_of_a_refined_value(value)
