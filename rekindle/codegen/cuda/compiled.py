"""Kernels of a GPU as functions of the host, with the interface of kernels for CPUs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rekindle.codegen.cuda.devices import Device
from rekindle.codegen.cuda.launcher_ir import TABLE, launcher_text
from rekindle.codegen.cuda.modules import device_module
from rekindle.codegen.llvm.cpython_wrappers import with_declarations, wrapper_ir
from rekindle.codegen.llvm.engine import NativeCode, compile_module
from rekindle.codegen.loop_ir.nodes import Kernel


@dataclass(slots=True)
class _Symbols:
    """Functions that launchers call, and the table of functions that they read, which lives as long as this object."""

    addresses: Mapping[str, int]
    keep: list[Any] = field(default_factory=list)


def compile_for(kernel: Kernel, device: Device) -> NativeCode:
    """Return the launcher of ``kernel`` on ``device``: a function ``kernel`` of the host. Its GPU code is compiled, and
    loaded on the device.

    Raises:
        Unsupported: the device does not support the kernel, or its driver does not compile it.
    """
    module = device_module(kernel, device.machine)
    loaded = device.load(module)
    table = (ctypes.c_void_p * (1 + len(loaded.functions)))(loaded.context, *loaded.functions)
    symbols = _Symbols({**device.addresses, TABLE: ctypes.addressof(table)}, [table, loaded])
    launcher = launcher_text(kernel, module.functions, device.type, device.index)
    wrapper = wrapper_ir("kernel", ["ptr", "ptr", "ptr"], "i64")
    return compile_module(with_declarations(launcher + wrapper), libraries=[symbols], is_shared=False)
