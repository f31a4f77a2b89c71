"""Programs that make objects and keep them to themselves: gradients go through the attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.ir.verifier import verify


class State:
    """What a recurrence carries."""

    def __init__(self, h: Tensor, c: Tensor):
        self.h = h
        self.c = c
        self.steps = 0

    def step(self, x: Tensor) -> Tensor:
        self.c = self.c * x.sigmoid() + self.h.tanh()
        self.h = self.c.sin()
        self.steps += 1
        return self.h * self.steps


class Both:
    def __init__(self, first: State, second: State):
        self.first = first
        self.second = second

    def swap(self) -> None:
        self.first, self.second = self.second, self.first


def straight(x: Tensor, y: Tensor, n: int) -> Tensor:
    state = State(x, y)
    return (state.step(y) * state.c).sum() * n


def loop(x: Tensor, y: Tensor, n: int) -> Tensor:
    state = State(x, y)
    total = x.sum()
    for _ in range(n):
        total = total + state.step(y).sum()
    return total + state.c.sum()


def branches(x: Tensor, y: Tensor, n: int) -> Tensor:
    state = State(x, y)
    for i in range(n):
        if i % 2 == 0:
            state.h = state.h * state.c
        elif i == 1:
            state.c = x * 3
    return (state.h * state.c).sum()


def a_new_one_each_turn(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        state = State(x, y * i)
        x = state.step(x) + state.h
    return x.sum()


def within_one_another(x: Tensor, y: Tensor, n: int) -> Tensor:
    both = Both(State(x, y), State(y, x * n))
    both.first.step(y)
    both.swap()
    both.first.step(x)
    return (both.first.h * both.second.c).sum()


PROGRAMS = (straight, loop, branches, a_new_one_each_turn, within_one_another)


@pytest.fixture(autouse=True)
def simple() -> Iterator[None]:
    before = rekindle.set_execution_strategy("simple")
    yield
    rekindle.set_execution_strategy(before)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_those_of_torch_func(program: Callable[..., Tensor]) -> None:
    torch.manual_seed(6)
    x, y = torch.rand(2, 3, dtype=torch.float64).unbind()
    function = rekindle.value_and_grad(program, argnums=(0, 1))
    verify(function.graph)
    assert not function.graph.find_nodes("prim::CreateObject")
    for n in (1, 3):
        gradients, value = torch.func.grad_and_value(program, argnums=(0, 1))(x, y, n)
        torch.testing.assert_close(function(x, y, n), (value, gradients))


def test_objects_that_go_elsewhere_are_refused() -> None:
    def program(x: Tensor, n: int) -> Tensor:
        states = [State(x, x) for _ in range(n)]
        return states[0].h.sum()

    with pytest.raises(rekindle.errors.DifferentiationError) as caught:
        rekindle.grad(program)
    lines = str(caught.value).splitlines()
    assert lines[0] == "gradients cannot go back through this write: it writes to an attribute of an object"
    assert lines[-1] == "Hint: compute a new value instead of writing to one"
