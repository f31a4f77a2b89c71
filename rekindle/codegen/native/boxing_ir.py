"""LLVM IR that unboxes Python's numbers and lists, and boxes results.

Items that were written to a list from Python are copied back into it at the end, from ``low`` on.
"""

from __future__ import annotations

from typing import Final

_GOLDEN: Final = 0x9E3779B97F4A7C15 - 2**64
"""Multiplier of a hash function: the product's high bits depend on all bits of an address."""

_DECLARATIONS: Final = """
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i32 @PyErr_CheckSignals()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i32 @PyList_Append(ptr, ptr)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare ptr @PyList_New(i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyObject_CallObject(ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
@PyLong_Type = external global i8
@PyFloat_Type = external global i8
@PyBool_Type = external global i8
@PyList_Type = external global i8
@_Py_TrueStruct = external global i8
@_Py_NoneStruct = external global i8
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


_TEXT: Final = """
; Where the list that stands for an object is in the table, or would be.
define internal ptr @table_slot(ptr %table, i64 %capacity, ptr %object) {{
start:
  %word = ptrtoint ptr %object to i64
  %mixed = mul i64 %word, {golden}
  %hash = lshr i64 %mixed, 32
  %mask = sub i64 %capacity, 1
  br label %probe
probe:
  %at = phi i64 [%hash, %start], [%next, %other]
  %place = and i64 %at, %mask
  %slot = getelementptr ptr, ptr %table, i64 %place
  %list = load ptr, ptr %slot
  %free = icmp eq ptr %list, null
  br i1 %free, label %end, label %compare
compare:
  %origin_at = getelementptr %List, ptr %list, i64 0, i32 3
  %origin = load ptr, ptr %origin_at
  %same = icmp eq ptr %origin, %object
  br i1 %same, label %end, label %other
other:
  %next = add i64 %at, 1
  br label %probe
end:
  ret ptr %slot
}}

define internal i1 @table_grow(ptr %arena) noinline {{
start:
  %table_at = getelementptr %Arena, ptr %arena, i64 0, i32 5
  %capacity_at = getelementptr %Arena, ptr %arena, i64 0, i32 6
  %inputs_at = getelementptr %Arena, ptr %arena, i64 0, i32 4
  %before = load i64, ptr %capacity_at
  %none = icmp eq i64 %before, 0
  %twice = shl i64 %before, 1
  %capacity = select i1 %none, i64 8, i64 %twice
  %bytes = shl i64 %capacity, 3
  %table = call ptr @allocate(ptr %arena, i64 %bytes)
  %failed = icmp eq ptr %table, null
  br i1 %failed, label %no, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %table, i8 0, i64 %bytes, i1 false)
  store ptr %table, ptr %table_at
  store i64 %capacity, ptr %capacity_at
  %first = load ptr, ptr %inputs_at
  br label %loop
loop:
  %list = phi ptr [%first, %fill], [%next, %put]
  %done = icmp eq ptr %list, null
  br i1 %done, label %yes, label %put
put:
  %origin_at = getelementptr %List, ptr %list, i64 0, i32 3
  %origin = load ptr, ptr %origin_at
  %slot = call ptr @table_slot(ptr %table, i64 %capacity, ptr %origin)
  store ptr %list, ptr %slot
  %next_at = getelementptr %List, ptr %list, i64 0, i32 4
  %next = load ptr, ptr %next_at
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}

; The list that stands for one of Python's; the same one for the same one.
define internal ptr @list_of(ptr %arena, ptr %object, i64 %kind) noinline {{
start:
  %class_at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class_at
  %is_list = icmp eq ptr %class, @PyList_Type
  br i1 %is_list, label %measure, label %no
measure:
  %table_at = getelementptr %Arena, ptr %arena, i64 0, i32 5
  %capacity_at = getelementptr %Arena, ptr %arena, i64 0, i32 6
  %count_at = getelementptr %Arena, ptr %arena, i64 0, i32 7
  %count = load i64, ptr %count_at
  %old_capacity = load i64, ptr %capacity_at
  %twice = shl i64 %count, 1
  %full = icmp sge i64 %twice, %old_capacity
  br i1 %full, label %grow, label %search
grow:
  %grown = call i1 @table_grow(ptr %arena)
  br i1 %grown, label %search, label %no
search:
  %table = load ptr, ptr %table_at
  %capacity = load i64, ptr %capacity_at
  %slot = call ptr @table_slot(ptr %table, i64 %capacity, ptr %object)
  %list = load ptr, ptr %slot
  %missing = icmp eq ptr %list, null
  br i1 %missing, label %make, label %found
found:
  %kind_at = getelementptr %List, ptr %list, i64 0, i32 5
  %known = load i64, ptr %kind_at
  %agree = icmp eq i64 %known, %kind
  %answer = select i1 %agree, ptr %list, ptr null
  ret ptr %answer
make:
  %new = call ptr @allocate(ptr %arena, i64 72)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %no, label %fill
fill:
  %inputs_at = getelementptr %Arena, ptr %arena, i64 0, i32 4
  %first = load ptr, ptr %inputs_at
  %length = call i64 @PyList_Size(ptr %object)
  %h1 = insertvalue %List zeroinitializer, i64 %length, 0
  %h2 = insertvalue %List %h1, ptr %object, 3
  %h3 = insertvalue %List %h2, ptr %first, 4
  %h4 = insertvalue %List %h3, i64 %kind, 5
  %h5 = insertvalue %List %h4, i64 {most}, 7
  %h6 = insertvalue %List %h5, i64 %length, 8
  store %List %h6, ptr %new
  store ptr %new, ptr %inputs_at
  store ptr %new, ptr %slot
  %more = add i64 %count, 1
  store i64 %more, ptr %count_at
  call void @Py_IncRef(ptr %object)
  ret ptr %new
no:
  ret ptr null
}}

; What lists need of Python's objects (list_runtime_ir).
define internal i1 @take_element(ptr %arena, ptr %origin, i64 %index, i64 %kind, ptr %word) {{
  %is_string = icmp eq i64 %kind, 6
  br i1 %is_string, label %character, label %element
character:
  %code = call i32 @PyUnicode_ReadChar(ptr %origin, i64 %index)
  %wide = zext i32 %code to i64
  store i64 %wide, ptr %word
  ret i1 true
element:
  %object = call ptr @PyList_GetItem(ptr %origin, i64 %index)
  %gone = icmp eq ptr %object, null
  br i1 %gone, label %clear, label %take
clear:
  call void @PyErr_Clear()
  ret i1 false
take:
  %good = call i1 @decode(ptr %arena, ptr %object, i64 %kind, ptr %word)
  ret i1 %good
}}

define internal void @release(ptr %origin) {{
  call void @Py_DecRef(ptr %origin)
  ret void
}}

; A number or a list of Python's as a word. 0: it is not of the class that it should be, or does not fit.
define internal i1 @decode(ptr %arena, ptr %object, i64 %kind, ptr %word) {{
  %class_at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class_at
  switch i64 %kind, label %list [i64 0, label %int
                                 i64 1, label %float
                                 i64 2, label %bool]
list:
  %element = sub i64 %kind, 3
  %inner = call ptr @list_of(ptr %arena, ptr %object, i64 %element)
  store ptr %inner, ptr %word
  %is_list = icmp ne ptr %inner, null
  ret i1 %is_list
int:
  %is_int = icmp eq ptr %class, @PyLong_Type
  br i1 %is_int, label %take_int, label %no
take_int:
  %number = call i64 @PyLong_AsLongLong(ptr %object)
  store i64 %number, ptr %word
  %suspicious = icmp eq i64 %number, -1
  br i1 %suspicious, label %check, label %yes
check:
  %error = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %error, null
  br i1 %none, label %yes, label %clear
clear:
  call void @PyErr_Clear()
  br label %no
float:
  %is_float = icmp eq ptr %class, @PyFloat_Type
  br i1 %is_float, label %take_float, label %no
take_float:
  %real = call double @PyFloat_AsDouble(ptr %object)
  store double %real, ptr %word
  br label %yes
bool:
  %is_bool = icmp eq ptr %class, @PyBool_Type
  br i1 %is_bool, label %take_bool, label %no
take_bool:
  %is_true = icmp eq ptr %object, @_Py_TrueStruct
  %bit = zext i1 %is_true to i64
  store i64 %bit, ptr %word
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

; The kind of one of Python's numbers: 1 of a float, 0 of anything else, which has to be an int.
define internal i64 @number_kind(ptr %object) alwaysinline {{
  %class_at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class_at
  %is_float = icmp eq ptr %class, @PyFloat_Type
  %kind = zext i1 %is_float to i64
  ret i64 %kind
}}

define internal ptr @encode(i64 %word, i64 %kind) {{
  switch i64 %kind, label %list [i64 0, label %int
                                 i64 1, label %float
                                 i64 2, label %bool]
list:
  %inner = inttoptr i64 %word to ptr
  %l = call ptr @list_object(ptr %inner)
  ret ptr %l
int:
  %i = call ptr @PyLong_FromLongLong(i64 %word)
  ret ptr %i
float:
  %real = bitcast i64 %word to double
  %f = call ptr @PyFloat_FromDouble(double %real)
  ret ptr %f
bool:
  %b = call ptr @PyBool_FromLong(i64 %word)
  ret ptr %b
}}

; What was written to one of Python's lists goes back there. 0: Python's error is set.
define internal i1 @list_write_back(ptr %list) noinline {{
start:
  %low_at = getelementptr %List, ptr %list, i64 0, i32 7
  %first_length_at = getelementptr %List, ptr %list, i64 0, i32 8
  %origin_at = getelementptr %List, ptr %list, i64 0, i32 3
  %kind_at = getelementptr %List, ptr %list, i64 0, i32 5
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %low = load i64, ptr %low_at
  %first_length = load i64, ptr %first_length_at
  %origin = load ptr, ptr %origin_at
  %kind = load i64, ptr %kind_at
  %elements = load ptr, ptr %elements_at
  %length = load i64, ptr %list
  %written = icmp slt i64 %low, %first_length
  %from = select i1 %written, i64 %low, i64 %first_length
  %same_length = icmp eq i64 %length, %first_length
  %unwritten = icmp eq i64 %low, {most}
  %untouched = and i1 %same_length, %unwritten
  br i1 %untouched, label %yes, label %loop
loop:
  %i = phi i64 [%from, %start], [%next, %put], [%next, %appended]
  %more = icmp slt i64 %i, %length
  br i1 %more, label %make, label %cut
make:
  %at = getelementptr i64, ptr %elements, i64 %i
  %word = load i64, ptr %at
  %object = call ptr @encode(i64 %word, i64 %kind)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %no, label %choose
choose:
  %next = add i64 %i, 1
  %size = call i64 @PyList_Size(ptr %origin)
  %inside = icmp slt i64 %i, %size
  br i1 %inside, label %put, label %append
put:
  %e1 = call i32 @PyList_SetItem(ptr %origin, i64 %i, ptr %object)
  br label %loop
append:
  %e2 = call i32 @PyList_Append(ptr %origin, ptr %object)
  call void @Py_DecRef(ptr %object)
  %refused = icmp slt i32 %e2, 0
  br i1 %refused, label %no, label %appended
appended:
  br label %loop
cut:
  %now = call i64 @PyList_Size(ptr %origin)
  %longer = icmp sgt i64 %now, %length
  br i1 %longer, label %shorten, label %yes
shorten:
  %e3 = call i32 @PyList_SetSlice(ptr %origin, i64 %length, i64 %now, ptr null)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal i1 @write_back(ptr %arena) {{
start:
  %inputs_at = getelementptr %Arena, ptr %arena, i64 0, i32 4
  %first = load ptr, ptr %inputs_at
  br label %loop
loop:
  %list = phi ptr [%first, %start], [%next, %write]
  %done = icmp eq ptr %list, null
  br i1 %done, label %yes, label %write
write:
  %good = call i1 @list_write_back(ptr %list)
  %next_at = getelementptr %List, ptr %list, i64 0, i32 4
  %next = load ptr, ptr %next_at
  br i1 %good, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; The Python list of a list; equal lists map to one object. None if no path defined it: it is never read.
define internal ptr @list_object(ptr %list) noinline {{
  %undefined = icmp eq ptr %list, null
  br i1 %undefined, label %nothing, label %start
nothing:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
start:
  %origin_at = getelementptr %List, ptr %list, i64 0, i32 3
  %origin = load ptr, ptr %origin_at
  %known = icmp ne ptr %origin, null
  br i1 %known, label %same, label %new
same:
  call void @Py_IncRef(ptr %origin)
  ret ptr %origin
new:
  %length = load i64, ptr %list
  %object = call ptr @PyList_New(i64 %length)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %no, label %fill
fill:
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %kind_at = getelementptr %List, ptr %list, i64 0, i32 5
  %elements = load ptr, ptr %elements_at
  %kind = load i64, ptr %kind_at
  br label %loop
loop:
  %i = phi i64 [0, %fill], [%next, %put]
  %more = icmp slt i64 %i, %length
  br i1 %more, label %make, label %done
make:
  %at = getelementptr i64, ptr %elements, i64 %i
  %word = load i64, ptr %at
  %element = call ptr @encode(i64 %word, i64 %kind)
  %no_element = icmp eq ptr %element, null
  br i1 %no_element, label %release, label %put
put:
  %e = call i32 @PyList_SetItem(ptr %object, i64 %i, ptr %element)
  %next = add i64 %i, 1
  br label %loop
done:
  store ptr %object, ptr %origin_at
  ret ptr %object
release:
  call void @Py_DecRef(ptr %object)
  br label %no
no:
  ret ptr null
}}

; Periodically let other threads run, and check for Ctrl-C. 0: it was pressed, Python's error is set.
; Code that runs in between does not touch lists of the arena.
define internal i1 @check_interrupts() noinline memory(inaccessiblemem: readwrite) {{
  %thread = call ptr @PyEval_SaveThread()
  call void @PyEval_RestoreThread(ptr %thread)
  %answer = call i32 @PyErr_CheckSignals()
  %fine = icmp eq i32 %answer, 0
  ret i1 %fine
}}

define internal ptr @fall_back(ptr %capsule, ptr %arguments, i64 %count) noinline {{
start:
  %function = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
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
}}
"""


def objects_text(class_offset: int) -> str:
    """Return the LLVM IR of the functions in this file, for a module with
    :mod:`rekindle.codegen.native.list_runtime_ir`. ``class_offset`` is the offset of the class in a Python object, in
    bytes."""
    return _DECLARATIONS + _TEXT.format(class_offset=class_offset, most=2**62, golden=_GOLDEN)
