"""Launch the kernel of a fused group from a native plan, with Tensors in registers."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.llvm.tensor_boxing_ir import FIXED
from rekindle.codegen.plan_runtime.macros import handler

TENSOR_INPUT: Final = -2
"""The class of an input that is a Tensor; numbers have those of ``SCALAR_CLASSES``, fixed objects have ``FIXED``."""
CONSTANT_INPUT: Final = -3
"""The class of a fixed object that is a constant of the plan: it needs no check."""
DROPPED: Final = -1
"""Register offset of an output that is unused."""
_WORDS_OF_INPUT: Final = 5

HANDLERS: Final = (
    # Launch a kernel from the site that is operand 0, if it has one for such inputs, and jump to operand 1; else
    # continue with the next instruction, which calls Python. There are operand 2 inputs and operand 3 outputs. The
    # offsets of the registers of the outputs follow, then for each input its class and the four words of its value: the
    # address of an at::Tensor, a number, or the address of an object.
    handler(
        "launch",
        f"""
  lock
  %site = pointer 0
  %count = field 2
  %outputs = field 3
  %no_site = icmp eq ptr %site, null
  br i1 %no_site, label %other_way, label %modes
modes:
  %plain = call i1 @is_plain()
  br i1 %plain, label %prepare, label %other_way
prepare:
  %kinds_at = getelementptr %Site, ptr %site, i64 0, i32 1
  %kinds = load ptr, ptr %kinds_at
  %most_at = getelementptr %Site, ptr %site, i64 0, i32 3
  %most = load i64, ptr %most_at
  %forward_at = getelementptr %Site, ptr %site, i64 0, i32 4
  %forward = load ptr, ptr %forward_at
  %grad_mode = call i1 @aoti_torch_grad_mode_is_enabled()
  %layouts = alloca %Layout, i64 %count
  %pointers = alloca ptr, i64 %most
  %scalars = alloca i64, i64 %count
  %handles = alloca ptr, i64 %most
  %first_input = add i64 %outputs, 4
  br label %read
read:
  %i = phi i64 [0, %prepare], [%i_next, %taken]
  %tensors = phi i64 [0, %prepare], [%tensors_next, %taken]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %run
one:
  %words = mul i64 %i, {_WORDS_OF_INPUT}
  %class_number = add i64 %first_input, %words
  %class_index = add i64 %class_number, 3
  %class_at = getelementptr i64, ptr %insn, i64 %class_index
  %class = load i64, ptr %class_at
  %value_number = add i64 %class_number, 1
  %value = call ptr @operand(ptr %frame, ptr %insn, i64 %value_number)
  %layout = getelementptr %Layout, ptr %layouts, i64 %i
  %is_tensor = icmp eq i64 %class, {TENSOR_INPUT}
  br i1 %is_tensor, label %tensor, label %number
tensor:
  %pointer = getelementptr ptr, ptr %pointers, i64 %tensors
  %fine = call i1 @read_handle(ptr %value, i1 %grad_mode, ptr %forward, ptr %layout, ptr %pointer)
  br i1 %fine, label %taken, label %other_way
number:
  %is_constant = icmp eq i64 %class, {CONSTANT_INPUT}
  %given_class = select i1 %is_constant, i64 {FIXED}, i64 %class
  %is_fixed = icmp eq i64 %class, {FIXED}
  br i1 %is_fixed, label %fixed, label %counted
fixed:
  %kind_at = getelementptr i64, ptr %kinds, i64 %i
  %kind = load ptr, ptr %kind_at
  %is_same = icmp eq ptr %kind, %value
  br i1 %is_same, label %counted, label %other_way
counted:
  %rank_at = getelementptr %Layout, ptr %layout, i64 0, i32 1
  store i64 %given_class, ptr %layout
  store i64 0, ptr %rank_at
  %scalar_index = sub i64 %i, %tensors
  %scalar_at = getelementptr ptr, ptr %scalars, i64 %scalar_index
  store ptr %value, ptr %scalar_at
  br label %taken
taken:
  %added = zext i1 %is_tensor to i64
  %tensors_next = add i64 %tensors, %added
  %i_next = add i64 %i, 1
  br label %read
run:
  %made = call i64 @launch_kernel(
      ptr %site, ptr %layouts, i64 %count, ptr %pointers, i64 %tensors, ptr %scalars, ptr %handles)
  %none = icmp slt i64 %made, 0
  br i1 %none, label %other_way, label %store
store:
  %o = phi i64 [0, %run], [%o_next, %stored]
  %o_more = icmp slt i64 %o, %made
  br i1 %o_more, label %take, label %end
take:
  %handle_at = getelementptr ptr, ptr %handles, i64 %o
  %handle = load ptr, ptr %handle_at
  %o_index = add i64 %o, 7
  %offset_at = getelementptr i64, ptr %insn, i64 %o_index
  %offset = load i64, ptr %offset_at
  %dropped = icmp eq i64 %offset, {DROPPED}
  br i1 %dropped, label %drop, label %keep
drop:
  %e = call i32 @aoti_torch_delete_tensor_object(ptr %handle)
  br label %stored
keep:
  ; The at::Tensor moves to the register: its memory is freed, and not what it refers to.
  %impl = load ptr, ptr %handle
  call void @_ZdlPvm(ptr %handle, i64 8)
  %slot = getelementptr i8, ptr %frame, i64 %offset
  call void @put_tensor(ptr %slot, ptr %impl)
  br label %stored
stored:
  %o_next = add i64 %o, 1
  br label %store
end:
  %done = pointer 1
  ret ptr %done
other_way:
  next
""",
    ),
)
