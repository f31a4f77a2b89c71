"""Calls near Python's recursion limit: what is compiled at the first calls has room of its own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle

_ROOM = 40
"""The number of frames that are free for a call: no operator of the programs needs more."""


def at_depth(call: Callable[[], Any]) -> Any:
    """Return the result of ``call``, called with :data:`_ROOM` frames left."""
    return _below(sys.getrecursionlimit() - len(inspect.stack(0)) - _ROOM, call)


def _below(frames: int, call: Callable[[], Any]) -> Any:
    return call() if frames <= 0 else _below(frames - 1, call)


def fused(x: Tensor) -> Tensor:
    return (x.sigmoid() * 1.25 + x).tanh() - 0.75


def in_a_loop(x: Tensor) -> Tensor:
    total = x
    for _ in range(3):
        total = (total * x).sin() + total.cos()
    return total


def reduced(x: Tensor) -> Tensor:
    return torch.cat([x.softmax(0) * 1.5, x]).cumsum(0)


@pytest.mark.parametrize("program", [fused, in_a_loop, reduced])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_first_calls(program: Callable[[Tensor], Tensor], requires_grad: bool) -> None:
    x = torch.linspace(-1, 1, 6).requires_grad_(requires_grad)
    compiled = rekindle.script(program)
    expected = program(x)
    for _ in range(4):
        found = at_depth(lambda: compiled(x))
        torch.testing.assert_close(found, expected)
        if requires_grad:
            gradients = [at_depth(lambda y=y: torch.autograd.grad(y.sum(), x)[0]) for y in (found, program(x))]
            torch.testing.assert_close(*gradients)
