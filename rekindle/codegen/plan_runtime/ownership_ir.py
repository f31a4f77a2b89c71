"""Reference counting of Tensors and objects: copy, move and drop references.

A Tensor in a register is one word, the pointer that an ``at::Tensor`` contains. Only two functions of PyTorch's C
interface, which copy and delete a Tensor, change its reference count.
"""

from __future__ import annotations

from typing import Final

from rekindle.codegen.plan_runtime.frame import Kind
from rekindle.codegen.plan_runtime.macros import handler

OWNERSHIP: Final = """
; A new reference to the Tensor at %from, the word that a register holds: null for an empty register.
define internal ptr @copy_tensor_at(ptr %from) {
  %to = alloca ptr
  %word = load ptr, ptr %from
  %empty = icmp eq ptr %word, null
  br i1 %empty, label %nothing, label %copy
nothing:
  ret ptr null
copy:
  %e = call i32 @aoti_torch_new_tensor_handle(ptr %from, ptr %to)
  %handle = load ptr, ptr %to
  %tensor = load ptr, ptr %handle
  call void @_ZdlPvm(ptr %handle, i64 8)
  ret ptr %tensor
}

define internal void @drop_tensor(ptr %tensor) {
  %empty = icmp eq ptr %tensor, null
  br i1 %empty, label %end, label %drop
drop:
  %handle = call ptr @_Znwm(i64 8)
  store ptr %tensor, ptr %handle
  %e = call i32 @aoti_torch_delete_tensor_object(ptr %handle)
  br label %end
end:
  ret void
}

define internal void @drop_object(ptr %object) {
  %empty = icmp eq ptr %object, null
  br i1 %empty, label %end, label %drop
drop:
  call void @Py_DecRef(ptr %object)
  br label %end
end:
  ret void
}

; Write an owned word to a register, and drop what was there.
define internal void @put_tensor(ptr %slot, ptr %tensor) {
  %old = load ptr, ptr %slot
  store ptr %tensor, ptr %slot
  call void @drop_tensor(ptr %old)
  ret void
}

define internal void @put_object(ptr %slot, ptr %object) {
  %old = load ptr, ptr %slot
  store ptr %object, ptr %slot
  call void @drop_object(ptr %old)
  ret void
}

; Empty a register that holds Tensors.
define internal void @drop_tensors(ptr %slot) {
start:
  %items = load ptr, ptr %slot
  %count_at = getelementptr i64, ptr %slot, i64 1
  %count = load i64, ptr %count_at
  store i64 0, ptr %count_at
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %drop]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %drop, label %end
drop:
  %item_at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item_at
  store ptr null, ptr %item_at
  call void @drop_tensor(ptr %item)
  %i_next = add i64 %i, 1
  br label %loop
end:
  ret void
}

; Whether an object is a Tensor of exactly this class, or a Parameter: no subclass overrides its operators.
define internal i1 @is_plain_tensor(ptr %object) {
  %class_at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class_at
  %tensor_class = load ptr, ptr @THPVariableClass
  %parameter_class = load ptr, ptr @ParameterClass
  %is_tensor = icmp eq ptr %class, %tensor_class
  %is_parameter = icmp eq ptr %class, %parameter_class
  %known = or i1 %is_tensor, %is_parameter
  ret i1 %known
}
"""

HANDLERS: Final = (
    # Move what a call wrote to operand 1 into register 0.
    handler(
        "take_tensor",
        """
  %to = slot 0
  %from = slot 1
  %tensor = load ptr, ptr %from
  store ptr null, ptr %from
  call void @put_tensor(ptr %to, ptr %tensor)
  next
""",
    ),
    handler(
        "take_object",
        """
  lock
  %to = slot 0
  %from = slot 1
  %object = load ptr, ptr %from
  store ptr null, ptr %from
  call void @put_object(ptr %to, ptr %object)
  next
""",
    ),
    # Move the Tensor that a call wrote to operand 1 into register 0 of objects.
    handler(
        "take_tensor_object",
        """
  lock
  %to = slot 0
  %from = slot 1
  %object = call ptr @_Z16THPVariable_WrapRKN2at10TensorBaseE(ptr %from)
  %tensor = load ptr, ptr %from
  store ptr null, ptr %from
  call void @drop_tensor(ptr %tensor)
  %none = icmp eq ptr %object, null
  br i1 %none, label %error, label %fine
fine:
  call void @put_object(ptr %to, ptr %object)
  next
error:
  fail
""",
    ),
    handler(
        "copy_tensor",
        """
  %to = slot 0
  %from = slot 1
  %tensor = call ptr @copy_tensor_at(ptr %from)
  call void @put_tensor(ptr %to, ptr %tensor)
  next
""",
    ),
    handler(
        "copy_tensor_at_word",
        """
  %to = slot 0
  %from = call ptr @operand(ptr %frame, ptr %insn, i64 1)
  %tensor = call ptr @copy_tensor_at(ptr %from)
  call void @put_tensor(ptr %to, ptr %tensor)
  next
""",
    ),
    # A Tensor of Python's into a register of Tensors.
    handler(
        "copy_object_tensor",
        """
  %to = slot 0
  %from = slot 1
  %object = load ptr, ptr %from
  %handle = getelementptr i8, ptr %object, i64 {tensor_offset}
  %empty = icmp eq ptr %object, null
  %source = select i1 %empty, ptr %from, ptr %handle
  %tensor = call ptr @copy_tensor_at(ptr %source)
  call void @put_tensor(ptr %to, ptr %tensor)
  next
""",
    ),
    handler(
        "copy_object",
        """
  lock
  %to = slot 0
  %from = slot 1
  %object = load ptr, ptr %from
  call void @Py_IncRef(ptr %object)
  call void @put_object(ptr %to, ptr %object)
  next
""",
    ),
    handler(
        "copy_word",
        """
  %to = slot 0
  %from = slot 1
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  next
""",
    ),
    handler(
        "store_word",
        """
  %to = slot 0
  %word = field 1
  store i64 %word, ptr %to
  next
""",
    ),
    handler(
        "store_object",
        """
  lock
  %to = slot 0
  %object = pointer 1
  call void @Py_IncRef(ptr %object)
  call void @put_object(ptr %to, ptr %object)
  next
""",
    ),
    # Box the value of kind 2 in register 1 into register 0.
    handler(
        "box",
        """
  lock
  %to = slot 0
  %from = slot 1
  %kind = field 2
  %object = call ptr @boxed(i64 %kind, ptr %from)
  %none = icmp eq ptr %object, null
  br i1 %none, label %error, label %fine
fine:
  call void @put_object(ptr %to, ptr %object)
  next
error:
  fail
""",
    ),
    # Operand 0 is the number of registers to empty; each is a kind and an offset.
    handler(
        "drop",
        """
  %count = field 0
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %dropped]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %twice = mul i64 %i, 2
  %kind_index = add i64 %twice, 4
  %kind_at = getelementptr i64, ptr %insn, i64 %kind_index
  %offset_at = getelementptr i64, ptr %kind_at, i64 1
  %kind = load i64, ptr %kind_at
  %offset = load i64, ptr %offset_at
  %slot = getelementptr i8, ptr %frame, i64 %offset
  %is_object = icmp eq i64 %kind, 0
  br i1 %is_object, label %object, label %empty
object:
  lock
  br label %empty
empty:
  call void @empty(i64 %kind, ptr %slot)
  br label %dropped
dropped:
  %i_next = add i64 %i, 1
  br label %loop
end:
  next
""",
    ),
)

EMPTY: Final = f"""
; Drop what a register of a kind holds.
define internal void @empty(i64 %kind, ptr %slot) {{
start:
  %word = load ptr, ptr %slot
  switch i64 %kind, label %end [
    i64 {int(Kind.OBJECT)}, label %object
    i64 {int(Kind.TENSOR)}, label %tensor
    i64 {int(Kind.TENSORS)}, label %tensors
  ]
object:
  store i64 0, ptr %slot
  call void @drop_object(ptr %word)
  br label %end
tensor:
  store i64 0, ptr %slot
  call void @drop_tensor(ptr %word)
  br label %end
tensors:
  call void @drop_tensors(ptr %slot)
  br label %end
end:
  ret void
}}
"""
