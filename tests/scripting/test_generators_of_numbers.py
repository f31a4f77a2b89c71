"""Generators of random numbers that a program makes: each call draws what eager draws."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle


def drawn_in_place(n: int) -> Tensor:
    generator = torch.Generator()
    generator.manual_seed(2023)
    return torch.empty(n).normal_(-1.0, 1.0, generator=generator)


def drawn_twice(n: int) -> tuple[Tensor, Tensor, int]:
    generator = torch.Generator(device="cpu")
    generator.manual_seed(n)
    first = torch.rand(n, generator=generator)
    generator.manual_seed(n + 1)
    second = torch.randn([n], generator=generator)
    return first, second, generator.initial_seed()


def drawn_from_two(n: int) -> Tensor:
    one, other = torch.Generator(), torch.Generator()
    one.manual_seed(1)
    other.manual_seed(2)
    total = torch.zeros(n)
    for index in range(3):
        total += torch.rand(n, generator=one if index % 2 == 0 else other)
    return total


class Noisy(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        generator = torch.Generator()
        generator.manual_seed(3)
        return x + torch.empty_like(x).normal_(0.0, 1.0, generator=generator)


@pytest.mark.parametrize("function", [drawn_in_place, drawn_twice, drawn_from_two])
def test_as_eager(function: Callable[[int], Any]) -> None:
    compiled = rekindle.script(function)
    for n in (4, 4, 7):
        torch.manual_seed(n)
        torch.testing.assert_close(compiled(n), function(n), rtol=0.0, atol=0.0)


def test_in_archives() -> None:
    x = torch.ones(5)
    archive = rekindle.script(Noisy()).save_to_buffer()
    torch.testing.assert_close(rekindle.load(archive)(x), Noisy()(x), rtol=0.0, atol=0.0)
    torch.testing.assert_close(torch.jit.load(io.BytesIO(archive))(x), Noisy()(x), rtol=0.0, atol=0.0)
