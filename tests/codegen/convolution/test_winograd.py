"""Winograd's convolutions beside PyTorch's in 64-bit floats: odd sizes, errors, hostile numbers, guard pages."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from rekindle.codegen.convolution import winograd
from rekindle.codegen.convolution.activations import ACTIVATIONS, Activation
from rekindle.codegen.convolution.direct import Geometry
from rekindle.codegen.convolution.winograd import WinogradConvolution
from rekindle.codegen.convolution.winograd_ir import WinogradWord
from rekindle.codegen.convolution.workspace import Workspace
from rekindle.codegen.llvm.target import named_target
from rekindle.errors import RekindleError
from tests.codegen.convolution.test_direct import reference, tolerance
from tests.codegen.test_bounds import Guarded

LAST = torch.channels_last


def geometry(padding: tuple[int, int] = (1, 1)) -> Geometry:
    return Geometry((1, 1), padding, (1, 1), 1)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_it_is_the_convolution(data: st.DataObject) -> None:
    padding = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    height, width = (data.draw(st.integers(max(1, 3 - 2 * each), 12)) for each in padding)
    batch, channels, outputs = (data.draw(st.integers(1, most)) for most in (3, 70, 70))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    image = torch.randn(batch, channels, height, width, generator=generator)
    if data.draw(st.booleans()):
        image = image.contiguous(memory_format=LAST)
    weight = torch.randn(outputs, channels, 3, 3, generator=generator)
    bias = torch.randn(outputs, generator=generator) if data.draw(st.booleans()) else None
    relu = data.draw(st.booleans())
    convolution = WinogradConvolution(weight, bias, geometry(padding), ACTIVATIONS["relu" if relu else "none"])
    sizes = geometry(padding).output_sizes(image.shape, weight.shape)
    residual = torch.randn(sizes, generator=generator) if data.draw(st.booleans()) else None
    found = convolution.run(image, residual)
    assert found is not None
    expected = reference(image, weight, bias, geometry(padding), residual, relu)
    assert found.shape == expected.shape
    assert found.is_contiguous(memory_format=LAST)
    assert (found - expected).abs().max() <= 2 * tolerance(image, weight)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_older_processors_and_activations(level: str, activation: Activation) -> None:
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    generator = torch.Generator().manual_seed(1)
    image, weight = torch.randn(2, 24, 9, 7, generator=generator), torch.randn(41, 24, 3, 3, generator=generator)
    residual = torch.randn(2, 41, 9, 7, generator=generator)
    found = WinogradConvolution(weight, None, geometry(), activation, target).run(image, residual)
    assert found is not None
    expected = activation.apply(reference(image, weight, None, geometry(), residual, False))
    assert (found - expected).abs().max() <= 2 * tolerance(image, weight)


def test_a_kernel_larger_than_the_image() -> None:
    convolution = WinogradConvolution(torch.randn(16, 16, 3, 3), None, geometry((0, 0)))
    assert convolution.run(torch.randn(1, 16, 2, 9), None) is None


@pytest.mark.parametrize("decades", [0, 6])
@pytest.mark.parametrize("channels", [32, 64, 256, 512])
def test_errors_are_about_those_of_pytorch(channels: int, decades: int) -> None:
    """``decades`` are between adjacent pixels of an image. Errors of oneDNN with packed weights are two to five times
    those of PyTorch's operator here."""
    generator = torch.Generator().manual_seed(channels)
    image = torch.randn(4, channels, 14, 14, generator=generator)
    image *= torch.logspace(0, -decades, 14)[torch.randperm(14, generator=generator)]
    weight = torch.randn(channels, channels, 3, 3, generator=generator) / (9 * channels) ** 0.5
    found = WinogradConvolution(weight, None, geometry()).run(image, None)
    assert found is not None
    exact = reference(image, weight, None, geometry(), None, False)
    torchs = torch.conv2d(image, weight, None, padding=1)
    error, torchs_error = ((each - exact).square().mean().sqrt() for each in (found, torchs))
    assert error <= 1.5 * torchs_error


@pytest.mark.parametrize("number", [torch.inf, -torch.inf, torch.nan, 3e38])
def test_numbers_that_are_not_finite_are_left_to_other_kernels(number: float) -> None:
    image = torch.full((1, 16, 7, 7), 0.5)
    image[0, 3, 6, 2] = number
    weight = torch.full((20, 16, 3, 3), 1.0)
    for activation in ("none", "relu", "hardsigmoid"):
        assert WinogradConvolution(weight, None, geometry(), ACTIVATIONS[activation]).run(image, None) is None
    residual = torch.full((1, 20, 7, 7), number)
    found = WinogradConvolution(weight, None, geometry()).run(torch.zeros_like(image), residual)
    torch.testing.assert_close(found, residual, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize(("channels", "outputs"), [(16, 16), (19, 45), (64, 32)])
def test_nothing_beside_the_tensors_is_touched(
    channels: int, outputs: int, at_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(5)
    image = torch.randn(2, channels, 7, 5, generator=generator).contiguous(memory_format=LAST)
    weight = torch.randn(outputs, channels, 3, 3, generator=generator)
    expected = reference(image, weight, None, geometry(), None, False)
    kept = []

    def guarded(like: Tensor) -> Tensor:
        kept.append(Guarded(like.numel() * like.element_size(), at_end))
        return kept[-1].tensor(like)

    empty = torch.empty_strided
    monkeypatch.setattr(
        winograd.torch, "empty_strided", lambda *sizes, **options: guarded(empty(*sizes, **options).fill_(0.0))
    )
    monkeypatch.setattr(Workspace, "of", lambda self, size: guarded(torch.empty(-(-size // 4))))
    convolution = WinogradConvolution(weight, None, geometry())
    found = convolution.run(guarded(image), guarded(expected.float().contiguous(memory_format=LAST)))
    assert found is not None
    assert (found - 2 * expected).abs().max() <= 4 * tolerance(image, weight)


def test_threads_share_the_tasks() -> None:
    image, weight = torch.randn(2, 64, 30, 31), torch.randn(72, 64, 3, 3)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            results.append(WinogradConvolution(weight, None, geometry()).run(image, None))
    finally:
        torch.set_num_threads(before)
    first, *others = results
    assert first is not None
    for each in others:
        assert each is not None
        assert torch.equal(each, first), "each number is computed by one thread, in the same order"


def test_blocks_of_tiles_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block is chosen by the size of the cache, or by that of the weights if they are larger."""
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(1, 48, 21, 19, generator=generator).contiguous(memory_format=LAST)
    weight = torch.randn(40, 48, 3, 3, generator=generator)
    results, blocks = [], []
    for cache in (1, 1 << 19, 1 << 30):
        monkeypatch.setattr(winograd, "second_level_cache", lambda cache=cache: cache)
        convolution = WinogradConvolution(weight, None, geometry())
        result = convolution.run(image, None)
        assert result is not None
        results.append(result)
        call = convolution._calls[image.shape]
        assert call is not None
        blocks.append(call.words[WinogradWord.BLOCK])
    assert blocks[0] < blocks[1] < blocks[2]
    assert all(torch.equal(results[0], each) for each in results)
    assert (results[0] - reference(image, weight, None, geometry(), None, False)).abs().max() <= 2 * tolerance(
        image, weight
    )
