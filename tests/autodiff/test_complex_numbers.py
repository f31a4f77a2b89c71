"""Complex numbers on the way from real arguments to a real result: gradients are eager's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import rekindle


def filtered(x: Tensor, w: Tensor) -> Tensor:
    z = torch.fft.rfft(x)
    filter = torch.complex(w, w * 2)
    return torch.fft.irfft(z * filter * z).square().sum() + (z.exp() * filter).real.sum() + x.prod()


def widened(x: Tensor, w: Tensor) -> Tensor:
    return (x.to(torch.complex128).exp() * (x * 2).sin()).abs().sum() + torch.polar(w, w * w).imag.sum()


def turned(x: Tensor, w: Tensor) -> Tensor:
    z = torch.complex(x, x * x)
    if bool(x.sum() > 100):
        y = z
    else:
        y = z * z / 3
    for i in range(3):
        y = y * z + 2j
    return torch.view_as_real(y).cos().sum() * w.sum()


def grown(x: Tensor, w: Tensor) -> Tensor:
    y = x
    for i in range(2):
        y = (y * (torch.view_as_complex(torch.stack([x, w.sum().expand(6)], 1)) * y).abs()).tanh()
    return y.sum()


PROGRAMS = [filtered, widened, turned, grown]


def _arguments() -> list[Tensor]:
    torch.manual_seed(4)
    return [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in (6, 4)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_gradients_are_those_of_eager(program: Callable[[Tensor, Tensor], Tensor]) -> None:
    x, w = _arguments()
    expected = torch.autograd.grad(program(x, w), [x, w])
    torch.testing.assert_close(rekindle.grad(program, argnums=(0, 1))(x.detach(), w.detach()), expected)
    scripted = rekindle.script(program)
    for _ in range(3):
        torch.testing.assert_close(torch.autograd.grad(scripted(x, w), [x, w]), expected)
