"""The intrinsics of GPU kernels, as functions in LLVM IR: thread coordinates, warp shuffles, barriers, assertions.

Kernels are written in terms of these functions alone, so that the same text runs on a host that emulates them.
"""

from __future__ import annotations

from typing import Final

WARP: Final = 32
"""The number of threads of a warp, which exchange values by shuffles."""

INTRINSICS: Final = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare void @llvm.nvvm.barrier0()
declare void @__assertfail(ptr, ptr, i32, ptr, i64)

@index_text = private constant [29 x i8] c"index or value out of bounds\\00"
@index_file = private constant [9 x i8] c"rekindle\\00"
@index_function = private constant [7 x i8] c"kernel\\00"

define internal i32 @thread.x() alwaysinline {
  %v = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  ret i32 %v
}

define internal i32 @thread.y() alwaysinline {
  %v = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  ret i32 %v
}

define internal i32 @threads.x() alwaysinline {
  %v = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  ret i32 %v
}

define internal i32 @threads.y() alwaysinline {
  %v = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  ret i32 %v
}

define internal i32 @block() alwaysinline {
  %v = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  ret i32 %v
}

define internal i32 @blocks() alwaysinline {
  %v = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  ret i32 %v
}

; Return the value of the thread of the warp whose lane differs by %mask.
define internal i32 @exchange(i32 %value, i32 %mask) alwaysinline convergent {
  %v = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %value, i32 %mask, i32 31)
  ret i32 %v
}

; Wait for all threads of the block.
define internal void @barrier() alwaysinline convergent {
  call void @llvm.nvvm.barrier0()
  ret void
}

; Stop the program as PyTorch's own kernels do: later calls of CUDA raise "device-side assert triggered".
define internal void @report_failure(ptr %status) {
  call void @__assertfail(ptr @index_text, ptr @index_file, i32 0, ptr @index_function, i64 1)
  ret void
}
"""
"""The functions on NVIDIA's GPUs."""
