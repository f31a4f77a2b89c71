"""Attributes that are read in a loop: before it, if nothing in the loop may set them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.passes import Inlining, LoopInvariantMotion, run_passes


class Own(nn.Module):
    """Every kind of loop on an attribute; what ``total`` and ``inner.total`` are changes in some of them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))
        self.inner = nn.Linear(2, 2)
        self.total = torch.zeros(2)


class Reads(Own):
    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x * self.weight + self.inner(x)
        return x


class Sets(Own):
    def forward(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            self.total = self.total + x * i
        return self.total


class Writes(Own):
    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x + self.inner.bias
            self.inner.bias.add_(1.0)
        return x


class Calls(Own):
    @rekindle.ignore
    def change(self, x: Tensor) -> Tensor:
        self.weight = nn.Parameter(self.weight + 1.0)
        return x

    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = self.change(x * self.weight)
        return x


class Forks(Own):
    def change(self, x: Tensor) -> Tensor:
        self.total = x + 1.0
        return x

    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x + self.total
            rekindle.wait(rekindle.fork(self.change, x))
        return x


class Waits(Forks):
    def forward(self, x: Tensor, n: int) -> Tensor:
        task = rekindle.fork(self.change, x)
        for _ in range(n):
            rekindle.wait(task)
            x = x + self.total
        return x


@pytest.mark.parametrize(
    ("make", "is_moved"), [(Reads, True), (Sets, False), (Writes, True), (Calls, False), (Forks, False), (Waits, False)]
)
def test_attributes(make: Callable[[], nn.Module], is_moved: bool) -> None:
    torch.manual_seed(0)
    module = make()
    graph = rekindle.script(module).graph.copy()
    run_passes(graph, [Inlining()])
    run_passes(graph, [LoopInvariantMotion()])
    (loop,) = graph.find_nodes("prim::Loop")
    tensors = [
        node.output for node in loop.inner_nodes() if node.kind == "prim::GetAttr" and "Tensor" in str(node.output.type)
    ]
    assert (not tensors) == is_moved


@pytest.mark.parametrize("make", [Reads, Sets, Writes, Calls, Forks, Waits])
def test_results(make: Callable[[], nn.Module]) -> None:
    with torch.no_grad():
        for n in (0, 1, 3):
            torch.manual_seed(0)
            module = make()
            compiled = rekindle.script(make())
            compiled.load_state_dict(module.state_dict())
            for _ in range(4):
                x = torch.randn(2)
                torch.testing.assert_close(compiled(x, n), module(x, n))
