"""LLVM IR of the function that copies images with zeros around them; see
:mod:`rekindle.codegen.convolution.padding`."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.emission.ir_builder import ModuleBuilder

_TEXT: Final = """
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


def define_pad(module: ModuleBuilder) -> None:
    """Add ``void @pad(ptr image, ptr padded, i64 images, i64 rows, i64 row, i64 before, i64 between, i64 after)`` to a
    module: images of ``rows`` rows of bytes, with zeros before, between and after the rows."""
    module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1")
    module.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1")
    module.definitions.append(_TEXT)
