"""Conversions between registers and Python objects, and between registers and the C++ types of parameters."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.plan_runtime.frame import FrameField, Kind
from rekindle.codegen.plan_runtime.macros import handler

MAX_ITEMS: Final = 64
"""Maximum length of a Python list that is converted for a call; the interpreter takes over for longer ones."""

CONVERSIONS: Final = f"""
; A new reference to the object that stands for what a register of a kind holds; None for an empty one.
define internal ptr @boxed(i64 %kind, ptr %slot) {{
start:
  %word = load i64, ptr %slot
  switch i64 %kind, label %none [
    i64 {int(Kind.OBJECT)}, label %object
    i64 {int(Kind.TENSOR)}, label %tensor
    i64 {int(Kind.INT)}, label %int
    i64 {int(Kind.FLOAT)}, label %float
    i64 {int(Kind.BOOL)}, label %bool
    i64 {int(Kind.INTS)}, label %items
    i64 {int(Kind.TENSORS)}, label %items
  ]
object:
  %no_object = icmp eq i64 %word, 0
  br i1 %no_object, label %none, label %some_object
some_object:
  %object.is = inttoptr i64 %word to ptr
  call void @Py_IncRef(ptr %object.is)
  ret ptr %object.is
tensor:
  %no_tensor = icmp eq i64 %word, 0
  br i1 %no_tensor, label %none, label %some_tensor
some_tensor:
  %tensor.is = call ptr @_Z16THPVariable_WrapRKN2at10TensorBaseE(ptr %slot)
  ret ptr %tensor.is
int:
  %int.is = call ptr @PyLong_FromLongLong(i64 %word)
  ret ptr %int.is
float:
  %real = bitcast i64 %word to double
  %float.is = call ptr @PyFloat_FromDouble(double %real)
  ret ptr %float.is
bool:
  %bool.is = call ptr @PyBool_FromLong(i64 %word)
  ret ptr %bool.is
items:
  %list.is = call ptr @boxed_items(i64 %kind, ptr %slot)
  ret ptr %list.is
none:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}}

define internal ptr @boxed_items(i64 %kind, ptr %slot) {{
start:
  %items = load ptr, ptr %slot
  %count_at = getelementptr i64, ptr %slot, i64 1
  %count = load i64, ptr %count_at
  %are_ints = icmp eq i64 %kind, {int(Kind.INTS)}
  %kind_of_item = select i1 %are_ints, i64 {int(Kind.INT)}, i64 {int(Kind.TENSOR)}
  %list = call ptr @PyList_New(i64 %count)
  %failed = icmp eq ptr %list, null
  br i1 %failed, label %error, label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %fine]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %item_at = getelementptr i64, ptr %items, i64 %i
  %object = call ptr @boxed(i64 %kind_of_item, ptr %item_at)
  %none = icmp eq ptr %object, null
  br i1 %none, label %lost, label %fine
fine:
  %e = call i32 @PyList_SetItem(ptr %list, i64 %i, ptr %object)
  %i_next = add i64 %i, 1
  br label %loop
lost:
  call void @Py_DecRef(ptr %list)
  br label %error
error:
  ret ptr null
end:
  ret ptr %list
}}

; The word of a number of exactly one class, INT, FLOAT or BOOL, to %slot; whether %object is one.
define internal i1 @unboxed(i64 %kind, ptr %object, ptr %slot) {{
start:
  %class_at = getelementptr i8, ptr %object, i64 {{class_offset}}
  %class = load ptr, ptr %class_at
  switch i64 %kind, label %no [
    i64 {int(Kind.INT)}, label %int
    i64 {int(Kind.FLOAT)}, label %float
    i64 {int(Kind.BOOL)}, label %bool
  ]
int:
  %is_int = icmp eq ptr %class, @PyLong_Type
  br i1 %is_int, label %read_int, label %no
read_int:
  %number = call i64 @PyLong_AsLongLong(ptr %object)
  store i64 %number, ptr %slot
  %suspicious = icmp eq i64 %number, -1
  br i1 %suspicious, label %check, label %yes
check:
  %error = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %error, null
  br i1 %none, label %yes, label %too_large
too_large:
  call void @PyErr_Clear()
  br label %no
float:
  %is_float = icmp eq ptr %class, @PyFloat_Type
  br i1 %is_float, label %read_float, label %no
read_float:
  %real = call double @PyFloat_AsDouble(ptr %object)
  store double %real, ptr %slot
  br label %yes
bool:
  %is_bool = icmp eq ptr %class, @PyBool_Type
  br i1 %is_bool, label %read_bool, label %no
read_bool:
  %is_true = icmp eq ptr %object, @_Py_TrueStruct
  %bit = zext i1 %is_true to i64
  store i64 %bit, ptr %slot
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

; How many items a list or a tuple has; -1 for anything else.
define internal i64 @length_of(ptr %object) {{
  %class_at = getelementptr i8, ptr %object, i64 {{class_offset}}
  %class = load ptr, ptr %class_at
  %is_list = icmp eq ptr %class, @PyList_Type
  br i1 %is_list, label %list, label %no_list
list:
  %of_list = call i64 @PyList_Size(ptr %object)
  ret i64 %of_list
no_list:
  %is_tuple = icmp eq ptr %class, @PyTuple_Type
  br i1 %is_tuple, label %tuple, label %no
tuple:
  %of_tuple = call i64 @PyTuple_Size(ptr %object)
  ret i64 %of_tuple
no:
  ret i64 -1
}}

; A borrowed reference to an item of a list or a tuple.
define internal ptr @item_of(ptr %object, i64 %index) {{
  %class_at = getelementptr i8, ptr %object, i64 {{class_offset}}
  %class = load ptr, ptr %class_at
  %is_list = icmp eq ptr %class, @PyList_Type
  br i1 %is_list, label %list, label %tuple
list:
  %of_list = call ptr @PyList_GetItem(ptr %object, i64 %index)
  ret ptr %of_list
tuple:
  %of_tuple = call ptr @PyTuple_GetItem(ptr %object, i64 %index)
  ret ptr %of_tuple
}}
"""

_MIN_SYM_INT: Final = -(1 << 62)
"""A smaller word of a c10::SymInt is not a number, but the address of a symbol."""
_RESULT: Final = int(FrameField.RESULT)
_PENDING: Final = int(FrameField.PENDING)

HANDLERS: Final = (
    # The number of kind 1 that the object in RESULT is, to register 0; operand 2 is the number of the register.
    handler(
        "unbox_result",
        f"""
  lock
  %to = slot 0
  %kind = field 1
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  %object = load ptr, ptr %result_at
  %fits = call i1 @unboxed(i64 %kind, ptr %object, ptr %to)
  br i1 %fits, label %good, label %odd
good:
  store i64 0, ptr %result_at
  call void @Py_DecRef(ptr %object)
  next
odd:
  %register = field 2
  %pending = add i64 %register, 1
  %pending_at = getelementptr i64, ptr %frame, i64 {_PENDING}
  store i64 %pending, ptr %pending_at
  leave after
""",
    ),
    # The object in RESULT to register 0.
    handler(
        "take_result",
        f"""
  lock
  %to = slot 0
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  %object = load ptr, ptr %result_at
  store i64 0, ptr %result_at
  call void @put_object(ptr %to, ptr %object)
  next
""",
    ),
    handler(
        "drop_result",
        f"""
  lock
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  %object = load ptr, ptr %result_at
  store i64 0, ptr %result_at
  call void @Py_DecRef(ptr %object)
  next
""",
    ),
    # The Tensor in RESULT to register 0 of objects; operand 1 is unused, operand 2 the number of the register.
    handler(
        "take_result_tensor",
        f"""
  lock
  %to = slot 0
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  %object = load ptr, ptr %result_at
  %plain = call i1 @is_plain_tensor(ptr %object)
  br i1 %plain, label %good, label %odd
good:
  store i64 0, ptr %result_at
  call void @put_object(ptr %to, ptr %object)
  next
odd:
  %register = field 2
  %pending = add i64 %register, 1
  %pending_at = getelementptr i64, ptr %frame, i64 {_PENDING}
  store i64 %pending, ptr %pending_at
  leave after
""",
    ),
    # The same to a register of Tensors.
    handler(
        "unbox_result_tensor",
        f"""
  lock
  %to = slot 0
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  %object = load ptr, ptr %result_at
  %plain = call i1 @is_plain_tensor(ptr %object)
  br i1 %plain, label %good, label %odd
good:
  %handle = getelementptr i8, ptr %object, i64 {{tensor_offset}}
  %tensor = call ptr @copy_tensor_at(ptr %handle)
  store i64 0, ptr %result_at
  call void @put_tensor(ptr %to, ptr %tensor)
  call void @Py_DecRef(ptr %object)
  next
odd:
  %register = field 2
  %pending = add i64 %register, 1
  %pending_at = getelementptr i64, ptr %frame, i64 {_PENDING}
  store i64 %pending, ptr %pending_at
  leave after
""",
    ),
    # The object in register 0 is put where RESULT is, as if a call had returned it.
    handler(
        "load_result",
        f"""
  lock
  %from = slot 0
  %object = load ptr, ptr %from
  call void @Py_IncRef(ptr %object)
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  store ptr %object, ptr %result_at
  next
""",
    ),
    # c10::Scalar at scratch 0: its tag, operand 1, and the word of register 2.
    handler(
        "scalar",
        """
  %to = slot 0
  %tag = field 1
  %from = slot 2
  %word = load i64, ptr %from
  store i64 %tag, ptr %to
  %payload_at = getelementptr i8, ptr %to, i64 16
  store i64 %word, ptr %payload_at
  next
""",
    ),
    # The same for a number whose class is known only now, an object.
    handler(
        "scalar_of_object",
        f"""
  lock
  %to = slot 0
  %from = slot 1
  %object = load ptr, ptr %from
  %payload_at = getelementptr i8, ptr %to, i64 16
  store i64 0, ptr %to
  %is_float = call i1 @unboxed(i64 {int(Kind.FLOAT)}, ptr %object, ptr %payload_at)
  br i1 %is_float, label %end, label %no_float
no_float:
  store i64 1, ptr %to
  %is_int = call i1 @unboxed(i64 {int(Kind.INT)}, ptr %object, ptr %payload_at)
  br i1 %is_int, label %end, label %no_int
no_int:
  store i64 4, ptr %to
  %is_bool = call i1 @unboxed(i64 {int(Kind.BOOL)}, ptr %object, ptr %payload_at)
  br i1 %is_bool, label %end, label %odd
odd:
  leave
end:
  next
""",
    ),
    # std::optional<at::Tensor> at scratch 0 of the Tensor at word 1; it owns nothing.
    handler(
        "some_tensor_at",
        """
  %to = slot 0
  %from = call ptr @operand(ptr %frame, ptr %insn, i64 1)
  %tensor = load i64, ptr %from
  store i64 %tensor, ptr %to
  %engaged_at = getelementptr i64, ptr %to, i64 1
  store i64 1, ptr %engaged_at
  next
""",
    ),
    # The c10::SymInt at scratch 0 that the int in register 1 is; those with the bits of a symbol are left.
    handler(
        "sym_int",
        f"""
  %to = slot 0
  %from = slot 1
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %symbol = icmp slt i64 %word, {_MIN_SYM_INT}
  br i1 %symbol, label %odd, label %good
odd:
  leave
good:
  next
""",
    ),
    # Leave if an int of the array at 0 has the bits of a symbol.
    handler(
        "check_sym_ints",
        f"""
  %array = slot 0
  %items = load ptr, ptr %array
  %count_at = getelementptr i64, ptr %array, i64 1
  %count = load i64, ptr %count_at
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %item_at = getelementptr i64, ptr %items, i64 %i
  %item = load i64, ptr %item_at
  %i_next = add i64 %i, 1
  %symbol = icmp slt i64 %item, {_MIN_SYM_INT}
  br i1 %symbol, label %odd, label %loop
odd:
  leave
end:
  next
""",
    ),
    handler(
        "optional_tensor",
        """
  %to = slot 0
  %from = slot 1
  %object = load ptr, ptr %from
  %engaged_at = getelementptr i64, ptr %to, i64 1
  %none = icmp eq ptr %object, @_Py_NoneStruct
  br i1 %none, label %absent, label %present
absent:
  store i64 0, ptr %engaged_at
  br label %end
present:
  %plain = call i1 @is_plain_tensor(ptr %object)
  br i1 %plain, label %known, label %odd
known:
  %handle = getelementptr i8, ptr %object, i64 {tensor_offset}
  %tensor = load i64, ptr %handle
  store i64 %tensor, ptr %to
  store i64 1, ptr %engaged_at
  br label %end
end:
  next
odd:
  leave
""",
    ),
    # Two words at scratch 0, an address in the frame and a number: an array of the items at 1, of which there are 2.
    handler(
        "array",
        """
  %to = slot 0
  %items = slot 1
  %count = field 2
  store ptr %items, ptr %to
  %count_at = getelementptr i64, ptr %to, i64 1
  store i64 %count, ptr %count_at
  next
""",
    ),
    # The ints of a list or a tuple in register 1 as an array at scratch 0, with its items at 2.
    handler(
        "ints_of_object",
        f"""
  lock
  %to = slot 0
  %from = slot 1
  %items = slot 2
  %object = load ptr, ptr %from
  %count = call i64 @length_of(ptr %object)
  %none = icmp slt i64 %count, 0
  %long = icmp sgt i64 %count, {MAX_ITEMS}
  %bad = or i1 %none, %long
  br i1 %bad, label %odd, label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %fine]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %item = call ptr @item_of(ptr %object, i64 %i)
  %item_at = getelementptr i64, ptr %items, i64 %i
  %fits = call i1 @unboxed(i64 {int(Kind.INT)}, ptr %item, ptr %item_at)
  br i1 %fits, label %fine, label %odd
fine:
  %i_next = add i64 %i, 1
  br label %loop
odd:
  leave
end:
  store ptr %items, ptr %to
  %count_at = getelementptr i64, ptr %to, i64 1
  store i64 %count, ptr %count_at
  next
""",
    ),
    # The Tensors of a list or a tuple in register 1 as an array at scratch 0, with its items at 2; it owns them.
    handler(
        "tensors_of_object",
        f"""
  lock
  %to = slot 0
  %from = slot 1
  %items = slot 2
  %object = load ptr, ptr %from
  %count = call i64 @length_of(ptr %object)
  %none = icmp slt i64 %count, 0
  %long = icmp sgt i64 %count, {MAX_ITEMS}
  %bad = or i1 %none, %long
  br i1 %bad, label %odd, label %check
check:
  %c = phi i64 [0, %start], [%c_next, %checked]
  %c_more = icmp slt i64 %c, %count
  br i1 %c_more, label %c_one, label %fill
c_one:
  %c_item = call ptr @item_of(ptr %object, i64 %c)
  %plain = call i1 @is_plain_tensor(ptr %c_item)
  br i1 %plain, label %checked, label %odd
checked:
  %c_next = add i64 %c, 1
  br label %check
odd:
  leave
fill:
  call void @drop_tensors(ptr %to)
  br label %loop
loop:
  %i = phi i64 [0, %fill], [%i_next, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %item = call ptr @item_of(ptr %object, i64 %i)
  %handle = getelementptr i8, ptr %item, i64 {{tensor_offset}}
  %tensor = call ptr @copy_tensor_at(ptr %handle)
  %item_at = getelementptr ptr, ptr %items, i64 %i
  store ptr %tensor, ptr %item_at
  %i_next = add i64 %i, 1
  br label %loop
end:
  store ptr %items, ptr %to
  %count_at = getelementptr i64, ptr %to, i64 1
  store i64 %count, ptr %count_at
  next
""",
    ),
)
