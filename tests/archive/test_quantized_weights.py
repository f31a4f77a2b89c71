"""Archives of quantized networks of an ordinary size load within the limits."""

from __future__ import annotations

import io

import pytest
import torch
from torch import Tensor, nn

import rekindle


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quantize = torch.ao.quantization.QuantStub()
        self.convolution = nn.Conv2d(64, 512, 3)
        self.linear = nn.Linear(512, 1024)
        self.dequantize = torch.ao.quantization.DeQuantStub()

    def forward(self, x: Tensor) -> Tensor:
        y = self.convolution(self.quantize(x)).mean((2, 3))
        return self.dequantize(self.linear(y))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_packing_weights_takes_steps_in_proportion_to_them() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 64, 5, 5)
    net = Net().eval()
    net.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    prepared = torch.ao.quantization.prepare(net)
    prepared(x)
    quantized = torch.ao.quantization.convert(prepared)
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(quantized), file)
    file.seek(0)
    loaded = rekindle.load(file)
    assert torch.equal(loaded(x), quantized(x))
