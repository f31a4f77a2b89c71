"""Lists, tuples, attributes, and the sizes of Tensors."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.plan_runtime.conversion_ir import MAX_ITEMS
from rekindle.codegen.plan_runtime.frame import FrameField
from rekindle.codegen.plan_runtime.macros import handler

_RESULT: Final = int(FrameField.RESULT)


def _construct(name: str, new: str, set_item: str) -> str:
    """Return the handler that constructs a container in the register RESULT. Operand 0 is the number of items. Each
    item is a kind and the offset of a register, or, for CONSTANT, an object."""
    return handler(
        name,
        f"""
  lock
  %count = field 0
  %container = call ptr @{new}(i64 %count)
  %failed = icmp eq ptr %container, null
  br i1 %failed, label %error, label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %fine]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %twice = mul i64 %i, 2
  %kind_index = add i64 %twice, 4
  %kind_at = getelementptr i64, ptr %insn, i64 %kind_index
  %value_at = getelementptr i64, ptr %kind_at, i64 1
  %kind = load i64, ptr %kind_at
  %value = load i64, ptr %value_at
  %object = call ptr @boxed_operand(ptr %frame, i64 %kind, i64 %value)
  %none = icmp eq ptr %object, null
  br i1 %none, label %lost, label %fine
fine:
  %e = call i32 @{set_item}(ptr %container, i64 %i, ptr %object)
  %i_next = add i64 %i, 1
  br label %loop
lost:
  call void @Py_DecRef(ptr %container)
  br label %error
end:
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  store ptr %container, ptr %result_at
  next
error:
  fail
""",
    )


CONTAINERS: Final = """
define internal void @copy_items(ptr %to, ptr %from, i64 %count) {
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %from_at = getelementptr i64, ptr %from, i64 %i
  %to_at = getelementptr i64, ptr %to, i64 %i
  %item = load i64, ptr %from_at
  store i64 %item, ptr %to_at
  %i_next = add i64 %i, 1
  br label %loop
end:
  ret void
}
"""

HANDLERS: Final = (
    _construct("new_list", "PyList_New", "PyList_SetItem"),
    _construct("new_tuple", "PyTuple_New", "PyTuple_SetItem"),
    # Leave unless the object in register 0 is a list or a tuple of operand 1 items. Where operand 2 is 1, the object is
    # the result of the instruction, which has run.
    handler(
        "check_length",
        """
  lock
  %from = slot 0
  %wanted = field 1
  %object = load ptr, ptr %from
  %count = call i64 @length_of(ptr %object)
  %good = icmp eq i64 %count, %wanted
  br i1 %good, label %end, label %odd
odd:
  %has_run = field 2
  %ending = call ptr @leave_with_items(ptr %frame, ptr %insn, i64 %has_run)
  ret ptr %ending
end:
  next
""",
    ),
    # Leave unless item 1 of the list or tuple in register 0 is a number of kind 2, or (operand 3 is 1) a plain Tensor.
    # Operand 4 is as above.
    handler(
        "check_item",
        """
  lock
  %from = slot 0
  %index = field 1
  %kind = field 2
  %tensor = field 3
  %word = alloca i64
  %object = load ptr, ptr %from
  %item = call ptr @item_of(ptr %object, i64 %index)
  %is_number = icmp eq i64 %tensor, 0
  br i1 %is_number, label %number, label %no_number
number:
  %fits = call i1 @unboxed(i64 %kind, ptr %item, ptr %word)
  br label %decide
no_number:
  %plain = call i1 @is_plain_tensor(ptr %item)
  br label %decide
decide:
  %good = phi i1 [%fits, %number], [%plain, %no_number]
  br i1 %good, label %end, label %odd
odd:
  %has_run = field 4
  %ending = call ptr @leave_with_items(ptr %frame, ptr %insn, i64 %has_run)
  ret ptr %ending
end:
  next
""",
    ),
    # Item 1 of the list or tuple in register 0, to RESULT.
    handler(
        "item",
        f"""
  lock
  %from = slot 0
  %index = field 1
  %object = load ptr, ptr %from
  %item = call ptr @item_of(ptr %object, i64 %index)
  call void @Py_IncRef(ptr %item)
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  store ptr %item, ptr %result_at
  next
""",
    ),
    # Attribute 1 (a str) of the object in register 0, to RESULT; operand 2 is the name of the table of a module that
    # has it, or null.
    handler(
        "attribute",
        f"""
  lock
  %from = slot 0
  %name = pointer 1
  %table_name = pointer 2
  %object = load ptr, ptr %from
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  %no_table = icmp eq ptr %table_name, null
  br i1 %no_table, label %get, label %look
look:
  %fields = call ptr @PyObject_GenericGetDict(ptr %object, ptr null)
  %no_fields = icmp eq ptr %fields, null
  br i1 %no_fields, label %clear, label %look_up
clear:
  call void @PyErr_Clear()
  br label %get
look_up:
  %table = call ptr @PyDict_GetItem(ptr %fields, ptr %table_name)
  call void @Py_DecRef(ptr %fields) ; the object keeps it
  %missing = icmp eq ptr %table, null
  br i1 %missing, label %get, label %look_in
look_in:
  %class_at = getelementptr i8, ptr %table, i64 {{class_offset}}
  %class = load ptr, ptr %class_at
  %is_dict = icmp eq ptr %class, @PyDict_Type
  br i1 %is_dict, label %find, label %get
find:
  %found = call ptr @PyDict_GetItem(ptr %table, ptr %name)
  %absent = icmp eq ptr %found, null
  br i1 %absent, label %get, label %good
good:
  call void @Py_IncRef(ptr %found)
  store ptr %found, ptr %result_at
  next
get:
  %value = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %error = icmp eq ptr %value, null
  br i1 %error, label %raised, label %fine
fine:
  store ptr %value, ptr %result_at
  br label %end
end:
  %after_at = getelementptr ptr, ptr %insn, i64 1
  %after = load ptr, ptr %after_at
  ret ptr %after
raised:
  fail
""",
    ),
    # The size of the Tensor at word 1 in the dimension in register 2.
    handler(
        "size",
        """
  %to = slot 0
  %tensor = call ptr @operand(ptr %frame, ptr %insn, i64 1)
  %dimension_at = call ptr @operand(ptr %frame, ptr %insn, i64 5)
  %given = ptrtoint ptr %dimension_at to i64
  %rank_at = alloca i64
  %sizes_at = alloca ptr
  %e0 = call i32 @aoti_torch_get_dim(ptr %tensor, ptr %rank_at)
  %e1 = call i32 @aoti_torch_get_sizes(ptr %tensor, ptr %sizes_at)
  %e = or i32 %e0, %e1
  %rank = load i64, ptr %rank_at
  %wrapped = add i64 %given, %rank
  %negative = icmp slt i64 %given, 0
  %dimension = select i1 %negative, i64 %wrapped, i64 %given
  %outside = icmp uge i64 %dimension, %rank
  %error = icmp ne i32 %e, 0
  %bad = or i1 %outside, %error
  br i1 %bad, label %odd, label %good
odd:
  leave
good:
  %sizes = load ptr, ptr %sizes_at
  %size_at = getelementptr i64, ptr %sizes, i64 %dimension
  %size = load i64, ptr %size_at
  store i64 %size, ptr %to
  next
""",
    ),
    # The number of dimensions, or of elements, of the Tensor at word 1 in register 0.
    *(
        handler(
            name,
            f"""
  %to = slot 0
  %tensor = call ptr @operand(ptr %frame, ptr %insn, i64 1)
  %e = call i32 @{reader}(ptr %tensor, ptr %to)
  %bad = icmp ne i32 %e, 0
  br i1 %bad, label %odd, label %good
odd:
  leave
good:
  next
""",
        )
        for name, reader in (("rank", "aoti_torch_get_dim"), ("numel", "aoti_torch_get_numel"))
    ),
    # The sizes of the Tensor at word 2 as an array in register 0, with its items at 1.
    handler(
        "sizes",
        f"""
  %to = slot 0
  %items = slot 1
  %tensor = call ptr @operand(ptr %frame, ptr %insn, i64 2)
  %rank_at = alloca i64
  %sizes_at = alloca ptr
  %e0 = call i32 @aoti_torch_get_dim(ptr %tensor, ptr %rank_at)
  %e1 = call i32 @aoti_torch_get_sizes(ptr %tensor, ptr %sizes_at)
  %e = or i32 %e0, %e1
  %rank = load i64, ptr %rank_at
  %error = icmp ne i32 %e, 0
  %long = icmp sgt i64 %rank, {MAX_ITEMS}
  %bad = or i1 %error, %long
  br i1 %bad, label %odd, label %good
odd:
  leave
good:
  %sizes = load ptr, ptr %sizes_at
  call void @copy_items(ptr %items, ptr %sizes, i64 %rank)
  store ptr %items, ptr %to
  %count_at = getelementptr i64, ptr %to, i64 1
  store i64 %rank, ptr %count_at
  next
""",
    ),
    # The item of the array in register 1 whose index is in register 2.
    handler(
        "array_item",
        """
  %to = slot 0
  %array = slot 1
  %index_at = slot 2
  %given = load i64, ptr %index_at
  %items = load ptr, ptr %array
  %count_at = getelementptr i64, ptr %array, i64 1
  %count = load i64, ptr %count_at
  %wrapped = add i64 %given, %count
  %negative = icmp slt i64 %given, 0
  %index = select i1 %negative, i64 %wrapped, i64 %given
  %outside = icmp uge i64 %index, %count
  br i1 %outside, label %odd, label %good
odd:
  leave
good:
  %item_at = getelementptr i64, ptr %items, i64 %index
  %item = load i64, ptr %item_at
  store i64 %item, ptr %to
  next
""",
    ),
    handler(
        "array_length",
        """
  %to = slot 0
  %array = slot 1
  %count_at = getelementptr i64, ptr %array, i64 1
  %count = load i64, ptr %count_at
  store i64 %count, ptr %to
  next
""",
    ),
    # Whether the arrays in registers 1 and 2 are equal, or (operand 3 is 1) are not.
    handler(
        "arrays_equal",
        """
  %to = slot 0
  %first = slot 1
  %second = slot 2
  %negated = field 3
  %first_items = load ptr, ptr %first
  %second_items = load ptr, ptr %second
  %first_count_at = getelementptr i64, ptr %first, i64 1
  %second_count_at = getelementptr i64, ptr %second, i64 1
  %count = load i64, ptr %first_count_at
  %other_count = load i64, ptr %second_count_at
  %as_long = icmp eq i64 %count, %other_count
  br i1 %as_long, label %loop, label %end
loop:
  %i = phi i64 [0, %start], [%i_next, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %a_at = getelementptr i64, ptr %first_items, i64 %i
  %b_at = getelementptr i64, ptr %second_items, i64 %i
  %a = load i64, ptr %a_at
  %b = load i64, ptr %b_at
  %same = icmp eq i64 %a, %b
  %i_next = add i64 %i, 1
  br i1 %same, label %loop, label %end
end:
  %equal = phi i64 [0, %start], [1, %loop], [0, %one]
  %result = xor i64 %equal, %negated
  store i64 %result, ptr %to
  next
""",
    ),
    # Leave unless the array in register 0 has operand 1 items.
    handler(
        "check_array_length",
        """
  %array = slot 0
  %wanted = field 1
  %count_at = getelementptr i64, ptr %array, i64 1
  %count = load i64, ptr %count_at
  %good = icmp eq i64 %count, %wanted
  br i1 %good, label %end, label %odd
odd:
  leave
end:
  next
""",
    ),
    # Item 2 of the array in register 1.
    handler(
        "known_array_item",
        """
  %to = slot 0
  %array = slot 1
  %index = field 2
  %items = load ptr, ptr %array
  %item_at = getelementptr i64, ptr %items, i64 %index
  %item = load i64, ptr %item_at
  store i64 %item, ptr %to
  next
""",
    ),
    handler(
        "dtype",
        """
  %to = slot 0
  %tensor = call ptr @operand(ptr %frame, ptr %insn, i64 1)
  %number_at = alloca i32
  %e = call i32 @aoti_torch_get_dtype(ptr %tensor, ptr %number_at)
  %bad = icmp ne i32 %e, 0
  br i1 %bad, label %odd, label %good
odd:
  leave
good:
  %number = load i32, ptr %number_at
  %wide = sext i32 %number to i64
  store i64 %wide, ptr %to
  next
""",
    ),
    # The std::vector<at::Tensor> at scratch 2 as an array in register 0, with its items at 1.
    handler(
        "tensors_of_vector",
        f"""
  %to = slot 0
  %items = slot 1
  %vector = slot 2
  call void @drop_tensors(ptr %to)
  %begin = load ptr, ptr %vector
  %end_at = getelementptr ptr, ptr %vector, i64 1
  %last_at = getelementptr ptr, ptr %vector, i64 2
  %end = load ptr, ptr %end_at
  %last = load ptr, ptr %last_at
  %first_address = ptrtoint ptr %begin to i64
  %end_address = ptrtoint ptr %end to i64
  %last_address = ptrtoint ptr %last to i64
  %bytes = sub i64 %end_address, %first_address
  %capacity = sub i64 %last_address, %first_address
  %length = sdiv i64 %bytes, 8
  %long = icmp sgt i64 %length, {MAX_ITEMS}
  br i1 %long, label %waste, label %take
take:
  call void @copy_items(ptr %items, ptr %begin, i64 %length)
  call void @free_vector(ptr %begin, i64 %capacity)
  store ptr %items, ptr %to
  %count_at = getelementptr i64, ptr %to, i64 1
  store i64 %length, ptr %count_at
  next
waste:
  %i = phi i64 [0, %start], [%i_next, %waste]
  %item_at = getelementptr ptr, ptr %begin, i64 %i
  %item = load ptr, ptr %item_at
  call void @drop_tensor(ptr %item)
  %i_next = add i64 %i, 1
  %more = icmp slt i64 %i_next, %length
  br i1 %more, label %waste, label %odd
odd:
  call void @free_vector(ptr %begin, i64 %capacity)
  leave
""",
    ),
    # The Tensor in the array in register 1 whose index is in register 2.
    handler(
        "tensor_array_item",
        """
  %to = slot 0
  %array = slot 1
  %index_at = slot 2
  %given = load i64, ptr %index_at
  %items = load ptr, ptr %array
  %count_at = getelementptr i64, ptr %array, i64 1
  %count = load i64, ptr %count_at
  %wrapped = add i64 %given, %count
  %negative = icmp slt i64 %given, 0
  %index = select i1 %negative, i64 %wrapped, i64 %given
  %outside = icmp uge i64 %index, %count
  br i1 %outside, label %odd, label %good
odd:
  leave
good:
  %item_at = getelementptr ptr, ptr %items, i64 %index
  %tensor = call ptr @copy_tensor_at(ptr %item_at)
  call void @put_tensor(ptr %to, ptr %tensor)
  next
""",
    ),
    # Tensor 2 of the array in register 1.
    handler(
        "known_tensor_array_item",
        """
  %to = slot 0
  %array = slot 1
  %index = field 2
  %items = load ptr, ptr %array
  %item_at = getelementptr ptr, ptr %items, i64 %index
  %tensor = call ptr @copy_tensor_at(ptr %item_at)
  call void @put_tensor(ptr %to, ptr %tensor)
  next
""",
    ),
    # The std::vector<at::Tensor> at scratch 0 as a list of Python in RESULT.
    handler(
        "list_of_vector",
        f"""
  lock
  %vector = slot 0
  %begin = load ptr, ptr %vector
  %end_at = getelementptr ptr, ptr %vector, i64 1
  %last_at = getelementptr ptr, ptr %vector, i64 2
  %end = load ptr, ptr %end_at
  %last = load ptr, ptr %last_at
  %from = ptrtoint ptr %begin to i64
  %to = ptrtoint ptr %end to i64
  %allocated_to = ptrtoint ptr %last to i64
  %bytes = sub i64 %to, %from
  %capacity = sub i64 %allocated_to, %from
  %length = sdiv i64 %bytes, 8
  %list = call ptr @PyList_New(i64 %length)
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %one]
  %more = icmp slt i64 %i, %length
  br i1 %more, label %one, label %done
one:
  %item_at = getelementptr ptr, ptr %begin, i64 %i
  %object = call ptr @_Z16THPVariable_WrapRKN2at10TensorBaseE(ptr %item_at)
  %e = call i32 @PyList_SetItem(ptr %list, i64 %i, ptr %object)
  %item = load ptr, ptr %item_at
  call void @drop_tensor(ptr %item)
  %i_next = add i64 %i, 1
  br label %loop
done:
  call void @free_vector(ptr %begin, i64 %capacity)
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  store ptr %list, ptr %result_at
  next
""",
    ),
)
