"""The C function of :mod:`rekindle.codegen.llvm.call_sites` that Python calls, in LLVM IR.

It reads the structures of :mod:`rekindle.codegen.llvm.launch_lookup_ir`.
"""

from __future__ import annotations

from typing import Final

from rekindle.codegen.llvm.launch_ir import kernel_launch_text
from rekindle.codegen.llvm.tensor_abi import TensorObjects
from rekindle.codegen.llvm.tensor_boxing_ir import FIXED, tensor_reading_text

_TEXT: Final = """
define internal ptr @fall_back(ptr %site, ptr %arguments, i64 %count) {
start:
  %function_at = getelementptr %Site, ptr %site, i64 0, i32 2
  %function = load ptr, ptr %function_at
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %no, label %loop
loop:
  %i = phi i64 [0, %start], [%next, %put]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %put, label %call
put:
  %from = getelementptr ptr, ptr %arguments, i64 %i
  %object = load ptr, ptr %from
  call void @Py_IncRef(ptr %object)
  %e = call i32 @PyTuple_SetItem(ptr %tuple, i64 %i, ptr %object)
  %next = add i64 %i, 1
  br label %loop
call:
  %result = call ptr @PyObject_CallObject(ptr %function, ptr %tuple)
  call void @Py_DecRef(ptr %tuple)
  ret ptr %result
no:
  ret ptr null
}

define ptr @tensor_call(ptr %capsule, ptr %arguments, i64 %count) {
start:
  %site = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %inputs = load i64, ptr %site
  %kinds_at = getelementptr %Site, ptr %site, i64 0, i32 1
  %kinds = load ptr, ptr %kinds_at
  %most_at = getelementptr %Site, ptr %site, i64 0, i32 3
  %most = load i64, ptr %most_at
  %forward_at = getelementptr %Site, ptr %site, i64 0, i32 4
  %forward = load ptr, ptr %forward_at
  %complete = icmp eq i64 %inputs, %count
  br i1 %complete, label %modes, label %other_way
modes:
  %plain = call i1 @is_plain()
  br i1 %plain, label %prepare, label %other_way
prepare:
  %grad_mode = call i1 @aoti_torch_grad_mode_is_enabled()
  %layouts = alloca %Layout, i64 %inputs
  %pointers = alloca ptr, i64 %most
  %scalars = alloca i64, i64 %inputs
  %handles = alloca ptr, i64 %most
  br label %loop
loop:
  %i = phi i64 [0, %prepare], [%next, %taken]
  %tensors = phi i64 [0, %prepare], [%tensors_next, %taken]
  %more = icmp slt i64 %i, %inputs
  br i1 %more, label %take, label %launch
take:
  %object_at = getelementptr ptr, ptr %arguments, i64 %i
  %object = load ptr, ptr %object_at
  %layout = getelementptr %Layout, ptr %layouts, i64 %i
  %kind_at = getelementptr i64, ptr %kinds, i64 %i
  %kind = load i64, ptr %kind_at
  %is_tensor = icmp eq i64 %kind, 1
  br i1 %is_tensor, label %tensor, label %other
other:
  %is_scalar = icmp eq i64 %kind, 0
  br i1 %is_scalar, label %scalar, label %fixed
fixed:
  %f_rank_at = getelementptr %Layout, ptr %layout, i64 0, i32 1
  store i64 {fixed}, ptr %layout
  store i64 0, ptr %f_rank_at
  %object_word = ptrtoint ptr %object to i64
  %is_same = icmp eq i64 %object_word, %kind
  br i1 %is_same, label %taken, label %other_way
tensor:
  %pointer = getelementptr ptr, ptr %pointers, i64 %tensors
  %tensor_read = call i1 @read_tensor(ptr %object, i1 %grad_mode, ptr %forward, ptr %layout, ptr %pointer)
  br i1 %tensor_read, label %taken, label %other_way
scalar:
  %rank_at = getelementptr %Layout, ptr %layout, i64 0, i32 1
  store i64 0, ptr %rank_at
  %scalar_index = sub i64 %i, %tensors
  %value = getelementptr i64, ptr %scalars, i64 %scalar_index
  %scalar_read = call i1 @read_scalar(ptr %object, ptr %layout, ptr %value)
  br i1 %scalar_read, label %taken, label %other_way
taken:
  %added = zext i1 %is_tensor to i64
  %tensors_next = add i64 %tensors, %added
  %next = add i64 %i, 1
  br label %loop
launch:
  %outputs = call i64 @launch_kernel(
      ptr %site, ptr %layouts, i64 %inputs, ptr %pointers, i64 %tensors, ptr %scalars, ptr %handles)
  %none = icmp slt i64 %outputs, 0
  br i1 %none, label %other_way, label %wrap
wrap:
  %o = phi i64 [0, %launch], [%o_next, %wrapped]
  %o_more = icmp slt i64 %o, %outputs
  br i1 %o_more, label %wrapped, label %written
wrapped:
  %o_at = getelementptr ptr, ptr %handles, i64 %o
  %o_handle = load ptr, ptr %o_at
  %o_object = call ptr @object_of_handle(ptr %o_handle)
  store ptr %o_object, ptr %o_at
  %o_failed = icmp eq ptr %o_object, null
  %o_next = add i64 %o, 1
  br i1 %o_failed, label %raise, label %wrap
raise:
  ; Python has no memory left for an object; the other results stay allocated.
  ret ptr null
written:
  %single = icmp eq i64 %outputs, 1
  br i1 %single, label %one, label %several
one:
  %result = load ptr, ptr %handles
  ret ptr %result
several:
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  br label %fill
fill:
  %f = phi i64 [0, %several], [%f_next, %put]
  %f_more = icmp slt i64 %f, %outputs
  br i1 %f_more, label %put, label %full
put:
  %f_at = getelementptr ptr, ptr %handles, i64 %f
  %f_object = load ptr, ptr %f_at
  %f_error = call i32 @PyTuple_SetItem(ptr %tuple, i64 %f, ptr %f_object)
  %f_next = add i64 %f, 1
  br label %fill
full:
  ret ptr %tuple
other_way:
  %answer = call ptr @fall_back(ptr %site, ptr %arguments, i64 %count)
  ret ptr %answer
}
"""


def tensor_call_text(objects: TensorObjects, most_launches: int) -> str:
    """Return the LLVM IR of ``tensor_call``, a C function of CPython that runs the call site in the capsule
    ``self``."""
    return tensor_reading_text(objects) + kernel_launch_text(most_launches) + _TEXT.replace("{fixed}", str(FIXED))
