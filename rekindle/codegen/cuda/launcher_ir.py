"""The launcher: a host function in LLVM IR that launches the kernels of a GPU.

It has the signature of a kernel for CPUs: ``i64 kernel(ptr pointers, ptr parameters, ptr arguments)``. It returns 0 on
success. For any other :class:`~rekindle.codegen.kernel_status.KernelStatus`, the caller must run the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.codegen.cuda.launcher_builder import LauncherBuilder
from rekindle.codegen.cuda.nest_launches import NestLaunch
from rekindle.codegen.loop_ir.nodes import Kernel, LoopNest

TABLE: Final = "cuda_table"
"""The symbol of an array of pointers: the context of the device, then the functions of the module."""

_RUNTIME: Final = """
@cuda_table = external global ptr
declare i32 @cuLaunchKernel(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr)
declare i32 @cuCtxGetCurrent(ptr)
declare i32 @cuCtxPushCurrent_v2(ptr)
declare i32 @cuCtxPopCurrent_v2(ptr)
declare i32 @aoti_torch_get_current_cuda_stream(i32, ptr)
declare i32 @aoti_torch_empty_strided(i64, ptr, ptr, i32, i32, i32, ptr)
declare i32 @aoti_torch_get_data_ptr(ptr, ptr)
declare i32 @aoti_torch_delete_tensor_object(ptr)

; Launch function %number of the table on %blocks blocks; 1: that failed.
define internal i64 @launch(i64 %number, i64 %blocks, i64 %x, i64 %y, ptr %stream, ptr %passed) {
start:
  %none = icmp eq i64 %blocks, 0
  br i1 %none, label %fine, label %count
count:
  %many = icmp ugt i64 %blocks, 2147483647
  br i1 %many, label %wrong, label %call
call:
  %slot = getelementptr ptr, ptr @cuda_table, i64 %number
  %function = load ptr, ptr %slot
  %b = trunc i64 %blocks to i32
  %tx = trunc i64 %x to i32
  %ty = trunc i64 %y to i32
  %error = call i32 @cuLaunchKernel(ptr %function, i32 %b, i32 1, i32 1, i32 %tx, i32 %ty, i32 1, i32 0, ptr %stream,
      ptr %passed, ptr null)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %wrong, label %fine
fine:
  ret i64 0
wrong:
  ret i64 1
}

; Memory of the device for %bytes bytes. The at::Tensor on the heap that holds it; null: there is none.
define internal ptr @new_buffer(i64 %bytes, i32 %device, ptr %pointer) {
start:
  %size = alloca i64
  %stride = alloca i64
  %handle_to = alloca ptr
  store i64 %bytes, ptr %size
  store i64 1, ptr %stride
  %error = call i32 @aoti_torch_empty_strided(i64 1, ptr %size, ptr %stride, i32 0, i32 DEVICE_TYPE, i32 %device,
      ptr %handle_to)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %no, label %made
made:
  %handle = load ptr, ptr %handle_to
  %e = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %pointer)
  ret ptr %handle
no:
  ret ptr null
}

define internal void @free_buffer(ptr %handle) {
start:
  %none = icmp eq ptr %handle, null
  br i1 %none, label %end, label %free
free:
  %e = call i32 @aoti_torch_delete_tensor_object(ptr %handle)
  br label %end
end:
  ret void
}
"""


_BEGIN: Final = """
  %status = alloca i64
  store i64 0, ptr %status
  %stream_to = alloca ptr
  %current_to = alloca ptr
  %context = load ptr, ptr @cuda_table
  %e0 = call i32 @cuCtxGetCurrent(ptr %current_to)
  %current = load ptr, ptr %current_to
  %is_current = icmp eq ptr %current, %context
  br i1 %is_current, label %ready, label %push
push:
  %e1 = call i32 @cuCtxPushCurrent_v2(ptr %context)
  br label %ready
ready:
  %e2 = call i32 @aoti_torch_get_current_cuda_stream(i32 DEVICE, ptr %stream_to)
  %stream = load ptr, ptr %stream_to
"""
"""Make the device current, and get PyTorch's stream."""

_END: Final = """
  br i1 %is_current, label %end, label %pop
pop:
  %e3 = call i32 @cuCtxPopCurrent_v2(ptr %current_to)
  br label %end
end:
  %result = load i64, ptr %status
  ret i64 %result
}
"""


def launcher_text(kernel: Kernel, functions: Sequence[str], device_type: int, device: int) -> str:
    """Return the LLVM IR of ``kernel``'s launcher, which launches ``functions`` on a device of PyTorch: its type (1 for
    CUDA) and its index."""
    builder = LauncherBuilder(kernel, functions, device)
    builder.allocate_temporaries()
    first = 0
    for number, nest in enumerate(kernel.nests):
        assert isinstance(nest, LoopNest)
        NestLaunch(builder, nest, number, first).write()
        first += nest.parameters
    f = builder.f
    f.emit("br label %free")
    f.label("free")
    for buffer in builder.buffers:
        f.emit(f"call void @free_buffer(ptr {f.emit_value(f'load ptr, ptr {buffer}')})")
    declared = [builder.module.declarations[name] for name in sorted(builder.module.declarations)]
    head = ["define i64 @kernel(ptr %pointers, ptr %parameters, ptr %arguments) {", "entry:"]
    allocations = [line for line in f.lines if " = alloca " in line]
    others = [line for line in f.lines if " = alloca " not in line]
    begin = _BEGIN.strip("\n").replace("DEVICE", str(device))
    body = "\n".join([*declared, *head, *allocations, begin, *others, _END.strip("\n"), ""])
    return _RUNTIME.replace("DEVICE_TYPE", str(device_type)) + body
