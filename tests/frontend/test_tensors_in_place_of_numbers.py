"""A Tensor that may be None, and Tensors where Python's builtins and dicts want numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Dict

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import CompileError


def last_row(x: Tensor):
    last = None
    for row in x:
        last = row
    return math.sqrt(last), math.floor(last), math.isinf(last), math.pow(last, 2), math.hypot(2.0, last)


def test_functions_of_math_return_numbers_for_a_tensor_that_may_be_none() -> None:
    compiled = rekindle.script(last_row)
    for values in ([1.0, 6.25], [3.0]):
        assert repr(compiled(torch.tensor(values))) == repr(last_row(torch.tensor(values)))
    with pytest.raises(TypeError) as caught:
        compiled(torch.zeros(0))
    assert str(caught.value).partition("\n")[0] == "must be real number, not NoneType"


def rounded(x: Tensor):
    last = None
    for row in x:
        last = row
    return round(last)


def truncated(x: Tensor):
    last = None
    for row in x:
        last = row
    return math.trunc(last)


def quotient(x: Tensor):
    return divmod(x, 2)


def remainder(x: Tensor):
    return divmod(7.5, x)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (rounded, "type Tensor doesn't define __round__ method"),
        (truncated, "type Tensor doesn't define __trunc__ method"),
        (quotient, "unsupported operand type(s) for divmod(): 'Tensor' and 'int'"),
        (remainder, "unsupported operand type(s) for divmod(): 'float' and 'Tensor'"),
    ],
)
def test_what_python_refuses_of_a_tensor_is_refused(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        program(torch.tensor([1]) if program in (rounded, truncated) else torch.tensor(1))
    assert str(raised.value) == message
    with pytest.raises(CompileError) as caught:
        rekindle.script(program)
    assert caught.value.message == message


def looked_up(x: Tensor, names: Dict[int, str]):
    return names[x.argmax()]


def looked_up_or_none(x: Tensor, names: Dict[int, str]):
    return names.get(x.argmax())


def contained(x: Tensor, names: Dict[int, str]):
    return x.argmax() in names


def assigned(x: Tensor, names: Dict[int, str]):
    names[x.argmax()] = "best"


def in_a_set(x: Tensor, names: Dict[int, str]):
    return x.argmax() in {0, 1}


def popped(x: Tensor, names: Dict[int, str]):
    return names.pop(x.argmax())


@pytest.mark.parametrize("program", [looked_up, looked_up_or_none, contained, assigned, in_a_set, popped])
def test_a_tensor_is_no_key(program: Callable[..., Any]) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.script(program)
    assert "expected int, got Tensor: Python looks up a Tensor by identity; write x.item()" in caught.value.message
