"""Transposed convolutions beside PyTorch's in 64-bit floats, and within optimized modules."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

import rekindle
from rekindle.codegen.convolution.activations import ACTIVATIONS
from rekindle.codegen.convolution.transposed import TransposedConvolution
from tests.codegen.convolution.test_packed_operators import force

LAST = torch.channels_last


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_it_is_the_transposed_convolution(data: st.DataObject) -> None:
    kernel = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    batch, channels, outputs, height, width = (data.draw(st.integers(1, most)) for most in (3, 40, 70, 6, 6))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    image = torch.randn(batch, channels, height, width, generator=generator)
    if data.draw(st.booleans()):
        image = image.contiguous(memory_format=LAST)
    weight = torch.randn(channels, outputs, *kernel, generator=generator)
    bias = torch.randn(outputs, generator=generator) if data.draw(st.booleans()) else None
    activation = ACTIVATIONS[data.draw(st.sampled_from(["none", "relu", "silu"]))]
    found = TransposedConvolution(weight, bias, activation=activation).run(image)
    assert found is not None
    wide = None if bias is None else bias.double()
    expected = activation.apply(torch.conv_transpose2d(image.double(), weight.double(), wide, kernel))
    assert found.is_contiguous(memory_format=LAST)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


class Upsampling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.wider = nn.ConvTranspose2d(16, 24, 2, 2)
        self.last = nn.Conv2d(24, 5, 1)
        self.overlapping = nn.ConvTranspose2d(5, 4, 4, 2, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.relu(self.wider(self.first(x)))
        return y, self.overlapping(self.last(y))


@pytest.mark.parametrize("forced", [0, -1])
def test_optimized_modules(forced: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    force(forced, monkeypatch)
    module = Upsampling().eval()
    fast = rekindle.optimize_for_inference(rekindle.script(module))
    [packed] = fast.graph.find_nodes("prim::packed_transposed_convolution")
    assert packed.get_string("activation") == "relu"
    x = torch.randn(2, 3, 7, 6)
    with torch.no_grad():
        for image in (x, x.contiguous(memory_format=LAST)):
            for found, expected in zip(fast(image), module(image), strict=True):
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
                assert found.stride() == expected.stride()
        torch.testing.assert_close(fast(x[0]), module(x[0]))
    x.requires_grad_()
    (ours,) = torch.autograd.grad(fast(x)[1].sum(), x)
    (theirs,) = torch.autograd.grad(module(x)[1].sum(), x)
    torch.testing.assert_close(ours, theirs)
