"""Activations that are computed in place: the gradients are those of eager, and memory is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from benchmarks.execution import peak_memory
from rekindle.ir.text.parser import parse_graph
from rekindle.passes import OverwriteOperands, run_passes


class Layers(nn.Module):
    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3), copy.deepcopy(activation), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), activation
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return y.square().mean()


ACTIVATIONS = [
    *(nn.LeakyReLU(0.2), nn.LeakyReLU(0.2, inplace=True), nn.LeakyReLU(-0.2), nn.Hardtanh(-0.5, 0.5)),
    *(nn.ReLU(), nn.ReLU(inplace=True), nn.ReLU6(), nn.ReLU6(inplace=True)),
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_gradients_and_theirs(activation: nn.Module) -> None:
    torch.manual_seed(1)
    eager = Layers(activation).double()
    compiled = rekindle.script(copy.deepcopy(eager))
    x = torch.randn(3, 1, 12, 12, dtype=torch.double, requires_grad=True)

    def gradients(model: Any) -> list[Tensor]:
        first = torch.autograd.grad(model(x), [x, *model.parameters()], create_graph=True)
        penalty = sum(each.square().sum() for each in first)
        return [*first, *torch.autograd.grad(penalty, [x, *model.parameters()], allow_unused=True)]

    for _ in range(3):
        for found, expected in zip(gradients(compiled), gradients(eager), strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_an_image_without_a_batch() -> None:
    torch.manual_seed(2)
    eager = nn.Sequential(nn.Conv2d(1, 4, 3), nn.LeakyReLU(0.1))
    compiled = rekindle.script(copy.deepcopy(eager))
    x = torch.randn(1, 9, 9)
    for model in (eager, compiled):
        model(x).square().sum().backward()
    for found, expected in zip(compiled.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad)


@pytest.mark.parametrize("activation", [each for each in ACTIVATIONS if getattr(each, "inplace", False)], ids=str)
def test_no_more_memory_than_eager_in_place(activation: nn.Module) -> None:
    torch.manual_seed(3)
    eager = Layers(activation)
    compiled = rekindle.script(copy.deepcopy(eager))
    x = torch.randn(4, 1, 24, 24)

    def peak(model: Any) -> int:
        for _ in range(3):
            model(x).backward()
        model.zero_grad()
        return peak_memory(lambda: model(x).backward())

    assert peak(compiled) <= peak(eager)


@pytest.mark.parametrize(
    ("kind", "operand", "is_overwritten"),
    [
        ("aten::relu", "%new", True),
        ("aten::relu6", "%new", True),
        ("aten::silu", "%new", False),
        ("aten::relu", "%x", False),
        ("aten::relu", "%used", False),
    ],
)
def test_what_is_overwritten(kind: str, operand: str, is_overwritten: bool) -> None:
    """Not ``silu``: autograd saves a copy of its operand where it is computed in place."""
    convolved = "aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)"
    graph = parse_graph(
        f"""graph(%x : Tensor, %w : Tensor, %b : Tensor?, %ones : int[], %zeros : int[]):
  %one : int = prim::Constant[value=1]()
  %new : Tensor = {convolved}
  %used : Tensor = {convolved}
  %1 : Tensor = {kind}({operand})
  return (%1, %used)
"""
    )
    assert run_passes(graph, [OverwriteOperands()]) is is_overwritten
    assert (graph.find_node(f"{kind}_") is not None) is is_overwritten
