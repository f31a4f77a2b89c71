"""Kernels for GPUs give what PyTorch gives: they are emulated on the host, launched by the launcher that GPUs have."""

from __future__ import annotations

import itertools
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from rekindle.codegen.compiled_kernels import KernelStatus
from rekindle.codegen.cuda.devices import DEVICE_TYPE
from rekindle.codegen.cuda.launcher_ir import launcher_text
from rekindle.codegen.cuda.machine import CudaMachine
from rekindle.codegen.cuda.modules import device_module
from rekindle.codegen.layout import Layout
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.lowering import LoweredKernel, lower
from tests.codegen.cuda.emulator import EmulatedDevice, Launch, emulated_launch, on_emulated_gpu
from tests.codegen.cuda.programs import (
    CASES,
    Arguments,
    chain,
    column_softmax,
    column_sum,
    floats,
    graph_of,
    softmax,
    taken,
    total,
)
from tests.codegen.samples import DTYPES, cases, names
from tests.codegen.test_pointwise import check
from tests.support.golden import GoldenTexts

if sys.platform != "linux":
    pytest.skip("the emulator needs glibc", allow_module_level=True)


def _described(launch: Launch) -> str:
    """``vector 4x256``: the variant, the blocks, and the threads of a block."""
    above = f"x{launch.y}" if launch.y > 1 else ""
    return f"{launch.function.partition('_')[2]} {launch.blocks}x{launch.x}{above}"


def _lowered(function: Callable[..., Any], *arguments: Any) -> LoweredKernel:
    inputs = [
        Layout(tuple(each.shape), each.stride(), each.dtype) if isinstance(each, Tensor) else type(each)
        for each in arguments
    ]
    return lower(graph_of(function, *arguments), inputs, "cuda")


@pytest.mark.parametrize(("function", "arguments", "launches"), CASES)
def test_programs(function: Callable[..., Any], arguments: Arguments, launches: list[str]) -> None:
    """Whichever threads run first."""
    given = arguments()
    graph, expected = graph_of(function, *given), function(*given)
    for is_reversed in (False, True):
        device = EmulatedDevice(is_reversed=is_reversed)
        found = emulated_launch(graph, list(given), device)
        torch.testing.assert_close(found, expected, check_stride=True)
        assert [_described(each) for each in device.launches] == launches


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")  # of samples of one number
@pytest.mark.parametrize("name", names())
def test_samples(name: str) -> None:
    """Of the operator database, on float32 and one other dtype. ``make sweep-fusion-emulated`` runs all of them."""
    kernels = 0
    for case in itertools.islice(cases(name, torch.float32), 20):
        kernels += check(case, torch.float32, on_emulated_gpu)
        if kernels == 2:
            break
    other = DTYPES[1 + zlib.crc32(name.encode()) % (len(DTYPES) - 1)]
    for case in itertools.islice(cases(name, other), 1):
        check(case, other, on_emulated_gpu)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (softmax, lambda: (floats(4, 70_000),)),  # a row has one block
        (column_softmax, lambda: (floats(3000, 5),)),
    ],
)
def test_what_would_use_too_little_of_a_gpu_is_left_to_the_operators(
    function: Callable[..., Any], arguments: Arguments
) -> None:
    given, device = arguments(), EmulatedDevice()
    assert emulated_launch(graph_of(function, *given), list(given), device) is KernelStatus.DECLINED
    assert device.launches == []


def test_a_launch_that_fails_is_left_to_the_operators() -> None:
    device = EmulatedDevice(error=2)
    given = [floats(8), floats(8)]
    assert emulated_launch(graph_of(chain, *given), given, device) is KernelStatus.FAILED


def test_an_index_out_of_bounds_stops_the_program() -> None:
    device = EmulatedDevice()
    given = [torch.tensor([1, 2]), floats(10, 4)]
    graph = graph_of(taken, *given)
    torch.testing.assert_close(emulated_launch(graph, given, device), taken(*given))
    assert not device.has_failed
    emulated_launch(graph, [torch.tensor([1, 10]), given[1]], device)
    assert device.has_failed


def test_what_has_no_elements_launches_nothing() -> None:
    device = EmulatedDevice()
    found = emulated_launch(graph_of(chain, floats(2), floats(2)), [floats(0), floats(0)], device)
    assert found.shape == (0,)
    assert device.launches == []


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: torch.cumsum(x * 2.0, -1), "a scan on a GPU"),
        (lambda x: (x * 2.0).argmax(-1), "the index of an extreme on a GPU"),
    ],
)
def test_what_has_no_kernel(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(Unsupported, match=rf"^{reason}$"):
        device_module(_lowered(function, floats(4, 8)).kernel, CudaMachine())


def test_without_libdevice_there_are_the_functions_that_are_inline() -> None:
    device_module(_lowered(chain, floats(8), floats(8)).kernel, CudaMachine(has_libdevice=False))
    with pytest.raises(Unsupported, match=r"^'sin' on a GPU without libdevice$"):
        device_module(_lowered(lambda x: torch.sin(x) * 2.0, floats(8)).kernel, CudaMachine(has_libdevice=False))


@pytest.mark.parametrize(
    ("title", "function", "arguments"),
    [
        ("elementwise", chain, lambda: (floats(8), floats(8))),
        ("rows", softmax, lambda: (floats(4, 8),)),
        ("columns", column_sum, lambda: (floats(4, 8), floats(4, 8))),
        ("full_reduction", total, lambda: (floats(8), floats(8))),
    ],
)
def test_texts(title: str, function: Callable[..., Any], arguments: Arguments, golden: GoldenTexts) -> None:
    kernel = _lowered(function, *arguments()).kernel
    module = device_module(kernel, CudaMachine())
    golden(f"codegen/cuda/{title}", module.text)
    launcher = launcher_text(kernel, module.functions, DEVICE_TYPE, 0)
    golden(f"codegen/cuda/{title}_launcher", launcher[launcher.index("define i64 @kernel") :])
