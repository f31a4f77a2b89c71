"""``0 < x < 5`` and the like of Tensors as values, ranges with the step 0, and what is evaluated before None is met."""

from __future__ import annotations

from typing import Any, List, Optional

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import TypeMismatchError
from tests.support.calls import assert_calls_agree


def between(x: Tensor, n: int):
    return 0 < x < 5


def between_variables(x: Tensor, n: int):
    return n < x < 5, 0 <= n < x <= 7, 0 < n < 5


def declared(x: Tensor, n: int) -> bool:
    return bool(0 < x < 5)


def negated(x: Tensor, n: int):
    return not 0 < x < 5


def decides(x: Tensor, n: int):
    return x.any() and n > 3, n > 1 and x.any(), n > 1 or x.any(), x > 1 and x < 5, x.any() or n, x > 0 and n


def as_a_condition(x: Tensor, n: int):
    if 0 < x < 5:
        return 1
    return 2 if n < x < 8 else 3


X = torch.tensor(3.0)
TENSORS = ((X, 2), (X * 0, 2), (X, 5), (X, 0), (X * 2, 1), (torch.tensor([4.0, 5.0]), 4), (torch.tensor([1.0, 9.0]), 9))


@pytest.mark.parametrize("function", [between, between_variables, declared, negated, decides, as_a_condition])
def test_comparisons(function: Any) -> None:
    assert_calls_agree(function, *TENSORS)


def test_gradients_flow_through_what_is_chosen() -> None:
    def chosen(x: Tensor):
        return (0 < x < 5) * x * x

    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    rekindle.script(chosen)(x).backward()
    chosen(y).backward()
    assert x.grad is not None
    assert y.grad is not None
    assert torch.equal(x.grad, y.grad)


def unused_variable(n: int):
    for i in range(1, 5, n):
        pass
    return 1


def unused_range(n: int):
    x = range(1, 5, n)
    return 3


def beside_another(n: int):
    for i, j in zip(range(0, 3, n), range(3)):
        pass
    return 0


def in_a_comprehension(n: int):
    return [0 for _ in range(0, 3, n)], len(range(0, 3, n))


def constant_step(n: int):
    if n > 0:
        for i in range(1, 5, 0):
            pass
    return n


@pytest.mark.parametrize("function", [unused_variable, unused_range, beside_another, in_a_comprehension, constant_step])
def test_ranges(function: Any) -> None:
    assert_calls_agree(function, (1,), (0,), (-1,), (2,))


def index_first(x: Optional[List[int]], n: int):
    def f() -> int:
        if n > 0:
            raise ValueError("f")
        return n

    return x[f()]


def bounds_first(x: Optional[Tensor], n: int):
    return x[10 // n : 3, [1, 2][n]]


def test_the_index_is_evaluated_before_none_is_met() -> None:
    assert_calls_agree(index_first, (None, 0), (None, 1), ([5], 0), ([5], 1))
    assert_calls_agree(bounds_first, (None, 0), (None, 1), (None, 5), (torch.ones(4, 3), 5), (torch.ones(4, 3), 1))


def test_a_tensor_is_not_rounded() -> None:
    def rounded(x: Tensor):
        return round(x)

    with pytest.raises(TypeError, match="type Tensor doesn't define __round__ method"):
        rounded(X)
    with pytest.raises(TypeMismatchError) as refused:
        rekindle.script(rounded)
    assert str(refused.value).partition("\n")[0] == "type Tensor doesn't define __round__ method"
