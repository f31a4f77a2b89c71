"""PTX of kernels for GPUs: aligned vectors, no memory of a thread's own, no contracted products; and the devices on
which it is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rekindle.codegen.cuda import devices
from rekindle.codegen.cuda.devices import CudaDevice, cuda_device
from rekindle.codegen.cuda.libdevice import VARIABLE, find_libdevice
from rekindle.codegen.cuda.machine import CudaMachine
from rekindle.codegen.cuda.modules import DeviceModule, device_module
from rekindle.codegen.cuda.ptx import PtxTarget, ptx_of, ptx_target
from rekindle.codegen.layout import Layout
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.lowering import lower
from tests.codegen.cuda.programs import CASES, Arguments, chain, floats, graph_of, softmax, total


def module_of(function: Callable[..., Any], *arguments: Any, has_libdevice: bool = False) -> DeviceModule:
    """The functions of a program's kernel; without libdevice, mathematical functions are inline."""
    layouts = [
        Layout(tuple(each.shape), each.stride(), each.dtype) if isinstance(each, Tensor) else type(each)
        for each in arguments
    ]
    kernel = lower(graph_of(function, *arguments), layouts, "cuda").kernel
    return device_module(kernel, CudaMachine(has_libdevice))


@pytest.mark.parametrize(
    ("capability", "driver", "expected"),
    [
        ((8, 0), 11020, PtxTarget("sm_80", "+ptx70")),
        ((8, 6), 11060, PtxTarget("sm_86", "+ptx74")),
        ((8, 9), 11080, PtxTarget("sm_89", "+ptx78")),
        ((9, 0), 12040, PtxTarget("sm_90", "+ptx80")),
        ((12, 0), 13000, PtxTarget("sm_90", "+ptx80")),  # what later GPUs run too
    ],
)
def test_targets(capability: tuple[int, int], driver: int, expected: PtxTarget) -> None:
    assert ptx_target(capability, driver) == expected


@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
@pytest.mark.parametrize(("function", "arguments", "launches"), CASES)
def test_programs(
    function: Callable[..., Any], arguments: Arguments, launches: list[str], capability: tuple[int, int]
) -> None:
    module = module_of(function, *arguments(), has_libdevice=True)
    text = ptx_of(module.for_gpu(), ptx_target(capability, 12000), None)
    assert re.findall(r"\.entry (\w+)", text) == list(module.functions)
    assert ".local" not in text, "everything is in registers"
    assert re.findall(r"\.maxntid (\d+)", text) == [str(threads) for threads in module.most_threads.values()]
    for launch in launches:
        name = launch.partition(" ")[0]
        assert any(each.endswith(f"_{name}") for each in module.functions)


def test_vectors_of_16_bytes() -> None:
    text = ptx_of(module_of(chain, floats(64), floats(64)).for_gpu(), ptx_target((9, 0), 12000), None)
    vector = text[text.index(".entry nest0_vector") :]
    assert len(re.findall(r"ld\.global\.v4\.\w32", vector)) == 2
    assert len(re.findall(r"st\.global\.v4\.\w32", vector)) == 1
    short = [floats(64).bfloat16(), floats(64).bfloat16()]
    text = ptx_of(module_of(chain, *short).for_gpu(), ptx_target((9, 0), 12000), None)
    vector = text[text.index(".entry nest0_vector") :]
    assert len(re.findall(r"ld\.global\.v4\.\w32", vector)) == 2
    assert "cvt.rn.bf16x2.f32" in vector


def test_products_and_sums_are_rounded_one_by_one() -> None:
    """As by the operators one by one; the assembler may contract what does not say how it is rounded."""
    text = ptx_of(module_of(lambda a, b: a * b + 1.0, floats(8), floats(8)).for_gpu(), ptx_target((8, 0), 12000), None)
    assert "mul.rn.f32" in text
    assert "add.rn.f32" in text
    assert "fma" not in text


def test_maxima_that_a_nan_wins_are_one_instruction() -> None:
    text = ptx_of(module_of(softmax, floats(4, 8)).for_gpu(), ptx_target((8, 0), 12000), None)
    assert "max.NaN.f32" in text


def test_libdevice_is_found_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "libdevice.10.bc"
    path.write_bytes(b"")
    monkeypatch.setenv(VARIABLE, str(path))
    find_libdevice.cache_clear()
    try:
        assert find_libdevice() == path
    finally:
        find_libdevice.cache_clear()


class FakeDriver:
    """The functions of the driver's library; ``capability`` is that of its device, ``errors`` are what some return."""

    def __init__(self, capability: tuple[int, int] = (9, 0), errors: dict[str, int] | None = None) -> None:
        self.capability = capability
        self.errors = errors or {}
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.called.append(name)
            if name == "cuGetErrorString":
                arguments[1]._obj.value = b"a reason"
            elif name == "cuDriverGetVersion":
                arguments[0]._obj.value = 12040
            elif name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = self.capability[arguments[1] - 75]
            return self.errors.get(name, 0)

        return call


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[FakeDriver], None]]:
    """Have a library in place of the driver's, as if PyTorch were a build for CUDA."""

    def use(library: FakeDriver) -> None:
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        monkeypatch.setattr(devices, "_driver", lambda: devices._Driver(library))  # type: ignore[arg-type]
        monkeypatch.setattr(devices, "find", lambda _: 1)
        monkeypatch.setattr(devices._Driver, "address", lambda _self, _name: 1)
        cuda_device.cache_clear()

    yield use
    cuda_device.cache_clear()


def test_a_device(driver: Callable[[FakeDriver], None]) -> None:
    driver(FakeDriver((8, 6)))
    device = cuda_device(0)
    assert isinstance(device, CudaDevice)
    assert device.capability == (8, 6)


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (FakeDriver((7, 5)), "a GPU of compute capability 7.5; from 8.0 on there are kernels"),
        (FakeDriver(errors={"cuDeviceGet": 101}), "cuDeviceGet of the CUDA driver fails: a reason"),
    ],
)
def test_devices_without_kernels(driver: Callable[[FakeDriver], None], library: FakeDriver, message: str) -> None:
    driver(library)
    with pytest.raises(Unsupported, match=f"^{re.escape(message)}$"):
        cuda_device(0)


def test_machine_code_on_disk_is_that_of_the_libdevice_that_is_installed(
    driver: Callable[[FakeDriver], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An upgrade of its package leaves another file in the same place."""
    library, linked = tmp_path / "libdevice.10.bc", list[str]()

    def link(_: devices._Driver, ptx: str) -> bytes:
        linked.append(ptx)
        return b"machine code"

    driver(FakeDriver())
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(devices, "find_libdevice", lambda: library)
    monkeypatch.setattr(devices._Driver, "link", link)
    module = module_of(total, floats(8), floats(8))
    for content, links in [(b"one", 1), (b"one", 1), (b"another", 2)]:
        if not library.exists() or library.read_bytes() != content:
            library.write_bytes(content)
        cuda_device(0).load(module)
        assert len(linked) == links


def test_ptx_that_the_driver_refuses(driver: Callable[[FakeDriver], None]) -> None:
    library = FakeDriver(errors={"cuLinkAddData_v2": 218})
    driver(library)
    with pytest.raises(Unsupported, match=r"^cuLinkAddData_v2 of the CUDA driver fails: a reason\n"):
        devices._Driver(library).link("no PTX")  # type: ignore[arg-type]
    assert library.called[-1] == "cuLinkDestroy", "nothing is left"


def test_other_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    cuda_device.cache_clear()
    with pytest.raises(Unsupported, match=r"^a GPU of another vendor than NVIDIA$"):
        cuda_device(0)


def test_reductions_of_a_function_have_the_same_shared_memory() -> None:
    """A block has 48 KiB of it, of which the sums of 4 by 512 columns of bfloat16 would need 64."""

    def sums(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
        return a.sum(0) + b.sum(0) * 2 + c.sum(0) * 3 + d.sum(0) * 4

    text = ptx_of(module_of(sums, *[floats(4, 8).bfloat16()] * 4).for_gpu(), ptx_target((8, 0), 12000), None)
    sizes = dict(re.findall(r"\.shared \.align \d+ \.b8 (\w+)\[(\d+)\]", text))
    assert sizes["shared_nest0_vector"] == sizes["shared_nest0_split_vector"] == str(512 * 8 * 4)
