"""Deep type checks in machine code: a value, and all elements of its containers. In Python, the check of a long list
takes longer than a loop over it.

A type is described by words: what it is, an operand, and the addresses of the descriptions of its parts.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

TYPE_CHECK_ENTRY: Final = "type_check"


class Form(IntEnum):
    """The first word of a type description in the tables of a plan. The words after it are given in brackets."""

    CLASS = 0
    """A direct instance of a class [its address]."""
    LIST = 1
    """A list [0, the description of its items]."""
    TUPLE = 2
    """A tuple [how many items, a description for each]."""
    OPTIONAL = 3
    """None, or something else [0, its description]."""
    DICT = 4
    """A dict [0, the descriptions of its keys and of its values]."""


TYPE_CHECK: Final = """
define internal i1 @fits(ptr %object, ptr %type) {
start:
  %key_at = alloca ptr
  %value_at = alloca ptr
  %position_at = alloca i64
  %form = load i64, ptr %type
  %operand_at = getelementptr i64, ptr %type, i64 1
  %parts = getelementptr i64, ptr %type, i64 2
  %second_at = getelementptr i64, ptr %type, i64 3
  %class_at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class_at
  switch i64 %form, label %no [i64 0, label %class_of
                               i64 1, label %list
                               i64 2, label %tuple
                               i64 3, label %optional
                               i64 4, label %dict]
class_of:
  %wanted = load ptr, ptr %operand_at
  %is_instance = icmp eq ptr %class, %wanted
  ret i1 %is_instance
list:
  %is_list = icmp eq ptr %class, @PyList_Type
  br i1 %is_list, label %list_size, label %no
list_size:
  %length = call i64 @PyList_Size(ptr %object)
  %element = load ptr, ptr %parts
  %element_form = load i64, ptr %element
  %of_class = icmp eq i64 %element_form, 0
  br i1 %of_class, label %plain_list, label %list_next
plain_list:
  %element_class_at = getelementptr ptr, ptr %element, i64 1
  %element_class = load ptr, ptr %element_class_at
  br label %plain_next
plain_next:
  %j = phi i64 [0, %plain_list], [%j_after, %plain_item]
  %more_plain = icmp slt i64 %j, %length
  br i1 %more_plain, label %plain_item, label %yes
plain_item:
  %plain = call ptr @PyList_GetItem(ptr %object, i64 %j)
  %j_after = add i64 %j, 1
  %plain_class_at = getelementptr i8, ptr %plain, i64 {class_offset}
  %plain_class = load ptr, ptr %plain_class_at
  %plain_fits = icmp eq ptr %plain_class, %element_class
  br i1 %plain_fits, label %plain_next, label %no
list_next:
  %i = phi i64 [0, %list_size], [%i_after, %list_item]
  %more_items = icmp slt i64 %i, %length
  br i1 %more_items, label %list_item, label %yes
list_item:
  %item = call ptr @PyList_GetItem(ptr %object, i64 %i)
  %i_after = add i64 %i, 1
  %item_fits = call i1 @fits(ptr %item, ptr %element)
  br i1 %item_fits, label %list_next, label %no
tuple:
  %is_tuple = icmp eq ptr %class, @PyTuple_Type
  br i1 %is_tuple, label %tuple_size, label %no
tuple_size:
  %count = call i64 @PyTuple_Size(ptr %object)
  %wanted_count = load i64, ptr %operand_at
  %complete = icmp eq i64 %count, %wanted_count
  br i1 %complete, label %tuple_next, label %no
tuple_next:
  %k = phi i64 [0, %tuple_size], [%k_after, %tuple_item]
  %more_members = icmp slt i64 %k, %count
  br i1 %more_members, label %tuple_item, label %yes
tuple_item:
  %member = call ptr @PyTuple_GetItem(ptr %object, i64 %k)
  %member_type_at = getelementptr ptr, ptr %parts, i64 %k
  %member_type = load ptr, ptr %member_type_at
  %k_after = add i64 %k, 1
  %member_fits = call i1 @fits(ptr %member, ptr %member_type)
  br i1 %member_fits, label %tuple_next, label %no
optional:
  %none = icmp eq ptr %object, @_Py_NoneStruct
  br i1 %none, label %yes, label %something
something:
  %other = load ptr, ptr %parts
  %other_fits = call i1 @fits(ptr %object, ptr %other)
  ret i1 %other_fits
dict:
  %is_dict = icmp eq ptr %class, @PyDict_Type
  br i1 %is_dict, label %dict_start, label %no
dict_start:
  %key_type = load ptr, ptr %parts
  %value_type = load ptr, ptr %second_at
  store i64 0, ptr %position_at
  br label %dict_next
dict_next:
  %found = call i32 @PyDict_Next(ptr %object, ptr %position_at, ptr %key_at, ptr %value_at)
  %at_end = icmp eq i32 %found, 0
  br i1 %at_end, label %yes, label %dict_key
dict_key:
  %key = load ptr, ptr %key_at
  %key_fits = call i1 @fits(ptr %key, ptr %key_type)
  br i1 %key_fits, label %dict_value, label %no
dict_value:
  %value = load ptr, ptr %value_at
  %value_fits = call i1 @fits(ptr %value, ptr %value_type)
  br i1 %value_fits, label %dict_next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; A C function of CPython: whether its argument is of the type that the capsule describes.
define ptr @type_check(ptr %self, ptr %arguments, i64 %count) {
  %type = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
  %object = load ptr, ptr %arguments
  %answer = call i1 @fits(ptr %object, ptr %type)
  %bit = zext i1 %answer to i64
  %bool = call ptr @PyBool_FromLong(i64 %bit)
  ret ptr %bool
}
"""
