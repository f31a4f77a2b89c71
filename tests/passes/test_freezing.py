"""Attributes of modules become constants: a golden text, made of methods of compiled modules."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import rekindle
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from rekindle.passes import run_passes
from rekindle.passes.canonicalization.inlining import inline
from rekindle.passes.frozen_modules.freezing import Freezing, can_be_constant
from tests.support.golden import GoldenTexts


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.sizes = [1, 2]
        self.name = "scale"
        self.nothing: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.nothing is None and len(self.name) > self.sizes[0]:
            x = x * self.factor
        return x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Scale()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return self.scale(x) + self.calls


def test_golden_text(golden: GoldenTexts) -> None:
    net = rekindle.script(Net())
    graph = net.forward.graph.copy()
    inline(graph)
    before = print_graph(graph, ranges=False)
    part = net.scale
    part.factor.requires_grad_(False)
    values = {(part.script_type, name): getattr(part, name) for name in part.script_type.attributes}
    freezing = Freezing(values)
    assert run_passes(graph, [freezing], verify)
    golden(
        "passes/freezing",
        f"# what is known of the part 'scale'\n\n{before}\n# becomes\n\n{print_graph(graph, ranges=False)}",
    )
    after = str(graph)
    assert not freezing.run(graph)
    assert str(graph) == after


def test_without_values_nothing_changes() -> None:
    graph = rekindle.script(Net()).forward.graph.copy()
    before = str(graph)
    assert not Freezing().run(graph)
    assert str(graph) == before


def test_what_can_be_a_constant() -> None:
    for value in (1, 1.5, 2j, "a", None, True, torch.ones(1), torch.device("cpu"), [1, (2.0, "b")], {"a": [None]}):
        assert can_be_constant(value), value
    for other in (nn.Linear(1, 1), [object()], {"a": object()}, torch.Generator()):
        assert not can_be_constant(other), other
