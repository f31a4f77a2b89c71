"""Comparisons with lists and dicts that are always empty: no use shows the type of their elements."""

from typing import Any, Dict, List, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from tests.frontend.outcomes import agrees


def with_a_variable(x: List[int]) -> Tuple[bool, bool, bool, bool]:
    e = []
    return e == x, x == e, e != x, x != e


def with_literals(x: List[int], d: Dict[str, int]) -> List[bool]:
    return [x == [], [] == x, {} == {}, {} != {}, x != [], d == {}, d != {}, {} == d]


def of_other_elements(x: List[Tuple[int, int]], d: Dict[str, int]) -> List[bool]:
    e = []
    f = {}
    return [e == x, f == d, d == f, f != d, x == [], e == []]


def appended_before(x: List[int], n: int) -> Tuple[bool, bool]:
    e = []
    before = e == x
    if n > 0:
        e.append(n)
    return before, e == x


def filled_in_a_loop(x: List[int]) -> List[bool]:
    found = []
    e = []
    for i in x:
        found.append(e == x)
        e.append(i)
    found.append(e == x)
    return found


CASES: List[Tuple[Any, Tuple[Tuple[Any, ...], ...]]] = [
    (with_a_variable, (([],), ([1],))),
    (with_literals, (([], {}), ([1], {"a": 1}))),
    (of_other_elements, (([], {}), ([(1, 2)], {"a": 1}))),
    (appended_before, (([], 0), ([], 3), ([3], 3), ([4], 3))),
    (filled_in_a_loop, (([],), ([1, 2],))),
]


@pytest.mark.parametrize(("function", "calls"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_comparisons(function: Any, calls: Tuple[Tuple[Any, ...], ...]) -> None:
    agrees(function, *calls)


def fill(xs: List[Tensor]) -> None:
    xs.append(torch.ones(()))


def filled_by_a_function(x: List[int]) -> bool:
    e = []
    fill(e)
    return e == x


def test_a_list_that_a_function_has_filled_is_not_taken_for_an_empty_one() -> None:
    agrees(filled_by_a_function, ([],))
    with pytest.raises(NotImplementedError) as caught:
        rekindle.script(filled_by_a_function)([2])
    assert str(caught.value).partition("\n")[0] == "a list or dict of tensors is compared with one of other elements"


def with_tensors(x: List[Tensor]) -> bool:
    e = []
    return e == x


def test_lists_of_tensors_compare_their_lengths_with_an_empty_one() -> None:
    agrees(with_tensors, ([],))
