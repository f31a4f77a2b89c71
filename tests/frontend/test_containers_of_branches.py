"""Lists and dicts that branches, loops and ``try`` blocks begin: uses after them determine the type of their
elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import TypeMismatchError
from tests.support.calls import assert_calls_agree


def by_either_branch(c: bool, x: Tensor):
    if c:
        y = [0]
    else:
        y = [2, 3]
    y.append(x.sum().item())
    return y


def by_three_branches(c: bool, x: Tensor):
    if c:
        y = [1, 2]
    elif x.size(0) > 1:
        y = [3]
    else:
        y = []
    y[0] = 0.5
    return y


def dict_of_a_branch(c: bool, x: Tensor):
    if c:
        d = {"n": 0}
    else:
        d = {}
    d["loss"] = x.sum().item()
    return d


def empty_in_a_branch(c: bool, x: Tensor):
    if c:
        sizes = []
    else:
        sizes = [x.size(0)]
        sizes.append(3)
    total = 0
    for size in sizes:
        total += size
    return total, sizes


def names_of_one_list(c: bool, x: Tensor):
    if c:
        y = [1]
        w = y
    else:
        w = [2]
        y = [3]
    w.append(0.5)
    y.append(4)
    return w, y


def starred_in_a_branch(c: bool, x: Tensor):
    if c:
        _, *y = [0, 1]
    else:
        y = [3]
    z = y
    z.append(0.5)
    return z


def under_both_conditions(c: bool, x: Tensor):
    if c:
        y = [1]
    if not c:
        y = [2]
    y.append(x.sum().item())
    return y


def by_a_loop(c: bool, x: Tensor):
    for i in range(2):
        y = [i]
        if c:
            y.append(7)
    y.append(x.sum().item())
    return y


def by_an_iteration(c: bool, x: Tensor):
    for i in range(3):
        if i == 0:
            y = [1]
        y.append(x.sum().item())
    return y


def by_a_try(c: bool, x: Tensor):
    try:
        y = [1 // int(c)]
    except ZeroDivisionError:
        y = [2, 3]
    y.append(x.sum().item())
    return y


def chosen(c: bool, x: Tensor):
    y = [2, 3] if c else [4]
    y.append(x.sum().item())
    return y


def chosen_empty(c: bool, x: Tensor):
    ints = [] if c else [1]
    ints.append(2)
    sizes = list(x.shape) if c else []
    named = {} if c else {"a": 1}
    named["b"] = 2
    return ints, sizes, named


def chosen_numbers(c: bool, x: Tensor):
    return [float(x.sum())] if c else [0]


def chosen_numbers_of_a_tensor(c: bool, x: Tensor):
    return [1.0] if c else x.tolist()


def chosen_class(c: bool, x: Tensor):
    return sorted({1, 2} if c else set())


PROGRAMS: tuple[Callable[..., Any], ...] = (
    by_either_branch,
    by_three_branches,
    dict_of_a_branch,
    empty_in_a_branch,
    names_of_one_list,
    starred_in_a_branch,
    under_both_conditions,
    by_a_loop,
    by_an_iteration,
    by_a_try,
    chosen,
    chosen_empty,
    chosen_numbers,
    chosen_numbers_of_a_tensor,
    chosen_class,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_eager(program: Callable[..., Any]) -> None:
    inputs = torch.tensor([1.5, 2.25]), torch.tensor([1, 2**62 + 1])
    assert_calls_agree(program, *((c, x) for c in (True, False) for x in inputs))


def set_or_dict(c: bool):
    return {} if c else {1, 2}


def test_a_dict_is_not_made_a_set() -> None:
    with pytest.raises(TypeMismatchError, match="the branches of this expression have different types"):
        rekindle.script(set_or_dict)(True)
