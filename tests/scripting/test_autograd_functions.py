"""Gradients of programs that apply functions of ``torch.autograd`` and operators of ``torch.library``: what their
authors wrote, whatever way the program runs."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import SaveError
from tests.language.programs import autograd_functions, custom_operators


def _gradients(function: Any, *inputs: Tensor) -> list[Tensor | None]:
    given = [item.clone().requires_grad_() for item in inputs]
    results = function(*given)
    first = results[0] if isinstance(results, tuple) else results
    (first * first).sum().backward()
    return [item.grad for item in given]


@pytest.fixture(params=["simple", "native", "profiling"])
def strategy(request: pytest.FixtureRequest) -> Any:
    before = rekindle.set_execution_strategy(request.param)
    yield
    rekindle.set_execution_strategy(before)


X = torch.tensor([1.2, -2.0, 0.4])


@pytest.mark.usefixtures("strategy")
@pytest.mark.parametrize(
    "program",
    [
        autograd_functions.scaled,
        autograd_functions.straight_through,
        autograd_functions.written_in_place,
        custom_operators.by_its_name,
        custom_operators.by_its_function,
    ],
    ids=lambda program: program.__name__,
)
def test_gradient_is_the_one_that_was_written(program: Any) -> None:
    expected = _gradients(program, X)
    compiled = rekindle.script(program)
    for _ in range(3):
        torch.testing.assert_close(_gradients(compiled, X), expected, rtol=0, atol=0)


@pytest.mark.usefixtures("strategy")
def test_only_what_is_needed_is_asked_for() -> None:
    compiled = rekindle.script(autograd_functions.two_results)
    x, y = X.clone().requires_grad_(), X + 1
    for _ in range(2):
        product, positive = compiled(x, y)
        (gradient,) = torch.autograd.grad(product.sum(), x)
        torch.testing.assert_close(gradient, 2 * y)
        assert not positive.requires_grad


def test_saving_says_what_it_cannot_say() -> None:
    with pytest.raises(SaveError) as caught:
        rekindle.save(rekindle.script(autograd_functions.straight_through), io.BytesIO())
    told = str(caught.value)
    assert "the program calls the Python function 'Rounded.apply', which cannot be written as source" in told
    assert told.endswith("Hint: its gradient is Python's; for an archive, write what forward does as a function")


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, factor: float) -> torch.Tensor:
        if not torch.jit.is_scripting():
            ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * 3, None


def test_forward_may_be_called_itself():
    """As torchaudio's filters do: it is a function like any other, and the gradient that of its operators."""

    def scaled(x: torch.Tensor) -> torch.Tensor:
        if torch.jit.is_scripting():
            return Scaled.forward(torch.empty(0), x, 3.0)
        return Scaled.apply(x, 3.0)

    results = []
    for function in (rekindle.script(scaled), scaled):
        x = torch.ones(2, requires_grad=True)
        result = function(x)
        result.sum().backward()
        results.append((result.tolist(), x.grad.tolist()))
    assert results[0] == results[1]
