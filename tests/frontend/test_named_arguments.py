"""The first argument of PyTorch's functions by the name that Python has for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import SchemaError, TypeMismatchError
from tests.support.messages import message_of

X = torch.linspace(-2.0, 2.0, 12).reshape(3, 4)


def ceil(x: Tensor) -> Tensor:
    return torch.ceil(input=x)


def total(x: Tensor) -> Tensor:
    return torch.sum(input=x, dim=1, keepdim=True) + torch.sum(dim=0, input=x)


def chosen(x: Tensor) -> Tensor:
    return torch.where(condition=x > 0, input=x, other=torch.clamp(input=x, min=-1.0))


def largest(x: Tensor) -> Tensor:
    values, _ = torch.topk(input=x, k=2)
    return torch.matmul(input=values, other=values.t())


def device() -> str:
    return torch.device(type="cpu").type


@pytest.mark.parametrize("function", [ceil, total, chosen, largest])
def test_input(function: Callable[..., Any]) -> None:
    torch.testing.assert_close(rekindle.script(function)(X), function(X))


def test_the_type_of_a_device() -> None:
    assert rekindle.script(device)() == device()


def test_methods_have_no_such_argument() -> None:
    def method(x: Tensor) -> Tensor:
        return x.ceil(input=x)

    assert "it has no argument 'input'" in message_of(SchemaError, lambda: rekindle.script(method))


def sum_twice(x: Tensor) -> Tensor:
    return torch.sum(x, dim=0, **{"dim": 1})  # type: ignore[call-overload, no-any-return]  # noqa: PLE1132


def test_an_argument_is_given_once() -> None:
    text = message_of(TypeMismatchError, lambda: rekindle.script(sum_twice))
    assert "the keyword argument 'dim' is given twice" in text
