"""Depthwise convolutions without copies, beside PyTorch's in 64-bit floats: borders, odd sizes, guard pages."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from rekindle.codegen.convolution import depthwise, direct
from rekindle.codegen.convolution.activations import ACTIVATIONS, Activation
from rekindle.codegen.convolution.depthwise import DepthwiseConvolution
from rekindle.codegen.convolution.direct import Geometry
from rekindle.codegen.llvm.target import named_target
from rekindle.errors import RekindleError
from tests.codegen.convolution.test_direct import LAST, reference, tolerance
from tests.codegen.test_bounds import Guarded

NONE = ACTIVATIONS["none"]
LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor | None, Geometry]:
    kernel = draw(st.tuples(st.integers(1, 8), st.integers(1, 5)))
    stride = draw(st.tuples(st.integers(1, 5), st.integers(1, 3)))
    dilation = draw(st.tuples(st.integers(1, 4), st.integers(1, 2)))
    padding = draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))
    channels = draw(st.integers(2, 100))
    smallest = [max(1, dilation[axis] * (kernel[axis] - 1) + 1 - 2 * padding[axis]) for axis in (0, 1)]
    size = [smallest[axis] + draw(st.integers(0, 20)) for axis in (0, 1)]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    image = torch.randn(draw(st.integers(1, 3)), channels, *size, generator=generator)
    weight = torch.randn(channels, 1, *kernel, generator=generator)
    bias = torch.randn(channels, generator=generator) if draw(st.booleans()) else None
    return image, weight, bias, Geometry(stride, padding, dilation, channels)


@given(cases(), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_it_is_the_convolution(case: tuple[Tensor, Tensor, Tensor | None, Geometry], adds: bool, relu: bool) -> None:
    image, weight, bias, geometry = case
    assert depthwise.applies(weight, geometry)
    sizes = geometry.output_sizes(image.shape, weight.shape)
    residual = torch.randn(sizes, generator=torch.Generator().manual_seed(1)) if adds else None
    found = DepthwiseConvolution(weight, bias, geometry, ACTIVATIONS["relu"] if relu else NONE).run(image, residual)
    assert found is not None
    expected = reference(image, weight, bias, geometry, residual, relu)
    assert found.shape == expected.shape
    assert found.is_contiguous(memory_format=LAST)
    assert (found - expected).abs().max() <= tolerance(image, weight)


@pytest.mark.parametrize(
    ("shape", "geometry"),
    [
        ((6, 2, 3, 3), Geometry((1, 1), (1, 1), (1, 1), 3)),
        ((6, 1, 3, 3), Geometry((1, 1), (1, 1), (1, 1), 3)),
        ((6, 1, 3, 8), Geometry((1, 1), (1, 1), (1, 1), 6)),
        ((6, 1, 3, 3), Geometry((1, 5), (1, 1), (1, 1), 6)),
        ((1, 1, 3, 3), Geometry((1, 1), (1, 1), (1, 1), 1)),
    ],
)
def test_other_convolutions_have_other_kernels(shape: tuple[int, ...], geometry: Geometry) -> None:
    assert not depthwise.applies(torch.zeros(shape), geometry)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activations_on_older_processors(activation: Activation, level: str) -> None:
    """Also of channels that do not fill a vector, and of numbers far from zero."""
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    generator = torch.Generator().manual_seed(6)
    image = torch.randn(2, 53, 5, 9, generator=generator) * torch.logspace(-6, 3, 45).view(5, 9)
    image[0, 0, 0, :5] = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0, -0.0])
    geometry = Geometry((1, 1), (0, 0), (1, 1), 53)
    found = DepthwiseConvolution(torch.ones(53, 1, 1, 1), None, geometry, activation, target).run(image)
    expected = activation.apply(image.double().clone())
    assert found is not None
    if activation.name.startswith("gelu"):  # PyTorch's own kernels disagree about infinity
        found[0, 0, 0, :2], expected[0, 0, 0, :2] = 0, 0
    torch.testing.assert_close(found.double(), expected, rtol=3e-6, atol=1e-7, equal_nan=True)


def test_infinite_numbers_and_nan_reach_what_they_reach_in_pytorch() -> None:
    generator = torch.Generator().manual_seed(3)
    image = torch.randn(1, 40, 9, 9, generator=generator)
    image[0, 2, 4, 4], image[0, 5, 0, 0], image[0, 39, 8, 8] = torch.inf, torch.nan, -torch.inf
    weight = torch.randn(40, 1, 3, 3, generator=generator)
    geometry = Geometry((1, 1), (1, 1), (1, 1), 40)
    for relu in (False, True):
        found = DepthwiseConvolution(weight, None, geometry, ACTIVATIONS["relu"] if relu else NONE).run(image)
        assert found is not None
        expected = reference(image, weight, None, geometry, None, relu)
        assert torch.equal(found.isnan(), expected.isnan())
        assert torch.equal(found.isinf(), expected.isinf())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("activation", ["none", "hardswish", "silu"])
@pytest.mark.parametrize(("channels", "stride", "padding"), [(17, 1, 0), (40, 2, 2), (7, 1, 1), (64, 1, 4)])
def test_nothing_beside_the_tensors_is_touched(
    channels: int,
    stride: int,
    padding: int,
    activation: str,
    at_end: bool,
    level: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    generator = torch.Generator().manual_seed(5)
    image = torch.randn(1, channels, 5, 10, generator=generator).contiguous(memory_format=LAST)
    weight = torch.randn(channels, 1, 2, 3, generator=generator)
    geometry = Geometry((stride, stride), (padding, padding), (1, 1), channels)
    residual = torch.randn(geometry.output_sizes(image.shape, weight.shape), generator=generator)
    residual = residual.contiguous(memory_format=LAST)
    kept = []

    def guarded(like: Tensor) -> Tensor:
        kept.append(Guarded(like.numel() * like.element_size(), at_end))
        return kept[-1].tensor(like)

    empty = torch.empty_strided
    monkeypatch.setattr(
        direct.torch, "empty_strided", lambda *sizes, **options: guarded(empty(*sizes, **options).fill_(0.0))
    )
    convolution = DepthwiseConvolution(weight, None, geometry, ACTIVATIONS[activation], target)
    convolution._packed["weights"] = [(guarded(weights), guarded(bias)) for weights, bias in convolution._pack()]
    found = convolution.run(guarded(image), guarded(residual))
    expected = ACTIVATIONS[activation].apply(reference(image, weight, None, geometry, residual, False))
    assert found is not None
    assert (found - expected).abs().max() <= 4 * tolerance(image, weight)


def test_threads_share_the_tasks() -> None:
    image, weight = torch.randn(3, 84, 37, 41), torch.randn(84, 1, 5, 5)
    convolution = DepthwiseConvolution(weight, None, Geometry((1, 1), (2, 2), (1, 1), 84), NONE)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            results.append(convolution.run(image))
    finally:
        torch.set_num_threads(before)
    first, *others = results
    assert first is not None
    torch.testing.assert_close(first, torch.conv2d(image, weight, None, 1, 2, 1, 84), rtol=1e-4, atol=1e-4)
    for each in others:
        assert each is not None
        assert torch.equal(each, first), "each number is computed by one thread, in the same order"
