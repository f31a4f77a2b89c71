"""The code behind :mod:`rekindle.codegen.llvm.call_sites`, in LLVM's language.

The structures that it reads are told in :mod:`rekindle.codegen.llvm.launch_lookup_ir`.
"""

from __future__ import annotations

from typing import Final

from rekindle.codegen.llvm.launch_lookup_ir import launch_text
from rekindle.codegen.llvm.tensor_abi import TensorObjects
from rekindle.codegen.llvm.tensor_boxing_ir import tensor_reading_text

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
  br label %loop
loop:
  %i = phi i64 [0, %prepare], [%next, %taken]
  %tensors = phi i64 [0, %prepare], [%tensors_next, %taken]
  %more = icmp slt i64 %i, %inputs
  br i1 %more, label %take, label %choose
take:
  %object_at = getelementptr ptr, ptr %arguments, i64 %i
  %object = load ptr, ptr %object_at
  %layout = getelementptr %Layout, ptr %layouts, i64 %i
  %kind_at = getelementptr i64, ptr %kinds, i64 %i
  %kind = load i64, ptr %kind_at
  %is_tensor = icmp eq i64 %kind, 1
  br i1 %is_tensor, label %tensor, label %scalar
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
  %tensors_next = add i64 %tensors, %kind
  %next = add i64 %i, 1
  br label %loop
choose:
  %launch = call ptr @find_launch(ptr %site, ptr %layouts, i64 %inputs)
  %none = icmp eq ptr %launch, null
  br i1 %none, label %other_way, label %launched
launched:
  %kernel = load ptr, ptr %launch
  ; Making a Tensor may run anything, and with it this launch for other sizes.
  %numbers_at = getelementptr %Launch, ptr %launch, i64 0, i32 1
  %numbers = load ptr, ptr %numbers_at
  %parameters_at = getelementptr %Launch, ptr %launch, i64 0, i32 5
  %parameters = load i64, ptr %parameters_at
  %total_at = getelementptr %Launch, ptr %launch, i64 0, i32 6
  %total = load i64, ptr %total_at
  %own = alloca i64, i64 %total
  call void @copy_words(ptr %own, ptr %numbers, i64 %total)
  %o_layout = alloca %Layout
  %outputs_at = getelementptr %Launch, ptr %launch, i64 0, i32 3
  %outputs = load i64, ptr %outputs_at
  %made_at = getelementptr %Launch, ptr %launch, i64 0, i32 4
  %made = load ptr, ptr %made_at
  %objects = alloca ptr, i64 %outputs
  br label %allocate
allocate:
  %o = phi i64 [0, %launched], [%o_next, %allocated]
  %n = phi i64 [%parameters, %launched], [%n_next, %allocated]
  %o_more = icmp slt i64 %o, %outputs
  br i1 %o_more, label %make, label %run
make:
  %m_layout = getelementptr %Layout, ptr %made, i64 %o
  %m_dtype = load i64, ptr %m_layout
  %m_rank_at = getelementptr %Layout, ptr %m_layout, i64 0, i32 1
  %m_rank = load i64, ptr %m_rank_at
  %n_middle = add i64 %n, %m_rank
  %n_next = add i64 %n_middle, %m_rank
  %o_sizes = getelementptr i64, ptr %own, i64 %n
  %o_strides = getelementptr i64, ptr %own, i64 %n_middle
  %o_rank_at = getelementptr %Layout, ptr %o_layout, i64 0, i32 1
  %o_sizes_at = getelementptr %Layout, ptr %o_layout, i64 0, i32 2
  %o_strides_at = getelementptr %Layout, ptr %o_layout, i64 0, i32 3
  store i64 %m_dtype, ptr %o_layout
  store i64 %m_rank, ptr %o_rank_at
  store ptr %o_sizes, ptr %o_sizes_at
  store ptr %o_strides, ptr %o_strides_at
  %o_index = add i64 %tensors, %o
  %o_pointer = getelementptr ptr, ptr %pointers, i64 %o_index
  %o_object = call ptr @new_tensor(ptr %o_layout, ptr %o_pointer)
  %o_at = getelementptr ptr, ptr %objects, i64 %o
  store ptr %o_object, ptr %o_at
  %o_failed = icmp eq ptr %o_object, null
  br i1 %o_failed, label %release, label %allocated
allocated:
  %o_next = add i64 %o, 1
  br label %allocate
release:
  %r = phi i64 [%o, %make], [%outputs, %run], [%r_next, %released]
  %r_more = icmp sgt i64 %r, 0
  br i1 %r_more, label %released, label %no_memory
released:
  %r_next = sub i64 %r, 1
  %r_at = getelementptr ptr, ptr %objects, i64 %r_next
  %r_object = load ptr, ptr %r_at
  call void @Py_DecRef(ptr %r_object)
  br label %release
no_memory:
  %r_error = call ptr @PyErr_Occurred()
  %r_none = icmp eq ptr %r_error, null
  br i1 %r_none, label %other_way, label %raise
raise:
  ret ptr null
run:
  %status = call i64 %kernel(ptr %pointers, ptr %own, ptr %scalars)
  %is_wrong = icmp ne i64 %status, 0
  br i1 %is_wrong, label %release, label %written
written:
  %single = icmp eq i64 %outputs, 1
  br i1 %single, label %one, label %several
one:
  %result = load ptr, ptr %objects
  ret ptr %result
several:
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  br label %fill
fill:
  %f = phi i64 [0, %several], [%f_next, %put]
  %f_more = icmp slt i64 %f, %outputs
  br i1 %f_more, label %put, label %full
put:
  %f_at = getelementptr ptr, ptr %objects, i64 %f
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
    """The module that defines ``tensor_call``, a C function of CPython whose ``self`` is a capsule of a site."""
    return tensor_reading_text(objects) + launch_text(most_launches) + _TEXT
