"""Each operand is computed once, and random numbers are drawn in the program's order."""

from __future__ import annotations

from typing import List

import pytest
import torch
from torch import Tensor

import rekindle
from tests.support.calls import assert_calls_agree


def popped_twice(values: list[int]) -> bool:
    return values.pop() < values.pop() < values.pop()


def popped_in_turn(values: list[int]) -> bool:
    return values.pop() < values.pop() < values.pop() <= values.pop()


def second_draw(x: Tensor) -> Tensor:
    torch.rand_like(x)
    return torch.rand_like(x)


def added_to(table: dict[str, int], numbers: list[int], n: int) -> int:
    numbers[0] += numbers.pop()
    table["a"] += table["b"] // n
    return table["a"]


def large(n: int) -> int:
    return n + (1 << 100000)


def never_computed(n: int) -> float:
    if n > 10:
        return 9**9**9**9
    return 1.0


def test_the_middle_of_a_chained_comparison_is_computed_once() -> None:
    for function in (popped_twice, popped_in_turn):
        for values in ([4, 3, 2, 1], [1, 2, 3, 4], [3, 4, 2, 1]):
            ours, theirs = list(values), list(values)
            assert rekindle.script(function)(ours) == function(theirs)
            assert ours == theirs


@pytest.mark.parametrize(
    ("table", "numbers", "n"),
    [
        ({"a": 1, "b": 4}, [1, 2], 2),
        ({"a": 1, "b": 4}, [1, 2], 0),
        ({}, [1, 2], 0),
        ({"a": 1}, [1, 2], 1),
        ({"a": 1, "b": 4}, [], 1),
        ({"a": 1, "b": 4}, [3], 1),
    ],
)
def test_an_item_is_read_before_what_is_added_to_it(table: dict[str, int], numbers: list[int], n: int) -> None:
    assert_calls_agree(added_to, (table, numbers, n))


def test_a_draw_that_nobody_uses_moves_the_generator_on() -> None:
    x = torch.ones(3)
    torch.manual_seed(5)
    expected = second_draw(x)
    torch.manual_seed(5)
    assert torch.equal(rekindle.script(second_draw)(x), expected)


def test_large_constants_are_left_to_the_program() -> None:
    assert rekindle.script(large)(1) == large(1)
    assert rekindle.script(never_computed)(1) == 1.0


def noted(log: List[int], value: int) -> int:
    log.append(value)
    return value


def defaults(n: int):
    log: List[int] = []
    first = next((noted(log, each) for each in [noted(log, 1), noted(log, 2)] if each > 0), noted(log, 9))
    largest = max((noted(log, each) for each in [noted(log, 3), 4]), default=noted(log, 8))
    taken = next(iter([noted(log, 5)]), noted(log, 6))
    of_list = max([noted(log, n)], default=noted(log, n + 1))
    of_pairs = min(zip([n], [noted(log, 7)]), default=(noted(log, 2), 1))
    key = next((key for key, item in {n: 3}.items() if noted(log, item) > 5), noted(log, 4))
    of_set = max({noted(log, n)}, default=noted(log, 4))
    return log, first, largest, taken, of_list, of_pairs, key, of_set


def test_a_default_is_computed_after_the_iterable_and_before_the_elements_of_a_generator() -> None:
    assert_calls_agree(defaults, (3,), (0,))


def start_of_a_count(n: int):
    xs = [3, 4, 5, 6, n]
    return [(i, x) for i, x in enumerate([xs.pop()], start=xs.pop())], [x for _, x in enumerate(xs[:], xs.pop())]


def test_the_start_of_enumerate_is_computed_after_the_iterable() -> None:
    assert_calls_agree(start_of_a_count, (7,))


def indexed(x: Tensor):
    xs = [0, 1, 1, 0]
    item = x[..., xs.pop(), xs.pop()]
    row = x[xs.pop() :, xs.pop()]
    ys = [0, 1]
    x[ys.pop() :, ys.pop()] = 9
    return item, row, x


def test_the_indices_of_a_tensor_are_computed_from_left_to_right() -> None:
    assert_calls_agree(indexed, (torch.arange(12).reshape(3, 2, 2),))


class Counted:
    def __init__(self) -> None:
        self.reads = 0

    @property
    def number(self) -> int:
        self.reads += 1
        return self.reads


def read_into_a_dict(n: int):
    counted = Counted()
    table = {n: counted.number, 7: counted.number}
    return table[n], table[7], counted.reads


def test_a_property_in_a_dict_is_computed_once() -> None:
    assert_calls_agree(read_into_a_dict, (3,))
