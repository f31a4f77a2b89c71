"""Captured forward and backward graphs, on the device of test_cuda_graphs.py.

tests/codegen/cuda/test_training.py captures on a GPU.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.api.reports.report_data import CudaGraphReport
from rekindle.autodiff import differentiable_graph
from rekindle.codegen import product_estimates
from rekindle.runtime.cuda_graphs import captured_function
from rekindle.runtime.cuda_graphs.captured_function import WARM_UP
from rekindle.runtime.strategies import native_strategy
from tests.runtime.test_cuda_graphs import HostDevice

STEPS = WARM_UP + 8


@pytest.fixture(autouse=True)
def _captures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU, in the role of a GPU."""
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(captured_function, "CudaGraphDevice", HostDevice)
    monkeypatch.setattr(differentiable_graph, "_is_on_gpu", lambda tensors: True)
    for module in (product_estimates, native_strategy):
        monkeypatch.setattr(module, "has_gpu_tensors", bool)
    before = rekindle.set_cuda_graphs(True)
    yield
    rekindle.set_cuda_graphs(before)


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Sigmoid(), nn.Linear(8, 4), nn.Tanh())


def _with_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 8), nn.Sigmoid(), nn.Linear(8, 4))


class Loop(nn.Module):
    """States of all iterations."""

    def __init__(self) -> None:
        super().__init__()
        self.of_input, self.of_state = nn.Linear(6, 5), nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(5, dtype=x.dtype)
        states: list[Tensor] = []
        for t in range(x.size(0)):
            h = torch.tanh(self.of_input(x[t]) + self.of_state(h)) * torch.sigmoid(h)
            states.append(h)
        return torch.stack(states)


def _step(module: Any, x: Tensor, seed: int) -> tuple[Any, ...]:
    torch.manual_seed(seed)
    found = module(x)
    return found, *torch.autograd.grad(found.square().mean(), [x, *module.parameters()])


def _graphs(module: Any) -> list[CudaGraphReport]:
    return [part.cuda_graphs for each in rekindle.report(module).versions for part in each.walk() if part.cuda_graphs]


def _assert_is_replayed(module: Any, *, by_input: bool = False) -> None:
    """In both directions, with gradients by the parameters and by the input. Equal programs, of other tests too, share
    captures and their counts."""
    before = sum(each.replays for each in _graphs(module))
    module(torch.randn(3, 6, requires_grad=by_input)).square().mean().backward()
    assert sum(each.replays for each in _graphs(module)) >= before + 2


@pytest.mark.parametrize("make", [_perceptron, _with_dropout, Loop])
def test_steps_are_replayed(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    module = make().train()
    compiled = rekindle.script(copy.deepcopy(module))
    for step in range(STEPS):
        x = torch.randn(3, 6, requires_grad=True)
        torch.testing.assert_close(_step(compiled, x, step), _step(module, x, step))
    _assert_is_replayed(compiled, by_input=True)
    assert "CUDA graphs: 1 call captured" in str(rekindle.report(compiled))


def test_parameters_change_between_replays() -> None:
    """An optimizer writes to them; each value is used where it is."""
    torch.manual_seed(0)
    module = _perceptron()
    compiled = rekindle.script(copy.deepcopy(module))
    both = [(each, torch.optim.SGD(each.parameters(), 0.5, momentum=0.9)) for each in (module, compiled)]
    for _ in range(STEPS):
        x = torch.randn(3, 6)
        losses = []
        for each, optimizer in both:
            optimizer.zero_grad()
            loss = each(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        torch.testing.assert_close(*losses)
    torch.testing.assert_close(list(compiled.parameters()), list(module.parameters()))
    _assert_is_replayed(compiled)


def test_several_calls_before_their_gradients() -> None:
    """What a replay keeps for the gradients is not what the next one writes."""
    torch.manual_seed(0)
    module = _perceptron()
    compiled = rekindle.script(copy.deepcopy(module))
    for _ in range(STEPS):
        xs = [torch.randn(3, 6) for _ in range(3)]
        found, expected = (
            torch.autograd.grad(sum(each(x).square().sum() for x in xs), list(each.parameters()))  # type: ignore[arg-type]
            for each in (compiled, module)
        )
        torch.testing.assert_close(found, expected)
    _assert_is_replayed(compiled)


def test_a_graph_that_is_retained() -> None:
    torch.manual_seed(0)
    module = _perceptron()
    compiled = rekindle.script(copy.deepcopy(module))
    for _ in range(STEPS):
        x = torch.randn(3, 6)
        results = []
        for each in (compiled, module):
            loss = each(x).square().sum()
            first = torch.autograd.grad(loss, list(each.parameters()), retain_graph=True)
            each(torch.randn(3, 6))
            results.append([*first, *torch.autograd.grad(loss, list(each.parameters()))])
        torch.testing.assert_close(*results)
    _assert_is_replayed(compiled)


def test_gradients_of_gradients_are_not_replayed() -> None:
    torch.manual_seed(0)
    module = _perceptron()
    compiled = rekindle.script(copy.deepcopy(module))
    for _ in range(STEPS):
        x = torch.randn(3, 6, requires_grad=True)
        results = []
        for each in (compiled, module):
            (first,) = torch.autograd.grad(each(x).square().sum(), x, create_graph=True)
            results.append([first, *torch.autograd.grad(first.square().sum(), list(each.parameters())[:-1])])
        torch.testing.assert_close(*results)


def test_equal_layers_with_parameters_of_their_own() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(
        *(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Sigmoid()) for _ in range(6))
    )
    compiled = rekindle.script(copy.deepcopy(module))
    for step in range(STEPS):
        x = torch.randn(3, 6, requires_grad=True)
        torch.testing.assert_close(_step(compiled, x, step), _step(module, x, step))
    _assert_is_replayed(compiled, by_input=True)


def test_a_parameter_that_is_replaced() -> None:
    torch.manual_seed(0)
    module = _perceptron()
    compiled = rekindle.script(copy.deepcopy(module))
    for step in range(STEPS * 2):
        if step == STEPS:
            for each in (module, compiled):
                torch.manual_seed(1)
                each[0].weight = nn.Parameter(torch.randn(8, 6))
                each[2].bias.data = torch.randn(8)
        x = torch.randn(3, 6, requires_grad=True)
        torch.testing.assert_close(_step(compiled, x, step), _step(module, x, step))
    _assert_is_replayed(compiled, by_input=True)
