"""Modules whose attributes change at random between calls: compiled and eager modules agree after every change."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.support.shares import rotating

STEPS = 12


def new_class() -> Callable[[], nn.Module]:
    """A class of its own for each sequence, since modules of one class share what is compiled."""

    class Part(nn.Module):
        def __init__(self, width: int, activation: str) -> None:
            super().__init__()
            self.linear = nn.Linear(width, width)
            self.norm = nn.BatchNorm1d(width)
            self.activation = activation
            self.scale = 1.0
            self.skip = False
            self.limit: int | None = None

        @property
        def doubled(self) -> float:
            return self.scale * 2

        def bounded(self, x: Tensor, flag: bool = True, limit: int | None = None) -> tuple[Tensor, int]:
            rank = x.dim()
            if limit is not None:
                x = x.clamp(max=float(limit))
                rank += limit
            return (x * self.doubled if flag else x), rank

        def forward(self, x: Tensor, mask: Tensor | None = None, flag: bool = False) -> tuple[Tensor, int]:
            y = self.linear(x)
            if self.skip:
                y = x
            elif mask is not None and mask.dtype == torch.bool:
                y = y.masked_fill(mask, 0.5)
            elif mask is not None:
                y = y + mask
            if y.dim() == 2:
                y = self.norm(y)
            if self.activation == "relu":
                y = torch.relu(y)
            y, rank = self.bounded(y, flag, self.limit)
            if self.linear.weight.dtype == torch.float64:
                rank += 100
            return y, rank

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Part(4, "relu")
            self.parts = nn.ModuleList([Part(4, "none"), Part(4, "relu")])
            self.again = self.first
            self.count = 0
            self.used = 2
            self.mode = "x"
            self.bias: Tensor | None = None

        def forward(self, x: Tensor, mask: Tensor | None = None, flag: bool = True) -> tuple[Tensor, int, str]:
            self.count += self.used
            tag = self.mode + ("t" if self.training else "")
            y, total = self.first(x, mask, flag)
            for index, part in enumerate(self.parts):
                if index < self.used:
                    y, rank = part(y, mask if flag else None, index == 0)
                    total += rank
            y, rank = self.again(y)
            if self.bias is not None:
                y = y + self.bias
                tag += "b"
            if y.dim() == 3:
                y = y.squeeze(0)
            while total > 40:
                total = total // 2
                if self.mode == "z":
                    break
            return y, total + rank + self.count, tag

    return Whole


def change(module: Any, draw: random.Random) -> None:
    """Change something; the same, where ``draw`` is in the same state."""
    part = draw.choice([module.first, *module.parts])
    match draw.randrange(12):
        case 0:
            part.scale = draw.choice([1.0, 0.5, -0.0, 0.0])
        case 1:
            part.skip = draw.random() < 0.5
        case 2:
            part.limit = draw.choice([None, 1, 2])
        case 3:
            vars(part)["activation"] = draw.choice(["relu", "none"])
        case 4:
            module.train(draw.random() < 0.5)
        case 5:
            module.used = draw.randrange(4)
        case 6:
            module.mode = draw.choice("xyz")
        case 7:
            module.bias = draw.choice([None, torch.ones(4)])
        case 8:
            module.to(draw.choice([torch.float32, torch.float64]))
        case 9:
            part.linear.weight.requires_grad_(draw.random() < 0.5)
        case _:
            pass


def outcome(module: nn.Module, arguments: tuple[Any, ...], with_gradients: bool) -> list[Any]:
    with torch.set_grad_enabled(with_gradients):
        y, total, tag = module(*arguments)
    leaves = [each for each in module.parameters() if each.requires_grad] if y.requires_grad else []
    return [y.detach(), total, tag, *(torch.autograd.grad(y.sum(), leaves, allow_unused=True) if leaves else ())]


@pytest.mark.parametrize("seed", rotating(12))
def test_sequences(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    module = new_class()()
    compiled = rekindle.script(copy.deepcopy(module))
    for step in range(STEPS):
        state = draw.getstate()
        for each in (compiled, module):
            draw.setstate(state)
            change(each, draw)
        dtype = next(module.parameters()).dtype
        shape = draw.choice([(3, 4), (1, 3, 4)])
        mask = draw.choice([None, torch.rand(shape) > 0.5, torch.rand(shape, dtype=dtype)])
        arguments = torch.rand(shape, dtype=dtype), mask, draw.random() < 0.5
        with_gradients = draw.random() < 0.4
        found, expected = (outcome(each, arguments, with_gradients) for each in (compiled, module))
        where = f"step {step} of seed {seed}"
        assert found[1:3] == expected[1:3], where
        for one, other in zip([found[0], *found[3:]], [expected[0], *expected[3:]], strict=True):
            torch.testing.assert_close(one, other, msg=where)
