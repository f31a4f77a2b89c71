"""Direct convolutions beside PyTorch's in 64-bit floats: all geometries, odd sizes, hostile numbers, guard pages."""

from __future__ import annotations

import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from rekindle.codegen.convolution import direct
from rekindle.codegen.convolution.activations import ACTIVATIONS, Activation
from rekindle.codegen.convolution.direct import DirectConvolution, Geometry
from rekindle.codegen.convolution.direct_ir import DirectWord, Form, chains_for, module_text
from rekindle.codegen.convolution.task_function import TaskFunction
from rekindle.codegen.convolution.workspace import Workspace
from rekindle.codegen.llvm.target import Target, host_target, named_target
from rekindle.errors import RekindleError
from tests.codegen.test_bounds import Guarded

LAST = torch.channels_last
ONE = Geometry((1, 1), (0, 0), (1, 1), 1)


def reference(
    image: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, residual: Tensor | None, relu: bool
) -> Tensor:
    wide = [None if each is None else each.double() for each in (weight, bias, residual)]
    assert wide[0] is not None
    result = torch.conv2d(
        image.double(), wide[0], wide[1], geometry.stride, geometry.padding, geometry.dilation, geometry.groups
    )
    result = result if wide[2] is None else result + wide[2]
    return result.relu() if relu else result


def tolerance(image: Tensor, weight: Tensor) -> float:
    """What rounding may amount to: so many sums of numbers of this size."""
    terms = weight[0].numel()
    return 4 * torch.finfo(torch.float32).eps * math.sqrt(terms) * float(image.abs().max() * weight.abs().max() + 1)


PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor | None, Geometry, bool, bool]:
    kind = draw(st.sampled_from(["dense", "grouped", "depthwise"]))
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    stride, dilation = draw(PAIRS), draw(PAIRS)
    padding = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    if kind == "depthwise":
        groups = draw(st.integers(2, 70))
        inputs, outputs = groups, groups
    else:
        groups = 1 if kind == "dense" else draw(st.integers(2, 3))
        inputs, outputs = groups * draw(st.integers(1, 70)), groups * draw(st.integers(1, 70))
    size = [draw(st.integers(1, 9)) + dilation[axis] * (kernel[axis] - 1) for axis in (0, 1)]
    batch = draw(st.integers(1, 3))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    image = torch.randn(batch, inputs, *size, generator=generator)
    if draw(st.booleans()):
        image = image.contiguous(memory_format=LAST)
    weight = torch.randn(outputs, inputs // groups, *kernel, generator=generator)
    bias = torch.randn(outputs, generator=generator) if draw(st.booleans()) else None
    return image, weight, bias, Geometry(stride, padding, dilation, groups), draw(st.booleans()), draw(st.booleans())


@given(cases())
@settings(max_examples=150, deadline=None)
def test_it_is_the_convolution(case: tuple[Tensor, Tensor, Tensor | None, Geometry, bool, bool]) -> None:
    image, weight, bias, geometry, relu, adds = case
    convolution = DirectConvolution(weight, bias, geometry, ACTIVATIONS["relu"] if relu else ACTIVATIONS["none"])
    sizes = geometry.output_sizes(image.shape, weight.shape)
    residual = torch.randn(sizes, generator=torch.Generator().manual_seed(1)) if adds else None
    found = convolution.run(image, residual)
    if found is None:
        pytest.fail("there is code for it on this platform")
    expected = reference(image, weight, bias, geometry, residual, relu)
    assert found.shape == expected.shape
    assert found.is_contiguous(memory_format=LAST)
    assert (found - expected).abs().max() <= tolerance(image, weight)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("geometry", [Geometry((2, 2), (1, 1), (1, 1), 1), Geometry((1, 3), (0, 2), (2, 1), 1)])
@pytest.mark.parametrize("kernel", [(3, 5), (5, 3), (2, 7)])
def test_images_of_few_channels_are_read_as_they_are(
    channels: int, geometry: Geometry, kernel: tuple[int, int]
) -> None:
    """Rows of three and seven numbers are computed without a loop, if the kernel has no dilation along them."""
    generator = torch.Generator().manual_seed(channels)
    weight, bias = torch.randn(21, channels, *kernel, generator=generator), torch.randn(21, generator=generator)
    convolution = DirectConvolution(weight, bias, geometry, ACTIVATIONS["none"])
    image = torch.randn(3, channels, 13, 17, generator=generator)
    others = [image.contiguous(memory_format=LAST), image.transpose(2, 3).contiguous().transpose(2, 3), image[::2]]
    for each in (image, *others, image):
        found = convolution.run(each)
        assert found is not None
        assert found.is_contiguous(memory_format=LAST)
        expected = reference(each, weight, bias, geometry, None, False)
        assert (found - expected).abs().max() <= tolerance(image, weight)
    assert convolution._reads_planes(image) == (1 < channels <= 4), "one channel is in both orders"


def test_a_tile_may_have_one_position_less() -> None:
    try:
        target = named_target("x86-64-v4")
    except RekindleError as error:
        pytest.skip(str(error))
    rows = {positions: direct.tile_rows(target, positions) for positions in (1, 3, 6, 7, 8, 49, 63, 64)}
    assert rows == {1: 1, 3: 2, 6: 4, 7: 7, 8: 8, 49: 7, 63: 7, 64: 8}


@pytest.mark.parametrize(("positions", "lines"), [(8, 8), (16, 4), (32, 2), (64, 1), (4, None)])
def test_every_line_of_the_next_block_is_prefetched(
    positions: int, lines: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        target = named_target("x86-64-v4")
    except RekindleError as error:
        pytest.skip(str(error))
    forms: list[Form] = []
    known = direct._function

    def function(form: Form, target: Target) -> TaskFunction | None:
        forms.append(form)
        return known(form, target)

    monkeypatch.setattr(direct, "_function", function)
    weight = torch.randn(96, 512, 1, 1, generator=torch.Generator().manual_seed(0))
    image = torch.randn(1, 512, positions, 1, generator=torch.Generator().manual_seed(1))
    found = DirectConvolution(weight, None, ONE, ACTIVATIONS["none"], target).run(image)
    assert found is not None
    assert (found - reference(image, weight, None, ONE, None, False)).abs().max() <= tolerance(image, weight)
    (form,) = forms
    assert form.chains > 1 if lines is None else form.chains == 1
    if lines is None:
        return
    tiles, steps, block = -(-positions // form.rows), weight.shape[1] // form.unroll, weight.shape[1] * 32 * 4
    assert form.fetched == lines
    assert tiles * steps * form.fetched * 64 == block
    fetched = module_text(target, form).count("i32 0, i32 2, i32 1)")
    assert fetched == 3 * lines, "in the loops of a whole block, and of the last one with one and with two vectors"


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("groups", [1, 2, 24])
def test_older_processors(level: str, groups: int) -> None:
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    image, weight = torch.randn(2, 24, 9, 7), torch.randn(24, 24 // groups, 3, 3)
    geometry = Geometry((1, 2), (1, 1), (1, 1), groups)
    found = DirectConvolution(weight, None, geometry, ACTIVATIONS["none"], target).run(image, None)
    assert found is not None
    assert (found - reference(image, weight, None, geometry, None, False)).abs().max() <= tolerance(image, weight)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("channels", [2, 6, 251, 768, 770, 1028, 4 * 19 * 31])
def test_few_positions(level: str, channels: int) -> None:
    """Several chains divide the channels, or one chain has them all."""
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    generator = torch.Generator().manual_seed(channels)
    for kernel, outputs in ((1, 75), (3, 16)):
        weight = torch.randn(outputs, channels, kernel, kernel, generator=generator)
        for positions in range(1, 6):
            image = torch.randn(1, channels, kernel, positions + kernel - 1, generator=generator)
            found = DirectConvolution(weight, None, ONE, ACTIVATIONS["none"], target).run(image, None)
            assert found is not None
            exact = reference(image, weight, None, ONE, None, False)
            assert (found - exact).abs().max() <= tolerance(image, weight)
            if channels > 250:  # of a prime number of channels, or four times one, sums are long
                torchs = torch.conv2d(image, weight)
                own_error, torchs_error = ((each - exact).square().mean().sqrt() for each in (found, torchs))
                assert own_error <= (6 if channels in (251, 1028) else 2) * torchs_error


def test_chains_are_as_many_as_registers_hold() -> None:
    try:
        targets = [named_target(level) for level in ("x86-64-v3", "x86-64-v4")]
    except RekindleError as error:
        pytest.skip(str(error))
    chains = [[chains_for(target, rows, 768) for rows in (1, 2, 4, 8)] for target in targets]
    assert chains == [[4, 2, 1, 1], [4, 4, 2, 1]]
    assert [chains_for(targets[1], 1, channels) for channels in (768, 770, 771)] == [4, 2, 1]


def test_no_more_than_the_sizes_allow() -> None:
    """PyTorch's operator reports a kernel that is larger than the image."""
    convolution = DirectConvolution(
        torch.randn(4, 3, 5, 5), None, Geometry((1, 1), (0, 0), (1, 1), 1), ACTIVATIONS["none"]
    )
    assert convolution.run(torch.randn(1, 3, 4, 9), None) is None


@pytest.mark.parametrize("channels", [64, 192, 512, 2048, 251])
def test_long_sums_lose_no_more_digits_than_pytorch(channels: int) -> None:
    generator = torch.Generator().manual_seed(channels)
    image = torch.randn(1, channels, 6, 6, generator=generator)
    weight = torch.randn(40, channels, 3, 3, generator=generator)
    geometry = Geometry((1, 1), (1, 1), (1, 1), 1)
    found = DirectConvolution(weight, None, geometry, ACTIVATIONS["none"]).run(image, None)
    assert found is not None
    exact = reference(image, weight, None, geometry, None, False)
    torchs = torch.conv2d(image, weight, None, padding=1)
    error, torchs_error = ((each - exact).square().mean().sqrt() for each in (found, torchs))
    assert error <= (2 if channels != 251 else 6) * torchs_error, "a prime number of channels has no chunks"


@pytest.mark.parametrize("groups", [1, 8])
def test_infinite_numbers_and_nan_reach_what_they_reach_in_pytorch(groups: int) -> None:
    generator = torch.Generator().manual_seed(3)
    image = torch.randn(1, 8, 9, 9, generator=generator)
    image[0, 2, 4, 4], image[0, 5, 0, 0], image[0, 6, 8, 8] = torch.inf, torch.nan, -torch.inf
    weight = torch.randn(8, 8 // groups, 3, 3, generator=generator)
    for relu in (False, True):
        geometry = Geometry((1, 1), (1, 1), (1, 1), groups)
        activation = ACTIVATIONS["relu"] if relu else ACTIVATIONS["none"]
        found = DirectConvolution(weight, None, geometry, activation).run(image, None)
        assert found is not None
        expected = reference(image, weight, None, geometry, None, relu)
        assert torch.equal(found.isnan(), expected.isnan())
        assert torch.equal(found.isinf(), expected.isinf())


def test_numbers_of_many_magnitudes_and_denormals() -> None:
    generator = torch.Generator().manual_seed(4)
    scale = torch.logspace(-38, 3, 24)[None, :, None, None]
    image, weight = (
        torch.randn(1, 24, 7, 7, generator=generator) * scale,
        torch.randn(20, 24, 1, 1, generator=generator),
    )
    geometry = Geometry((1, 1), (0, 0), (1, 1), 1)
    found = DirectConvolution(weight, None, geometry, ACTIVATIONS["none"]).run(image, None)
    assert found is not None
    assert (found - reference(image, weight, None, geometry, None, False)).abs().max() <= tolerance(image, weight)
    tiny = torch.full((1, 2, 3, 3), 1e-42)
    found = DirectConvolution(
        torch.ones(2, 1, 1, 1), None, Geometry((1, 1), (0, 0), (1, 1), 2), ACTIVATIONS["none"]
    ).run(tiny, None)
    assert found is not None
    assert torch.equal(found, tiny)


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize(("channels", "groups"), [(3, 1), (24, 1), (33, 3), (17, 17), (40, 40)])
def test_nothing_beside_the_tensors_is_touched(
    channels: int, groups: int, padding: int, at_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(5)
    image = torch.randn(1, channels, 5, 6, generator=generator).contiguous(memory_format=LAST)
    outputs = channels if groups == channels else groups * 13
    weight = torch.randn(outputs, channels // groups, 2, 3, generator=generator)
    geometry = Geometry((1, 1), (padding, padding), (1, 1), groups)
    expected = reference(image, weight, None, geometry, None, False)
    kept = []

    def guarded(like: Tensor) -> Tensor:
        kept.append(Guarded(like.numel() * like.element_size(), at_end))
        return kept[-1].tensor(like)

    empty = torch.empty_strided
    monkeypatch.setattr(
        direct.torch, "empty_strided", lambda *sizes, **options: guarded(empty(*sizes, **options).fill_(0.0))
    )
    monkeypatch.setattr(Workspace, "of", lambda self, size: guarded(torch.empty(-(-size // 4))))
    convolution = DirectConvolution(weight, None, geometry, ACTIVATIONS["none"])
    found = convolution.run(guarded(image), guarded(expected.float().contiguous(memory_format=LAST)))
    assert found is not None
    assert (found - 2 * expected).abs().max() <= 4 * tolerance(image, weight)


def test_threads_share_the_tasks() -> None:
    image, weight = torch.randn(2, 64, 30, 31), torch.randn(72, 64, 3, 3)
    convolution = DirectConvolution(weight, None, Geometry((1, 1), (1, 1), (1, 1), 1), ACTIVATIONS["none"])
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            results.append(convolution.run(image, None))
    finally:
        torch.set_num_threads(before)
    first, *others = results
    assert first is not None
    for each in others:
        assert each is not None
        assert torch.equal(each, first), "each number is computed by one thread, in the same order"


def test_threads_may_make_the_first_calls_together() -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(16, 2, 3, 3), torch.randn(16)
    images = [torch.randn(1, 16, 5 + number, 6) for number in range(8)]
    expected = [torch.conv2d(image, weight, bias, 1, 1, 1, 8) for image in images]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            kernel = DirectConvolution(weight, bias, Geometry((1, 1), (1, 1), (1, 1), 8), ACTIVATIONS["none"])
            together = threading.Barrier(len(images))

            def call(
                image: torch.Tensor,
                kernel: DirectConvolution = kernel,
                together: threading.Barrier = together,
            ) -> torch.Tensor | None:
                together.wait()
                return kernel.run(image, None)

            with ThreadPoolExecutor(len(images)) as pool:
                for result, wanted in zip(pool.map(call, images), expected, strict=True):
                    torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)
    finally:
        sys.setswitchinterval(interval)


def test_sizes_beyond_those_that_are_kept() -> None:
    weight = torch.randn(4, 2, 1, 1)
    geometry = Geometry((1, 1), (0, 0), (1, 1), 1)
    convolution = DirectConvolution(weight, None, geometry, ACTIVATIONS["none"])
    for width in [*range(1, direct._MAX_SIZES + 10), 1, 2]:
        image = torch.randn(1, 2, 1, width)
        found = convolution.run(image, None)
        assert found is not None
        expected = reference(image, weight, None, geometry, None, False)
        assert (found - expected).abs().max() <= tolerance(image, weight)
    assert len(convolution._calls) == direct._MAX_SIZES


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activations(activation: Activation, level: str) -> None:
    """Also of channels that do not fill a vector, and of numbers far from zero."""
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    generator = torch.Generator().manual_seed(6)
    weight = torch.ones(37, 1, 1, 1)
    image = torch.randn(2, 1, 5, 7, generator=generator) * torch.logspace(-6, 3, 35).view(5, 7)
    image[0, 0, 0, :5] = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0, -0.0])
    found = DirectConvolution(weight, None, ONE, activation, target).run(image, None)
    expected = activation.apply(image.double().expand(2, 37, 5, 7).clone())
    assert found is not None
    if activation.name.startswith("gelu"):  # PyTorch's own kernels disagree about infinity
        found[0, :, 0, :2], expected[0, :, 0, :2] = 0, 0
    torch.testing.assert_close(found.double(), expected, rtol=3e-6, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("activation", ["none", "gelu"])
def test_the_order_of_tiles_does_not_change_results(
    threads: int, activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two images of 20 x 20, whose tiles cross rows and images, and 101 output channels: a rest of 5."""
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(2, 64, 20, 20, generator=generator).contiguous(memory_format=LAST)
    weight, bias = torch.randn(101, 64, 1, 1, generator=generator), torch.randn(101, generator=generator)
    residual = torch.randn(2, 101, 20, 20, generator=generator)
    monkeypatch.setattr(direct.torch, "get_num_threads", lambda: threads)
    bands, found = [], []
    for cache in (1 << 17, 1 << 30):
        monkeypatch.setattr(direct, "second_level_cache", lambda cache=cache: cache)
        convolution = DirectConvolution(weight, bias, ONE, ACTIVATIONS[activation])
        result = convolution.run(image, residual)
        assert result is not None
        found.append(result)
        call = convolution._calls[image.shape, False]
        assert call is not None
        bands.append((call.parts[0].words[DirectWord.BAND], call.parts[0].words[DirectWord.TILES]))
    assert bands == [(4, 100), (100, 100)] or host_target().vector_bits != 512
    assert torch.equal(found[0], found[1])
    wide = torch.conv2d(image.double(), weight.double(), bias.double()) + residual
    torch.testing.assert_close(found[0].double(), ACTIVATIONS[activation].apply(wide), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", [(7, 7), (3, 4), (2, 3)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_images_of_few_channels_are_read_plane_by_plane(kernel: tuple[int, int], dilation: int) -> None:
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(2, 3, 29, 31, generator=generator)
    weight = torch.randn(20, 3, *kernel, generator=generator)
    geometry = Geometry((2, 1), (3, 2), (dilation, dilation), 1)
    convolution = DirectConvolution(weight, None, geometry)
    found, last = convolution.run(image), convolution.run(image.contiguous(memory_format=LAST))
    assert found is not None
    assert last is not None
    assert sorted(convolution._packed) == ["planes", "weights"]
    expected = reference(image, weight, None, geometry, None, False)
    for each in (found, last):
        torch.testing.assert_close(each.double(), expected, rtol=1e-4, atol=1e-4)
