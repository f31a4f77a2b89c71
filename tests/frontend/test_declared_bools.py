"""Variables and results that are declared to be bools, and get a bool or a Tensor."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle


def variable(x: Tensor):
    found: bool = False
    for i in range(2):
        found = found or (x[i] >= 1.0)
    return found


def result(x: Tensor) -> bool:
    found = False
    for i in range(2):
        found = found or (x[i] >= 1.0)
    return found


def condition(x: Tensor) -> bool:
    return x.dim() == 1 and x.sum() > 1


def undeclared(x: Tensor):
    found = False
    for i in range(2):
        found = found or (x[i] >= 1.0)
    return found


@pytest.mark.parametrize("program", [variable, result, condition])
@pytest.mark.parametrize("values", [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
def test_the_truth_is_what_is_declared(program: Any, values: list[float]) -> None:
    x = torch.tensor(values)
    ours, theirs = rekindle.script(program)(x), torch.jit.script(program)(x)
    assert ours is theirs is bool(program(x))


def test_what_declares_nothing_is_pythons() -> None:
    x = torch.tensor([0.0, 2.0])
    torch.testing.assert_close(rekindle.script(undeclared)(x), undeclared(x))


def test_a_tensor_with_elements_has_no_truth() -> None:
    def several(x: Tensor, asked: bool) -> bool:
        return asked and x > 1

    ours = rekindle.script(several)
    assert ours(torch.ones(2), False) is False
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        ours(torch.ones(2), True)
