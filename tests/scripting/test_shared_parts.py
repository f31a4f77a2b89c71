"""Lists of the parts and tensors of modules that share parts or tie weights: each is listed once, as in eager."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import rekindle


class Sharing(nn.Module):
    """``second`` is ``first``, ``inner`` holds it once more, and ``out`` has the weight of ``first``."""

    def __init__(self, shares: bool) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.first.register_buffer("count", torch.zeros(1))
        self.second = self.first if shares else nn.Linear(2, 2)
        self.inner = nn.ModuleList([self.first, nn.Linear(2, 2)] if shares else [nn.Linear(2, 2)])
        self.out = nn.Linear(2, 2)
        self.register_buffer("total", torch.zeros(1))
        if shares:
            self.out.weight = self.first.weight
            self.inner[1].register_buffer("seen", self.total)

    def forward(self, x: torch.Tensor):
        names = [
            [name for name, _ in self.named_children()],
            [name for name, _ in self.named_modules()],
            [name for name, _ in self.named_parameters()],
            [name for name, _ in self.named_buffers()],
            [name for name, _ in self.inner.named_parameters()],
        ]
        penalty = sum(p.square().sum() for p in self.parameters())
        return x + penalty, names, sum(p.numel() for p in self.parameters()), len(list(self.modules()))


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_lists_of_parts_have_each_once(order: tuple[bool, bool], tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(2)
    for shares in order:  # the class is the same, its instances have types of their own
        module = Sharing(shares)
        scripted = rekindle.script(module)
        rekindle.save(scripted, tmp_path / "net.pt")
        for compiled in (scripted, rekindle.load(tmp_path / "net.pt")):
            found, expected = compiled(x), module(x)
            torch.testing.assert_close(found[0], expected[0])
            assert found[1:] == expected[1:]


def test_gradients_of_tied_weights_count_once() -> None:
    torch.manual_seed(0)
    module = Sharing(True)
    scripted = rekindle.script(module)
    found = []
    for each in (module, scripted):
        module.zero_grad()
        each(torch.ones(2))[0].sum().backward()
        found.append([parameter.grad for parameter in module.parameters()])
    torch.testing.assert_close(found[0], found[1])
