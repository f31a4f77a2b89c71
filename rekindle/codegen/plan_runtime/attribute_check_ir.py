"""Guards on attributes of modules in machine code.

A version of a network for inference assumes hundreds of attributes: flags, sizes, None, the dtypes of parameters. Every
call checks them. A guard is a table of rows, which are checked in order: arguments of the call, the modules within
them, and their attributes. Each module is looked up once; its dict of attributes gets a number, by which later rows
refer to it. No Python code runs during the check, so that borrowed references are safe.

If all rows hold, the guard returns True. Otherwise it calls a guard in Python, which covers every case.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Final

ATTRIBUTE_CHECK_ENTRY: Final = "attribute_check"

FIELDS: Final = 6
"""Words in a row: its kind, and the operands in brackets below."""


class RowKind(IntEnum):
    """Kinds of checks in a row of the attribute table."""

    IS = 0
    """An argument [its number] is an object [its address]."""
    IS_NOT = 1
    """An argument [its number] is not an object [its address]."""
    IS_TENSOR = 2
    """An argument [its number] is a plain Tensor."""
    ARGUMENT = 3
    """Argument [its number] is a module: keep its attributes [as number]."""
    MODULE = 4
    """A module [whose attributes have a number] has a submodule [its name]: keep its attributes [as number]."""
    VALUE = 5
    """An attribute of a module [number, name] is equal to an object [its address] of the same class: None, a bool, a
    number, or a str."""
    TENSOR = 6
    """A parameter or buffer of a module [number, name] is a plain Tensor of a dtype, a kind of device without an index,
    and a rank [three numbers]."""


class AttributeTable(ctypes.Structure):
    """The table that the guard reads. ``names`` are the addresses of the strings ``_modules``, ``_parameters`` and
    ``_buffers``."""

    _fields_ = (
        ("row_count", ctypes.c_int64),
        ("rows", ctypes.c_void_p),
        ("argument_count", ctypes.c_int64),
        ("module_count", ctypes.c_int64),
        ("names", ctypes.c_int64 * 3),
        ("decide", ctypes.c_void_p),
    )


_NAMES: Final = ("row_count", "rows", "argument_count", "module_count", "modules_name", "parameters_name")
_PLACES: Final = {name: index for index, name in enumerate((*_NAMES, "buffers_name", "decide"))}


def _load(name: str, type: str) -> str:
    return f"  %{name}.at = getelementptr i64, ptr %table, i64 {_PLACES[name]}\n  %{name} = load {type}, ptr %{name}.at"


ATTRIBUTE_CHECK: Final = f"""
declare i32 @aoti_torch_get_device_type(ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)

; The dict of a module's attributes; null, if it has none.
define internal ptr @attributes_of(ptr %module) {{
  %fields = call ptr @PyObject_GenericGetDict(ptr %module, ptr null)
  %missing = icmp eq ptr %fields, null
  br i1 %missing, label %clear, label %found
clear:
  call void @PyErr_Clear()
  ret ptr null
found:
  call void @Py_DecRef(ptr %fields) ; the module keeps it
  ret ptr %fields
}}

; Whether two objects of the same class, a number or str, are indistinguishable.
define internal i1 @same_constant(ptr %object, ptr %wanted) {{
  %same = icmp eq ptr %object, %wanted
  br i1 %same, label %yes, label %classes
classes:
  %class_at = getelementptr i8, ptr %object, i64 {{class_offset}}
  %class = load ptr, ptr %class_at
  %wanted_class_at = getelementptr i8, ptr %wanted, i64 {{class_offset}}
  %wanted_class = load ptr, ptr %wanted_class_at
  %same_class = icmp eq ptr %class, %wanted_class
  br i1 %same_class, label %kind, label %no
kind:
  %is_float = icmp eq ptr %class, @PyFloat_Type
  br i1 %is_float, label %float, label %other
float:
  %x = call double @PyFloat_AsDouble(ptr %object)
  %y = call double @PyFloat_AsDouble(ptr %wanted)
  %x_bits = bitcast double %x to i64
  %y_bits = bitcast double %y to i64
  %equal_floats = icmp eq i64 %x_bits, %y_bits
  ret i1 %equal_floats
other:
  %compared = call i32 @PyObject_RichCompareBool(ptr %object, ptr %wanted, i32 2)
  %equal = icmp eq i32 %compared, 1
  ret i1 %equal
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether an attribute is a plain Tensor of the dtype, the device and the rank in the row.
define internal i1 @is_tensor_of(ptr %object, ptr %row) {{
  %dtype_at = alloca i32
  %device_at = alloca i32
  %index_at = alloca i32
  %rank_at = alloca i64
  %plain = call i1 @is_plain_tensor(ptr %object)
  br i1 %plain, label %look, label %no
look:
  %tensor = getelementptr i8, ptr %object, i64 {{tensor_offset}}
  %e0 = call i32 @aoti_torch_get_dtype(ptr %tensor, ptr %dtype_at)
  %e1 = call i32 @aoti_torch_get_device_type(ptr %tensor, ptr %device_at)
  %e2 = call i32 @aoti_torch_get_device_index(ptr %tensor, ptr %index_at)
  %e3 = call i32 @aoti_torch_get_dim(ptr %tensor, ptr %rank_at)
  %dtype = load i32, ptr %dtype_at
  %device = load i32, ptr %device_at
  %index = load i32, ptr %index_at
  %rank = load i64, ptr %rank_at
  %wanted_dtype_at = getelementptr i64, ptr %row, i64 3
  %wanted_device_at = getelementptr i64, ptr %row, i64 4
  %wanted_rank_at = getelementptr i64, ptr %row, i64 5
  %wanted_dtype = load i32, ptr %wanted_dtype_at
  %wanted_device = load i32, ptr %wanted_device_at
  %wanted_rank = load i64, ptr %wanted_rank_at
  %dtype_fits = icmp eq i32 %dtype, %wanted_dtype
  %device_fits = icmp eq i32 %device, %wanted_device
  %index_fits = icmp eq i32 %index, -1
  %rank_fits = icmp eq i64 %rank, %wanted_rank
  %a = and i1 %dtype_fits, %device_fits
  %b = and i1 %index_fits, %rank_fits
  %fits = and i1 %a, %b
  ret i1 %fits
no:
  ret i1 false
}}

define internal i1 @rows_hold(ptr %table, ptr %arguments, ptr %modules) {{
start:
{_load("row_count", "i64")}
{_load("rows", "ptr")}
{_load("modules_name", "ptr")}
{_load("parameters_name", "ptr")}
{_load("buffers_name", "ptr")}
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %next]
  %more = icmp slt i64 %i, %row_count
  br i1 %more, label %one, label %yes
one:
  %offset = mul i64 %i, {FIELDS}
  %row = getelementptr i64, ptr %rows, i64 %offset
  %form = load i64, ptr %row
  %first_at = getelementptr i64, ptr %row, i64 1
  %second_at = getelementptr i64, ptr %row, i64 2
  %third_at = getelementptr i64, ptr %row, i64 3
  %first = load i64, ptr %first_at
  %second = load ptr, ptr %second_at
  %of_argument = icmp sle i64 %form, {int(RowKind.ARGUMENT)}
  br i1 %of_argument, label %argument, label %module
argument:
  %argument_at = getelementptr ptr, ptr %arguments, i64 %first
  %given = load ptr, ptr %argument_at
  %is_object = icmp eq ptr %given, %second
  switch i64 %form, label %is_not [i64 {int(RowKind.IS)}, label %is i64 {int(RowKind.ARGUMENT)}, label %argument_module
                                   i64 {int(RowKind.IS_TENSOR)}, label %is_tensor]
is_tensor:
  %plain = call i1 @is_plain_tensor(ptr %given)
  br i1 %plain, label %next, label %no
is:
  br i1 %is_object, label %next, label %no
is_not:
  br i1 %is_object, label %no, label %next
argument_module:
  %argument_place = ptrtoint ptr %second to i64
  br label %keep
module:
  %from_at = getelementptr ptr, ptr %modules, i64 %first
  %from = load ptr, ptr %from_at
  switch i64 %form, label %no [i64 {int(RowKind.MODULE)}, label %submodule i64 {int(RowKind.VALUE)}, label %value
                               i64 {int(RowKind.TENSOR)}, label %tensor]
submodule:
  %submodules = call ptr @PyDict_GetItem(ptr %from, ptr %modules_name)
  %no_submodules = icmp eq ptr %submodules, null
  br i1 %no_submodules, label %no, label %look_up
look_up:
  %inner = call ptr @PyDict_GetItem(ptr %submodules, ptr %second)
  %no_inner = icmp eq ptr %inner, null
  %place = load i64, ptr %third_at
  br i1 %no_inner, label %no, label %keep
keep:
  %kept = phi ptr [%given, %argument_module], [%inner, %look_up]
  %to = phi i64 [%argument_place, %argument_module], [%place, %look_up]
  %fields = call ptr @attributes_of(ptr %kept)
  %to_at = getelementptr ptr, ptr %modules, i64 %to
  store ptr %fields, ptr %to_at
  %no_fields = icmp eq ptr %fields, null
  br i1 %no_fields, label %no, label %next
value:
  %object = call ptr @PyDict_GetItem(ptr %from, ptr %second)
  %no_object = icmp eq ptr %object, null
  br i1 %no_object, label %no, label %compare
compare:
  %wanted = load ptr, ptr %third_at
  %equal = call i1 @same_constant(ptr %object, ptr %wanted)
  br i1 %equal, label %next, label %no
tensor:
  %parameters = call ptr @PyDict_GetItem(ptr %from, ptr %parameters_name)
  %no_parameters = icmp eq ptr %parameters, null
  br i1 %no_parameters, label %no, label %in_parameters
in_parameters:
  %parameter = call ptr @PyDict_GetItem(ptr %parameters, ptr %second)
  %no_parameter = icmp eq ptr %parameter, null
  br i1 %no_parameter, label %in_buffers, label %check
in_buffers:
  %buffers = call ptr @PyDict_GetItem(ptr %from, ptr %buffers_name)
  %no_buffers = icmp eq ptr %buffers, null
  br i1 %no_buffers, label %no, label %look_in_buffers
look_in_buffers:
  %buffer = call ptr @PyDict_GetItem(ptr %buffers, ptr %second)
  %no_buffer = icmp eq ptr %buffer, null
  br i1 %no_buffer, label %no, label %check
check:
  %found = phi ptr [%parameter, %in_parameters], [%buffer, %look_in_buffers]
  %fits = call i1 @is_tensor_of(ptr %found, ptr %row)
  br i1 %fits, label %next, label %no
next:
  %i_next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}

; A C function of CPython: whether its arguments satisfy the table in the capsule.
define ptr @{ATTRIBUTE_CHECK_ENTRY}(ptr %self, ptr %arguments, i64 %count) {{
  %table = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
{_load("argument_count", "i64")}
{_load("module_count", "i64")}
{_load("decide", "ptr")}
  %complete = icmp sge i64 %count, %argument_count
  br i1 %complete, label %test, label %ask
test:
  %modules = alloca ptr, i64 %module_count
  %hold = call i1 @rows_hold(ptr %table, ptr %arguments, ptr %modules)
  br i1 %hold, label %yes, label %ask
yes:
  %true = call ptr @PyBool_FromLong(i64 1)
  ret ptr %true
ask:
  %answer = call ptr @PyObject_Vectorcall(ptr %decide, ptr %arguments, i64 %count, ptr null)
  ret ptr %answer
}}
"""
