"""Residuals of loops are taken out of their lists, so that they are freed with their iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from benchmarks.execution import peak_memory
from rekindle.autodiff.residuals.consumption import consume_residuals
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from tests.support.golden import GoldenTexts

BACKWARD = """\
graph(%n : int, %g : Tensor, %rs : Tensor[], %ss : Tensor[][], %ts : Tensor[], %us : Tensor[], %vs : Tensor[]):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %four : int = prim::Constant[value=4]()
  %true : bool = prim::Constant[value=1]()
  %last : int = aten::sub(%n, %one)
  %h : Tensor = prim::Loop(%n, %true, %g)
    block0(%j : int, %a : Tensor):
      %i : int = aten::sub(%last, %j)
      %r : Tensor = aten::__getitem__(%rs, %i)
      %b : Tensor = aten::mul(%a, %r)
      %s : Tensor[] = aten::__getitem__(%ss, %i)
      %c : Tensor = prim::Loop(%four, %true, %b)
        block0(%k : int, %d : Tensor):
          %m : int = aten::sub(%three, %k)
          %e : Tensor = aten::__getitem__(%s, %m)
          %f : Tensor = aten::mul(%d, %e)
          -> (%true, %f)
      %t : Tensor = aten::__getitem__(%ts, %j)
      %u : Tensor = aten::__getitem__(%us, %i)
      %w : Tensor = aten::__getitem__(%us, %zero)
      %p : Tensor = aten::mul(%c, %t)
      %q : Tensor = aten::mul(%p, %u)
      %x : Tensor = aten::mul(%q, %w)
      %is : bool = aten::gt(%i, %one)
      %y : Tensor = prim::If(%is)
        block0():
          %v : Tensor = aten::__getitem__(%vs, %i)
          -> (%v)
        block1():
          -> (%x)
      -> (%true, %y)
  return (%h)
"""


def test_graph(golden: GoldenTexts) -> None:
    """A list is only consumed by iterations that read each of its elements once, from the last to the first."""
    graph = parse_graph(BACKWARD)
    before = str(graph)
    consume_residuals(graph, graph.inputs[2:])
    verify(graph)
    golden("autodiff/consumption", f"{before}\n# becomes\n\n{graph}")


class InLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        h, c = x[0], x[0]
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            h, c = self.cell(x[t], (h, c))
            outputs.append(h)
        return torch.stack(outputs).square().mean()


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.LayerNorm(64)) for _ in range(6)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).square().mean()


@pytest.mark.parametrize(("model", "size"), [(InLoop, (60, 4, 16)), (Layers, (64, 64))])
def test_no_more_memory_than_eager(model: Callable[[], nn.Module], size: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    eager = model()
    x = torch.randn(size)

    def step(function: Any) -> Callable[[], None]:
        def run() -> None:
            for parameter in function.parameters():
                parameter.grad = None
            function(x).backward()

        return run

    compiled = step(rekindle.script(eager))
    for _ in range(4):
        compiled()
    assert peak_memory(compiled) <= peak_memory(step(eager))


@pytest.mark.parametrize("native", [True, False])
def test_a_graph_that_is_retained_keeps_its_residuals(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rekindle.runtime.settings.SETTINGS.native_plans", native)
    torch.manual_seed(2)
    eager = InLoop().double()
    compiled = rekindle.script(eager)
    x = torch.randn(7, 2, 16, dtype=torch.double)
    weights = list(eager.parameters())
    expected = torch.autograd.grad(eager(x), weights)
    for _ in range(4):
        loss = compiled(x)
        for _ in range(3):
            torch.testing.assert_close(torch.autograd.grad(loss, weights, retain_graph=True), expected)
        torch.testing.assert_close(torch.autograd.grad(loss, weights), expected)
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            torch.autograd.grad(loss, weights)
