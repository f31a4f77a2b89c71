"""GPUs on which kernels are loaded: PyTorch's devices of type ``cuda``, through the CUDA driver."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

import torch

from rekindle.codegen.cuda.libdevice import find_libdevice
from rekindle.codegen.cuda.machine import CudaMachine
from rekindle.codegen.cuda.modules import DeviceModule
from rekindle.codegen.cuda.ptx import MIN_CAPABILITY, ptx_of, ptx_target
from rekindle.codegen.emission.machines import Machine
from rekindle.codegen.llvm.engine import disk_cache, generator_state
from rekindle.codegen.llvm.library import versions
from rekindle.codegen.llvm.symbols import find
from rekindle.codegen.loop_ir.builder import Unsupported

DEVICE_TYPE: Final = 1
"""The number that PyTorch has for the type ``cuda``."""

_OF_DRIVER: Final = ("cuLaunchKernel", "cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2")
_STREAM: Final = "aoti_torch_get_current_cuda_stream"
_COMPUTE_CAPABILITY: Final = (75, 76)
"""The numbers of the attributes that hold a device's compute capability."""
_JIT_INPUT_PTX: Final = 1
_JIT_ERROR_LOG_BUFFER, _JIT_ERROR_LOG_SIZE = 5, 6
_LOG_BYTES: Final = 8192


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """The functions of a module, by their order in it, in the memory of a device."""

    context: int
    functions: Sequence[int]


class Device(Protocol):
    """A device that kernels are loaded on: a GPU, or an emulator of one."""

    @property
    def type(self) -> int:
        """PyTorch's number for the type of the device on which memory is allocated."""

    @property
    def index(self) -> int:
        """The index of the device among those of its type."""

    @property
    def machine(self) -> Machine:
        """The machine description on which the generated arithmetic depends."""

    @property
    def addresses(self) -> Mapping[str, int]:
        """The addresses of the functions that launchers call: those of the driver, and PyTorch's function for the
        current stream."""

    def load(self, module: DeviceModule) -> LoadedModule:
        """Compile and load a module."""


@dataclass(slots=True)
class CudaDevice:
    """A GPU of PyTorch."""

    index: int
    machine: Machine
    addresses: Mapping[str, int]
    capability: tuple[int, int]
    _driver: _Driver = field(repr=False)
    _context: int = field(repr=False)

    @property
    def type(self) -> int:
        return DEVICE_TYPE

    def load(self, module: DeviceModule) -> LoadedModule:
        with self._driver.current(self._context):
            handle = ctypes.c_void_p()
            self._driver.call("cuModuleLoadData", ctypes.byref(handle), ctypes.c_char_p(self._image(module)))
            functions = []
            for name in module.functions:
                function = ctypes.c_void_p()
                self._driver.call("cuModuleGetFunction", ctypes.byref(function), handle, name.encode())
                functions.append(function.value or 0)
        return LoadedModule(self._context, functions)

    def _image(self, module: DeviceModule) -> bytes:
        """Return the machine code of a module: from the cache on disk, or compiled now and stored there."""
        target, driver = ptx_target(self.capability, self._driver.version), self._driver.version
        library = find_libdevice()
        text = module.for_gpu()
        parts = [versions(), generator_state(), str(self.capability), str(target), str(driver), _state(library), text]
        key, disk = json.dumps(parts).encode(), disk_cache()
        image = disk.load(key) if disk is not None else None
        if image is None:
            image = self._driver.link(ptx_of(text, target, library))
            if disk is not None:
                disk.store(key, image)
        return image


def _state(library: Path | None) -> str:
    """Return a string that changes when another file replaces ``library``: path, size and time."""
    if library is None:
        return ""
    status = library.stat()
    return f"{library} {status.st_size} {status.st_mtime_ns}"


@cache
def cuda_device(index: int) -> CudaDevice:
    """Return the device ``cuda:<index>``.

    Raises:
        Unsupported: it is not a GPU of NVIDIA, it is older than compute capability 8.0, or the driver's library is
            missing or reports an error.
    """
    if torch.version.cuda is None:
        raise Unsupported("a GPU of another vendor than NVIDIA")
    driver = _driver()
    stream = find(_STREAM)
    if driver is None or stream is None:
        raise Unsupported("a GPU without the libraries of its driver")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    driver.call("cuDeviceGet", ctypes.byref(device), index)
    capability = driver.attribute(device, _COMPUTE_CAPABILITY[0]), driver.attribute(device, _COMPUTE_CAPABILITY[1])
    if capability < MIN_CAPABILITY:
        raise Unsupported(f"a GPU of compute capability {capability[0]}.{capability[1]}; from 8.0 on there are kernels")
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    addresses = {name: driver.address(name) for name in _OF_DRIVER} | {_STREAM: stream}
    machine = CudaMachine(has_libdevice=find_libdevice() is not None)
    return CudaDevice(index, machine, addresses, capability, driver, context.value or 0)


class _Driver:
    """The CUDA driver's library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        version = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.version = version.value

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver.

        Raises:
            Unsupported: the function returns an error; the message has its text.
        """
        error = getattr(self.library, name)(*arguments)
        if error:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(error, ctypes.byref(text))
            raise Unsupported(f"{name} of the CUDA driver fails: {(text.value or b'unknown error').decode()}")

    def attribute(self, device: ctypes.c_int, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def address(self, name: str) -> int:
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0

    def current(self, context: int) -> _Current:
        """Return a context manager that makes ``context`` the current CUDA context of the thread."""
        return _Current(self, context)

    def link(self, ptx: str) -> bytes:
        """Compile PTX to machine code for the device of the current context.

        Raises:
            Unsupported: the driver does not compile it; the message has its log.
        """
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_JIT_ERROR_LOG_BUFFER, _JIT_ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        state, image, size, text = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(), ptx.encode()
        self.call("cuLinkCreate_v2", 2, options, values, ctypes.byref(state))
        try:
            data, length = ctypes.c_char_p(text), ctypes.c_size_t(len(text) + 1)
            self.call("cuLinkAddData_v2", state, _JIT_INPUT_PTX, data, length, b"kernel", 0, None, None)
            self.call("cuLinkComplete", state, ctypes.byref(image), ctypes.byref(size))
            return ctypes.string_at(image, size.value)
        except Unsupported as error:
            raise Unsupported(f"{error}\n{log.value.decode(errors='replace')}") from None
        finally:
            self.call("cuLinkDestroy", state)


@dataclass(slots=True)
class _Current:
    driver: _Driver
    context: int

    def __enter__(self) -> None:
        self.driver.call("cuCtxPushCurrent_v2", ctypes.c_void_p(self.context))

    def __exit__(self, *error: object) -> None:
        self.driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@cache
def _driver() -> _Driver | None:
    try:
        return _Driver(ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1"))
    except OSError:
        return None
