"""Modules that broken passes on frozen graphs would get wrong, and how their answers are compared."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

import rekindle

Freeze = Callable[[rekindle.ScriptModule], rekindle.ScriptModule]


def frozen_disagreements(make: Callable[[], nn.Module], freeze: Freeze, *inputs: Tensor) -> list[str]:
    """How the answers of a module, called with each of ``inputs`` in turn, differ from those of it frozen."""
    torch.manual_seed(0)
    module = make().eval()
    frozen = freeze(rekindle.script(copy.deepcopy(module)))
    found: list[str] = []
    for index, x in enumerate(inputs):
        torch.manual_seed(index)
        expected = module(x.clone())
        torch.manual_seed(index)
        try:
            torch.testing.assert_close(frozen(x.clone()), expected, rtol=1e-4, atol=1e-5)
        except (AssertionError, RuntimeError) as why:
            found.append(f"{type(module).__name__}, call {index + 1}: {why}")
    return found


class Counts(nn.Module):
    """Replaces an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def forward(self, x: Tensor) -> Tensor:
        self.total += 1
        return x + self.total * 2


class Accumulates(nn.Module):
    """Writes to what it computes of a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        made = self.weight * 2
        made.add_(x.sum())
        return made


class DropsAlways(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(x, 0.5, training=True)


class Unsqueezes(nn.Module):
    """Asks an operand for its dimensions after they changed."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.relu()
        x.unsqueeze_(0)
        return y + y.dim()


class Normalizes(nn.Module):
    """A normalization after a linear map, of rows and of more: both have as many channels."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.linear(x))


class Adds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.offset = nn.Parameter(torch.rand(4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.add(self.linear(x), self.offset, alpha=3)


class Views(nn.Module):
    """Wants a convolution's result in the usual order."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).view(x.shape[0], -1)


def answers_of(
    make: Callable[[], nn.Module], *shapes: Sequence[int], freeze: Freeze = rekindle.freeze
) -> Callable[[], Sequence[str]]:
    """What :func:`frozen_disagreements` returns for a module called with tensors of these shapes, twice each."""
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(list(shape), generator=generator) for shape in shapes for _ in range(2)]
    return lambda: _without_gradients(make, freeze, inputs)


def _without_gradients(make: Callable[[], nn.Module], freeze: Freeze, inputs: Sequence[Tensor]) -> Sequence[str]:
    with torch.no_grad():
        return frozen_disagreements(make, freeze, *inputs)
