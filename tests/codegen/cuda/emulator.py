"""A GPU of the host: the functions of a module run thread by thread, on memory of the CPU.

Each thread of a block is a context of its own (``makecontext``), so that barriers and exchanges within a warp can
suspend it. Threads run one after the other up to the next such place, in either order. The launcher is the real one;
the driver's functions that it calls are stubs, of which ``cuLaunchKernel`` records the launch and runs it.
"""

from __future__ import annotations

import ctypes
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.compiled_kernels import CPU, CompiledKernel, KernelLaunch, KernelStatus
from rekindle.codegen.cuda.compiled import compile_for
from rekindle.codegen.cuda.devices import LoadedModule
from rekindle.codegen.cuda.modules import DeviceModule
from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.machines import HostMachine, Machine
from rekindle.codegen.layout import Layout
from rekindle.codegen.llvm.cpython_wrappers import python_function
from rekindle.codegen.llvm.engine import NativeCode, compile_module
from rekindle.codegen.llvm.target import host_target
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.scalar_types import ScalarType
from rekindle.codegen.lowering import lower
from rekindle.ir.graph import Graph

STACK: Final = 1 << 16
"""How many bytes of stack a thread has."""
_CONTEXT_BYTES: Final = 4096
"""More than a ucontext_t of glibc has."""
_POISON: Final = 0x5A
"""The bytes of results before they are written."""
_POINTERS: Final = 1
"""The value of the emulated context."""

_INTRINSICS: Final = """
%Thread = type { i32, i32, i32, i32, i32, i32, i32, i32, [4096 x i8] }
@current = global ptr null
@passed = global ptr null
@exchanged = global ptr null
@scheduler = global ptr null
@failed = global i64 0
declare i32 @getcontext(ptr)
declare void @makecontext(ptr, ptr, i32, ...)
declare i32 @swapcontext(ptr, ptr)

; LLVM calls this for fptrunc to bfloat where the processor has no instruction for it, and few libraries have it.
define bfloat @__truncsfbf2(float %value) {
  %bits = bitcast float %value to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %rounded = add i32 %bits, %half
  %upper = lshr i32 %rounded, 16
  %number = trunc i32 %upper to i16
  %is_nan = fcmp uno float %value, %value
  %result = select i1 %is_nan, i16 32704, i16 %number
  %own = bitcast i16 %result to bfloat
  ret bfloat %own
}
define ptr @passed_at() {
  ret ptr @passed
}
define ptr @exchanged_at() {
  ret ptr @exchanged
}
define ptr @failed_at() {
  ret ptr @failed
}
define i32 @field(i64 %number) {
  %thread = load ptr, ptr @current
  %place = getelementptr i32, ptr %thread, i64 %number
  %value = load i32, ptr %place
  ret i32 %value
}
define i32 @thread.x() {
  %v = call i32 @field(i64 0)
  ret i32 %v
}
define i32 @thread.y() {
  %v = call i32 @field(i64 1)
  ret i32 %v
}
define i32 @threads.x() {
  %v = call i32 @field(i64 2)
  ret i32 %v
}
define i32 @threads.y() {
  %v = call i32 @field(i64 3)
  ret i32 %v
}
define i32 @block() {
  %v = call i32 @field(i64 4)
  ret i32 %v
}
define i32 @blocks() {
  %v = call i32 @field(i64 5)
  ret i32 %v
}
define void @barrier() noinline {
  %thread = load ptr, ptr @current
  %own = getelementptr %Thread, ptr %thread, i64 0, i32 8
  %scheduler = load ptr, ptr @scheduler
  %e = call i32 @swapcontext(ptr %own, ptr %scheduler)
  ret void
}
define i32 @exchange(i32 %value, i32 %mask) noinline {
  %x = call i32 @field(i64 0)
  %y = call i32 @field(i64 1)
  %width = call i32 @field(i64 2)
  %row = mul i32 %y, %width
  %own = add i32 %row, %x
  %other = xor i32 %own, %mask
  %values = load ptr, ptr @exchanged
  %own_at = getelementptr i32, ptr %values, i32 %own
  %other_at = getelementptr i32, ptr %values, i32 %other
  store i32 %value, ptr %own_at
  call void @barrier()
  %found = load i32, ptr %other_at
  call void @barrier()
  ret i32 %found
}
define void @report_failure(ptr %status) {
  store i64 1, ptr @failed
  ret void
}
define void @finish() noinline {
  %thread = load ptr, ptr @current
  %done = getelementptr %Thread, ptr %thread, i64 0, i32 6
  store i32 1, ptr %done
  call void @barrier()
  ret void
}

; Prepare %thread to run %function on a stack of its own.
define void @prepare(ptr %thread, ptr %function, ptr %stack, i64 %size) {
  %own = getelementptr %Thread, ptr %thread, i64 0, i32 8
  %e = call i32 @getcontext(ptr %own)
  %stack_at = getelementptr i8, ptr %own, i64 16
  %size_at = getelementptr i8, ptr %own, i64 32
  store ptr %stack, ptr %stack_at
  store i64 %size, ptr %size_at
  call void (ptr, ptr, i32, ...) @makecontext(ptr %own, ptr %function, i32 0)
  ret void
}

; Run %count threads up to their next barrier; returns how many have not ended.
define i64 @round(ptr %threads, i64 %count) {
start:
  %scheduler = alloca [4096 x i8], align 16
  store ptr %scheduler, ptr @scheduler
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %counted]
  %live = phi i64 [0, %start], [%live_next, %counted]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %thread = getelementptr %Thread, ptr %threads, i64 %i
  %done_at = getelementptr %Thread, ptr %thread, i64 0, i32 6
  %done = load i32, ptr %done_at
  %is_done = icmp ne i32 %done, 0
  br i1 %is_done, label %counted, label %run
run:
  store ptr %thread, ptr @current
  %own = getelementptr %Thread, ptr %thread, i64 0, i32 8
  %e = call i32 @swapcontext(ptr %scheduler, ptr %own)
  br label %counted
counted:
  %added = phi i64 [0, %one], [1, %run]
  %live_next = add i64 %live, %added
  %next = add i64 %i, 1
  br label %loop
end:
  ret i64 %live
}
"""


class _Thread(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_int32),
        ("y", ctypes.c_int32),
        ("threads_x", ctypes.c_int32),
        ("threads_y", ctypes.c_int32),
        ("block", ctypes.c_int32),
        ("blocks", ctypes.c_int32),
        ("done", ctypes.c_int32),
        ("unused", ctypes.c_int32),
        ("context", ctypes.c_byte * _CONTEXT_BYTES),
    )


class EmulatedMachine:
    """A GPU whose mathematical functions are those of the host."""

    has_fma = True
    has_status = False

    def call(self, f: FunctionBuilder, name: str, scalar: ScalarType, values: Sequence[str], lanes: int) -> str:
        return HostMachine(host_target()).call(f, name, scalar, values, lanes)


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of a function: how many blocks, and how many threads a block has in each direction."""

    function: str
    blocks: int
    x: int
    y: int


@dataclass(slots=True, eq=False, repr=False)
class EmulatedDevice:
    """See the module; ``launches`` are recorded, and ``has_failed`` is whether an index was out of bounds."""

    machine: Machine = field(default_factory=lambda: EmulatedMachine())
    type: int = 0
    index: int = -1
    launches: list[Launch] = field(default_factory=list)
    has_failed: bool = False
    error: int = 0
    """What launches return instead of running."""
    is_reversed: bool = False
    """Whether the last block and the last thread of a block run first: what they read without a barrier is missing."""
    addresses: Mapping[str, int] = field(init=False)
    _functions: dict[int, tuple[NativeCode, str]] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        of_int = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        of_stream = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
        launch = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3, use_errno=False
        )
        stubs = {
            "cuLaunchKernel": launch(self._launch),
            "cuCtxGetCurrent": of_int(lambda to: _write(to, _POINTERS)),
            "cuCtxPushCurrent_v2": of_int(lambda _: 0),
            "cuCtxPopCurrent_v2": of_int(lambda _: 0),
            "aoti_torch_get_current_cuda_stream": of_stream(lambda _, to: _write(to, 0)),
        }
        self._kept.append(stubs)
        self.addresses = {name: ctypes.cast(stub, ctypes.c_void_p).value or 0 for name, stub in stubs.items()}

    def load(self, module: DeviceModule) -> LoadedModule:
        text = module.for_host(_INTRINSICS)
        thunks = [_thunk(name, re.search(rf"define void @{name}\((.*?)\) \{{", text)) for name in module.functions]
        code = compile_module("\n".join([text, *thunks]), cache=False)
        first = len(self._functions) + 1
        self._functions.update(enumerate(((code, name) for name in module.functions), first))
        return LoadedModule(_POINTERS, range(first, first + len(module.functions)))

    def _launch(
        self, function: int, blocks: int, _y: int, _z: int, x: int, y: int, z: int, _shared: int, _s: int,
        passed: int, _extra: int,
    ) -> int:  # fmt: skip
        code, name = self._functions[function]
        self.launches.append(Launch(name, blocks, x, y))
        if self.error or z != 1 or x * y > 1024 or not blocks:
            return self.error or 1
        count = x * y
        threads = (_Thread * count)()
        stacks = ctypes.create_string_buffer(count * STACK + 16)
        values = (ctypes.c_int32 * count)()
        _write(_variable(code, "passed"), passed)
        _write(_variable(code, "exchanged"), ctypes.addressof(values))
        prepare = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(code.address("prepare"))
        run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(code.address("round"))
        stack = -(-ctypes.addressof(stacks) // 16) * 16
        step = -1 if self.is_reversed else 1
        for block in range(blocks)[::step]:
            for number, (index, thread) in enumerate(zip(range(count)[::step], threads, strict=True)):
                thread.x, thread.y, thread.threads_x, thread.threads_y = index % x, index // x, x, y
                thread.block, thread.blocks, thread.done = block, blocks, 0
                address = ctypes.addressof(threads) + number * ctypes.sizeof(_Thread)
                prepare(address, code.address(f"run_{name}"), stack + number * STACK, STACK)
            while run(ctypes.addressof(threads), count):
                pass
        failed = ctypes.c_int64.from_address(_variable(code, "failed"))
        self.has_failed |= bool(failed.value)
        error, failed.value = 710 if failed.value else 0, 0
        return error


def emulated_launch(graph: Graph, inputs: list[Any], device: EmulatedDevice) -> Any:
    """What the kernel of ``graph`` gives on ``device``, or why it gives nothing.

    Raises:
        Unsupported: there is no kernel.
    """
    layouts = [
        Layout(tuple(each.shape), each.stride(), each.dtype) if isinstance(each, Tensor) else type(each)
        for each in inputs
    ]
    lowered = lower(graph, layouts, "cuda")
    code = compile_for(lowered.kernel, device)
    kernel = CompiledKernel(lowered.kernel, "", python_function(code, "kernel"), code, CPU)
    launch = KernelLaunch(
        kernel, "emulated", tuple(layouts), lowered.outputs, array("q", lowered.parameters), "compiled", 0.0
    )
    results = [torch.empty_strided(each.sizes, each.strides, dtype=each.dtype) for each in lowered.outputs]
    for result in results:
        ctypes.memset(result.data_ptr(), _POISON, result.untyped_storage().nbytes())
    status = launch.run(inputs, results)
    if status is not KernelStatus.DONE:
        return status
    return results[0] if len(results) == 1 else tuple(results)


def on_emulated_gpu(graph: Graph, inputs: list[Any]) -> Any:
    """What the kernel of ``graph`` for GPUs gives; None where there is none, or it leaves the work to PyTorch."""
    try:
        found = emulated_launch(graph, inputs, EmulatedDevice())
    except Unsupported:
        return None
    return None if isinstance(found, KernelStatus) else found


def _thunk(name: str, found: re.Match[str] | None) -> str:
    """A function without parameters that calls ``name`` with what was passed to the launch, and never returns."""
    assert found is not None
    lines, arguments = ["  %passed = load ptr, ptr @passed"], []
    for number, parameter in enumerate(found[1].split(", ")):
        type, place = parameter.split(" ")[0], parameter.split(" ")[-1]
        lines.append(f"  %at{number} = getelementptr ptr, ptr %passed, i64 {number}")
        lines.append(f"  %a{number} = load ptr, ptr %at{number}")
        value = f"%a{number}"
        if place in ("%known", "%parts", "%count"):  # passed by value
            value = f"%v{number}"
            lines.append(f"  {value} = load {type}, ptr %a{number}")
        arguments.append(f"{type} {value}")
    lines += [f"  call void @{name}({', '.join(arguments)})", "  call void @finish()", "  ret void"]
    return "\n".join([f"define void @run_{name}() {{", *lines, "}"])


def _variable(code: NativeCode, name: str) -> int:
    """The address of a variable of the intrinsics."""
    return int(ctypes.CFUNCTYPE(ctypes.c_void_p)(code.address(f"{name}_at"))() or 0)


def _write(address: int, value: int) -> int:
    ctypes.c_uint64.from_address(address).value = value
    return 0
