"""Derivatives of modules by their parameters, beside ``torch.func.functional_call``."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle


class Net(nn.Module):
    """Parameters in lists, a buffer, a weight that two layers share, a loop."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.norm = nn.LayerNorm(4)
        self.cell = nn.GRU(4, 4)
        self.unused = nn.Parameter(torch.ones(2))
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x: Tensor, y: Tensor, steps: int = 2) -> Tensor:
        for _ in range(steps):
            x = self.norm(torch.relu(self.second(self.first(x))) + x * self.scale)
        output, _ = self.cell(x)
        return nn.functional.mse_loss(output, y)


def net() -> Any:
    torch.manual_seed(0)
    return Net().double()


def examples() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.rand(5, 4, dtype=torch.float64), torch.rand(5, 4, dtype=torch.float64)


def parameters(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in module.named_parameters()}


def test_gradient_by_the_parameters() -> None:
    module, (x, y) = net(), examples()
    gradient = rekindle.grad(module)
    assert str(gradient.schema) == (
        "Net_grad(Dict(str, Tensor) parameters, Tensor x, Tensor y, int steps=2) -> Dict(str, Tensor)"
    )
    own = parameters(module)
    expected = torch.func.grad(lambda given: torch.func.functional_call(module, given, (x, y)))(own)
    torch.testing.assert_close(gradient(own, x, y), expected)
    assert not gradient(own, x, y)["unused"].any()


def test_gradient_by_an_input() -> None:
    module, (x, y) = net(), examples()
    x.requires_grad_()
    gradients, by_x = rekindle.grad(rekindle.script(module), argnums=(0, 1))(parameters(module), x.detach(), y, 3)
    (expected,) = torch.autograd.grad(module(x, y, 3), [x])
    torch.testing.assert_close(by_x, expected)
    assert list(gradients) == list(parameters(module))


def test_jvp_by_the_parameters() -> None:
    module, (x, y) = net(), examples()
    own = parameters(module)
    found = rekindle.jvp(module)(own, x, y, 2, own)
    expected = torch.func.jvp(lambda given: torch.func.functional_call(module, given, (x, y)), (own,), (own,))
    torch.testing.assert_close(found, expected)


def test_a_step_of_a_program() -> None:
    """The whole step of gradient descent is one program."""
    module, (x, y) = net(), examples()
    step_of = rekindle.value_and_grad(module)
    own = parameters(module)
    losses = []
    for _ in range(5):
        loss, gradients = step_of(own, x, y)
        own = {name: value - 0.1 * gradients[name] for name, value in own.items()}
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_modules_that_change_are_refused() -> None:
    with pytest.raises(rekindle.errors.DifferentiationError) as caught:
        rekindle.vjp(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
    message, *_, hint = str(caught.value).splitlines()
    assert message == (
        "gradients cannot go back through this write: the program writes to something that others may read"
    )
    assert hint == "Hint: write to a clone of it; modules in eval mode leave their buffers as they are"


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x.sum()


def test_attributes_that_are_written_are_refused() -> None:
    with pytest.raises(rekindle.errors.DifferentiationError) as caught:
        rekindle.grad(Counts())
    assert str(caught.value) == (
        "'Counts' writes to its attributes, or passes itself on, so that it is not a function of its parameters\n"
        "Hint: differentiate in eval mode; freeze the module, or compute what changes outside of forward"
    )
