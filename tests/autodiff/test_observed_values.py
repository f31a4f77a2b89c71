"""Derivatives with respect to values that a program computes, returns, stores or differentiates by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.autodiff.observed_values import observed_values
from rekindle.ir.text.parser import parse_graph

CALLS = 5


def returns_both(x: Tensor) -> tuple[Tensor, Tensor]:
    h = (x * 2).tanh() + 1
    return h, (h * h).exp() * 0.5


def returns_a_list(x: Tensor) -> list[Tensor]:
    h = (x * 2).tanh() + 1
    return [h, (h * h).exp() * 0.5]


def returns_a_view(x: Tensor) -> tuple[Tensor, Tensor]:
    h = ((x * 2).tanh() + 1).view(-1)
    return h, (h * h).exp() * 0.5


def returns_in_a_branch(x: Tensor) -> tuple[Tensor, Tensor]:
    h = (x * 2).tanh() + 1
    if h.dim() > 1:
        g = h
    else:
        g = h * 3
    return g, (h * h).exp() * 0.5


def differentiates(x: Tensor, w: Tensor) -> Tensor:
    h = (x * 2).tanh() + 1
    a = (h * h).exp() * 0.5 + 1
    e = a.sum() + F.conv1d(h[None], w).sum()
    g = torch.autograd.grad([e], [h])[0]
    assert g is not None
    return g


def forces(positions: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    p = positions * 0.529
    r = (p * p).sum(-1).sqrt() + 1
    e = ((r @ w).tanh() * 2 + torch.exp(-r).sum(-1)).sum()
    g = torch.autograd.grad([e], [p])[0]
    assert g is not None
    return e, g


class Stores(nn.Module):
    h: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.h = torch.zeros(1)

    def forward(self, x: Tensor) -> Tensor:
        h = (x * 2).tanh() + 1
        self.h = h
        return (h * h).exp() * 0.5


@pytest.mark.parametrize("function", [returns_both, returns_a_list, returns_a_view, returns_in_a_branch])
def test_one_result_with_respect_to_another(function: Callable[[Tensor], tuple[Tensor, Tensor]]) -> None:
    compiled = rekindle.script(function)
    for call in range(CALLS):
        found = []
        for each in (function, compiled):
            x = torch.linspace(-1, 1, 6).view(2, 3).add(call).requires_grad_()
            h, y = each(x)
            found.append(torch.autograd.grad(y.sum(), [h, x]))
        torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("function", [returns_both, returns_a_list, returns_a_view])
def test_hooks_on_results(function: Callable[[Tensor], tuple[Tensor, Tensor]]) -> None:
    compiled = rekindle.script(function)
    for _ in range(CALLS):
        x = torch.ones(2, 3, requires_grad=True)
        h, y = compiled(x)
        h.retain_grad()
        h.register_hook(lambda gradient: gradient * 0)
        y.sum().backward()
        assert x.grad is not None
        assert h.grad is not None
        assert not x.grad.any()


def test_derivatives_within_a_program() -> None:
    torch.manual_seed(0)
    for function, arguments in (
        (differentiates, (torch.randn(4, 4), torch.randn(4, 4, 1))),
        (forces, (torch.randn(4, 3), torch.randn(4, 4))),
    ):
        compiled = rekindle.script(function)
        given = (arguments[0].requires_grad_(), arguments[1])
        for _ in range(CALLS):
            torch.testing.assert_close(compiled(*given), function(*given))


def test_a_result_with_respect_to_an_attribute() -> None:
    module = Stores()
    compiled = rekindle.script(Stores())
    for _ in range(CALLS):
        found = []
        for each in (module, compiled):
            y = each(torch.linspace(-1, 1, 3).requires_grad_())
            found.append(torch.autograd.grad(y.sum(), [each.h])[0])
        torch.testing.assert_close(found[1], found[0])


def test_values_of_which_nothing_is_seen_stay_in_one_graph() -> None:
    def within(x: Tensor) -> Tensor:
        h = (x * 2).tanh() + 1
        return (h * h).exp() * 0.5

    compiled = rekindle.script(within)
    for _ in range(CALLS):
        compiled(torch.ones(3, requires_grad=True)).sum().backward()
    assert len(rekindle.last_executed_graph().find_nodes("prim::DifferentiableGraph")) == 1


def test_observed_values() -> None:
    graph = parse_graph("""
graph(%x : Tensor, %list : Tensor[], %n : int, %yes : bool):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%a)
  %c : Tensor = aten::neg(%b)
  %d : Tensor = prim::Loop(%n, %yes, %b)
    block0(%i : int, %e : Tensor):
      %f : Tensor = aten::neg(%e)
      -> (%yes, %f)
  %g : Tensor[] = aten::append(%list, %c)
  %h : (Tensor, int) = prim::TupleConstruct(%d, %n)
  return (%h)
""")
    names = {value.name for value in observed_values(graph)}
    assert names == {"h", "d", "b", "f", "list", "c"}
