"""PyTorch's own tracer sees what compiled programs compute: no kernel hides it, which would make it a constant."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle


def squashed(x: Tensor) -> Tensor:
    y = torch.tanh(x) * 2 + 1
    return y * y.sum()


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h, c = torch.zeros(x.size(1), 4), torch.zeros(x.size(1), 4)
        out = []
        for t in range(x.size(0)):
            h, c = self.cell(x[t], (h, c))
            out.append(torch.tanh(h) * 2)
        return torch.stack(out)


def _frozen(module: nn.Module) -> Any:
    return rekindle.optimize_for_inference(rekindle.freeze(rekindle.script(module.eval())))


CONVOLUTIONS = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 3)).eval()
IMAGES, STEPS = (2, 3, 8, 8), (3, 2, 4)


class Around(nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * 2 + x.sum()  # type: ignore[no-any-return]


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(
    ("compile", "shape"),
    [
        (lambda: rekindle.script(squashed), STEPS),
        (lambda: rekindle.script(Recurrent()), STEPS),
        (lambda: rekindle.script(CONVOLUTIONS), IMAGES),
        (lambda: _frozen(CONVOLUTIONS), IMAGES),
        (lambda: rekindle.trace(CONVOLUTIONS, torch.ones(IMAGES)), IMAGES),
    ],
)
def test_records_compiled_programs(compile: Callable[[], Any], shape: tuple[int, ...], gradients: bool) -> None:
    torch.manual_seed(0)
    compiled = compile()
    with torch.set_grad_enabled(gradients), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):  # until kernels run
            compiled(torch.randn(shape))
        around = Around(compiled)
        traced = torch.jit.trace(around, torch.randn(shape), check_trace=False)
        for _ in range(2):
            x = torch.randn(shape)
            torch.testing.assert_close(traced(x), around(x), rtol=1e-4, atol=1e-4)
