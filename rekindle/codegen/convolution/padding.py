"""Copies of channels-last images with zeros around them, for kernels that read no place outside an image."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from rekindle.codegen.convolution.workspace import WORKSPACE
from rekindle.codegen.llvm.cpython_wrappers import python_function, with_declarations, wrapper_ir
from rekindle.codegen.llvm.engine import compile_module
from rekindle.codegen.llvm.library import MissingSymbolError
from rekindle.codegen.llvm.target import Target

_LAST: Final = torch.channels_last
_SERIAL: Final = 1 << 17
"""Larger images are copied by PyTorch where it has several threads."""

_IR: Final = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @pad(ptr %image, ptr %padded, i64 %images, i64 %rows, i64 %row, i64 %before, i64 %between, i64 %after) {
entry:
  br label %image.start
image.start:
  %number = phi i64 [0, %entry], [%number.next, %image.end]
  %source = phi ptr [%image, %entry], [%from.next, %image.end]
  %target = phi ptr [%padded, %entry], [%to.next, %image.end]
  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %before, i1 false)
  %first = getelementptr i8, ptr %target, i64 %before
  br label %line
line:
  %y = phi i64 [0, %image.start], [%y.next, %line]
  %from = phi ptr [%source, %image.start], [%from.next, %line]
  %to = phi ptr [%first, %image.start], [%to.next, %line]
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %row, i1 false)
  %end = getelementptr i8, ptr %to, i64 %row
  %y.next = add i64 %y, 1
  %is_last = icmp eq i64 %y.next, %rows
  %zeros = select i1 %is_last, i64 %after, i64 %between
  call void @llvm.memset.p0.i64(ptr %end, i8 0, i64 %zeros, i1 false)
  %from.next = getelementptr i8, ptr %from, i64 %row
  %to.next = getelementptr i8, ptr %end, i64 %zeros
  br i1 %is_last, label %image.end, label %line
image.end:
  %number.next = add i64 %number, 1
  %more = icmp ult i64 %number.next, %images
  br i1 %more, label %image.start, label %done
done:
  ret void
}
"""


@cache
def _function(target: Target) -> Callable[[int, int, int, int, int, int, int, int], None] | None:
    """The function; None where this platform lacks what it calls."""
    entry = wrapper_ir("pad", ["ptr", "ptr", *["i64"] * 6], None, without_gil=True)
    try:
        return python_function(compile_module(with_declarations(_IR + entry), target=target), "pad")
    except MissingSymbolError:
        return None


def padded(image: Tensor, rows: int, columns: int, target: Target) -> Tensor:
    """Return images in channels-last order with so many rows and columns of zeros on each side. The next call of this
    thread may reuse the memory."""
    image = image.contiguous(memory_format=_LAST)
    if not rows and not columns:
        return image
    function = _function(target)
    if function is None or (torch.get_num_threads() > 1 and image.numel() > _SERIAL):
        # PyTorch may choose the other order for an image of one element.
        return functional.pad(image, (columns, columns, rows, rows)).contiguous(memory_format=_LAST)
    images, channels, height, width = image.shape
    pixel = channels * 4
    row = (width + 2 * columns) * pixel
    result = WORKSPACE.of(images * (height + 2 * rows) * row)
    side = columns * pixel
    border = rows * row + side
    function(image.data_ptr(), result.data_ptr(), images, height, width * pixel, border, 2 * side, border)
    return result
