"""``torch.compile`` of programs that call compiled functions: the compiled function runs as without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import Tensor
from torch._dynamo.utils import counters

import rekindle


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()
    counters.clear()


def chain(x: Tensor, y: Tensor) -> Tensor:
    return ((x * y).sigmoid() + 1).tanh() * x


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.relu(self.linear(x)) * y

    @rekindle.export
    def doubled(self, x: Tensor, y: Tensor) -> Tensor:
        return self.forward(x, y) * 2


X, Y = torch.linspace(-1, 1, 12).reshape(4, 3), torch.linspace(2, 3, 12).reshape(4, 3)


def function() -> Callable[..., Any]:
    return rekindle.script(chain)


def module() -> Callable[..., Any]:
    return rekindle.script(Layer())


def method() -> Callable[..., Any]:
    found: Callable[..., Any] = rekindle.script(Layer()).doubled
    return found


@pytest.mark.parametrize("make", [function, module, method])
def test_callers_are_traced_and_compiled_functions_are_not(make: Callable[[], Callable[..., Any]]) -> None:
    compiled = make()

    @torch.compile(backend="eager")
    def caller(x: Tensor, y: Tensor) -> Tensor:
        return compiled(x + 1, y).abs() - 1

    expected = compiled(X + 1, Y).abs() - 1
    for _ in range(5):  # the third call compiles kernels
        torch.testing.assert_close(caller(X, Y), expected)
    # Before the call, and after it. Dynamo's counter of frames also counts those that it gives up without a graph.
    assert counters["stats"]["unique_graphs"] == 2
    assert len(counters["graph_break"]) == 1


@pytest.mark.parametrize("make", [function, module, method])
def test_compiled_functions_are_called_directly(make: Callable[[], Callable[..., Any]]) -> None:
    compiled = make()
    twice = torch.compile(compiled, backend="eager")
    expected = compiled(X, Y)
    for _ in range(5):
        torch.testing.assert_close(twice(X, Y), expected)
    assert counters["stats"]["unique_graphs"] == 0
