"""Entry and exit of native plans, as C functions of CPython.

``self`` of these functions is a capsule of a :class:`PlanStructure`. ``native_plan`` takes the arguments;
``native_plan_from_list`` takes a list of them, which it empties, so that an argument that only the list holds is freed
at its last use. Unsupported calls are passed to a Python function, with the original arguments: Tensor subclasses,
numbers of more than 64 bits, and all calls while something intercepts operators.
"""

from __future__ import annotations

import ctypes
from typing import Final

from rekindle.codegen.plan_runtime.frame import FrameField, Kind, Status


class PlanStructure(ctypes.Structure):
    """Fields of a plan that the entry reads."""

    _fields_ = (
        ("frame_size", ctypes.c_int64),
        ("template", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
        ("argument_count", ctypes.c_int64),
        ("arguments", ctypes.c_void_p),
        ("owner_count", ctypes.c_int64),
        ("owners", ctypes.c_void_p),
        ("register_count", ctypes.c_int64),
        ("registers", ctypes.c_void_p),
        ("fallback", ctypes.c_void_p),
        ("resume", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("file", ctypes.c_void_p),
    )


_FIELDS: Final = {name: index for index, (name, *_) in enumerate(PlanStructure._fields_)}


def _load(name: str, type: str = "ptr") -> str:
    return f"  %{name}.at = getelementptr i64, ptr %plan, i64 {_FIELDS[name]}\n  %{name} = load {type}, ptr %{name}.at"


_STACK_SIZE: Final = 2048
"""Maximum size in bytes of a frame on the stack: a plan may call itself through Python, as often as Python allows."""
_HANDLER_SIZE: Final = 256
"""Size in bytes reserved for a torch::PyWarningHandler, which is smaller."""

ENTRY: Final = f"""
define internal ptr @fall_back(ptr %plan, ptr %objects, i64 %count) {{
{_load("fallback")}
  %flags = or i64 %count, 0
  %result = call ptr @PyObject_Vectorcall(ptr %fallback, ptr %objects, i64 %flags, ptr null)
  ret ptr %result
}}

; An argument to its register; %check asks for a plain Tensor. False: the plan does not take it.
define internal i1 @take_argument(i64 %kind, ptr %slot, i64 %check, ptr %object) {{
start:
  %is_object = icmp eq i64 %kind, {int(Kind.OBJECT)}
  br i1 %is_object, label %object_kind, label %number
object_kind:
  %checked = icmp ne i64 %check, 0
  br i1 %checked, label %look, label %take
look:
  %plain = call i1 @is_plain_tensor(ptr %object)
  br i1 %plain, label %take, label %no
take:
  call void @Py_IncRef(ptr %object)
  store ptr %object, ptr %slot
  ret i1 true
number:
  %fits = call i1 @unboxed(i64 %kind, ptr %object, ptr %slot)
  ret i1 %fits
no:
  ret i1 false
}}

define internal void @empty_all(ptr %plan, ptr %frame) {{
start:
{_load("owner_count", "i64")}
{_load("owners")}
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %one]
  %more = icmp slt i64 %i, %owner_count
  br i1 %more, label %one, label %end
one:
  %twice = mul i64 %i, 2
  %kind_at = getelementptr i64, ptr %owners, i64 %twice
  %offset_at = getelementptr i64, ptr %kind_at, i64 1
  %kind = load i64, ptr %kind_at
  %offset = load i64, ptr %offset_at
  %slot = getelementptr i8, ptr %frame, i64 %offset
  call void @empty(i64 %kind, ptr %slot)
  %i_next = add i64 %i, 1
  br label %loop
end:
  ret void
}}

; Resume in the interpreter: resume(index, after, [registers], pending, object).
define internal ptr @resume_in_interpreter(ptr %plan, ptr %frame, i64 %status) {{
start:
{_load("register_count", "i64")}
{_load("registers")}
{_load("resume")}
  %list = call ptr @PyList_New(i64 %register_count)
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %one]
  %more = icmp slt i64 %i, %register_count
  br i1 %more, label %one, label %end
one:
  %twice = mul i64 %i, 2
  %kind_at = getelementptr i64, ptr %registers, i64 %twice
  %offset_at = getelementptr i64, ptr %kind_at, i64 1
  %kind = load i64, ptr %kind_at
  %offset = load i64, ptr %offset_at
  %slot = getelementptr i8, ptr %frame, i64 %offset
  %object = call ptr @boxed(i64 %kind, ptr %slot)
  %e = call i32 @PyList_SetItem(ptr %list, i64 %i, ptr %object)
  %i_next = add i64 %i, 1
  br label %loop
end:
  call void @empty_all(ptr %plan, ptr %frame)
  %index_at = getelementptr i64, ptr %frame, i64 {int(FrameField.INDEX)}
  %index = load i64, ptr %index_at
  %index_object = call ptr @PyLong_FromLongLong(i64 %index)
  %is_after = icmp eq i64 %status, {int(Status.LEFT_AFTER)}
  %after = zext i1 %is_after to i64
  %after_object = call ptr @PyBool_FromLong(i64 %after)
  %pending_at = getelementptr i64, ptr %frame, i64 {int(FrameField.PENDING)}
  %pending = load i64, ptr %pending_at
  %register = sub i64 %pending, 1
  %register_object = call ptr @PyLong_FromLongLong(i64 %register)
  %result_at = getelementptr i64, ptr %frame, i64 {int(FrameField.RESULT)}
  %given = load ptr, ptr %result_at
  %has_pending = icmp ne i64 %pending, 0
  br i1 %has_pending, label %owned, label %unowned
unowned:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  br label %call
owned:
  br label %call
call:
  %value = phi ptr [@_Py_NoneStruct, %unowned], [%given, %owned]
  %tuple = call ptr @PyTuple_New(i64 5)
  %t0 = call i32 @PyTuple_SetItem(ptr %tuple, i64 0, ptr %index_object)
  %t1 = call i32 @PyTuple_SetItem(ptr %tuple, i64 1, ptr %after_object)
  %t2 = call i32 @PyTuple_SetItem(ptr %tuple, i64 2, ptr %list)
  %t3 = call i32 @PyTuple_SetItem(ptr %tuple, i64 3, ptr %register_object)
  %t4 = call i32 @PyTuple_SetItem(ptr %tuple, i64 4, ptr %value)
  %answer = call ptr @PyObject_CallObject(ptr %resume, ptr %tuple)
  call void @Py_DecRef(ptr %tuple)
  ret ptr %answer
}}

; Emit the warnings that C++ has given as Python's; null if one of them is an error, and else %result.
define internal ptr @end_warnings(ptr %handler, ptr %result) personality ptr @__gxx_personality_v0 {{
start:
  %type_at = alloca ptr
  %value_at = alloca ptr
  %trace_at = alloca ptr
  call void @PyErr_Fetch(ptr %type_at, ptr %value_at, ptr %trace_at)
  invoke void @_ZN5torch16PyWarningHandlerD1Ev(ptr %handler) to label %good unwind label %thrown
good:
  %type = load ptr, ptr %type_at
  %value = load ptr, ptr %value_at
  %trace = load ptr, ptr %trace_at
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %trace)
  ret ptr %result
thrown:
  %pad = landingpad {{ ptr, i32 }} catch ptr null
  %exception = extractvalue {{ ptr, i32 }} %pad, 0
  %c = call ptr @__cxa_begin_catch(ptr %exception)
  %first = load ptr, ptr %type_at
  %none = icmp eq ptr %first, null
  br i1 %none, label %translate, label %restore
translate:
  %current = alloca ptr
  call void @_ZSt17current_exceptionv(ptr sret(ptr) %current)
  call void @_ZN5torch29translate_exception_to_pythonERKNSt15__exception_ptr13exception_ptrE(ptr %current)
  call void @_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(ptr %current)
  call void @__cxa_end_catch()
  call void @drop_object(ptr %result)
  ret ptr null
restore:
  call void @__cxa_end_catch()
  %type2 = load ptr, ptr %type_at
  %value2 = load ptr, ptr %value_at
  %trace2 = load ptr, ptr %trace_at
  call void @PyErr_Restore(ptr %type2, ptr %value2, ptr %trace2)
  ret ptr null
}}

define ptr @native_plan(ptr %capsule, ptr %objects, i64 %count) {{
  %plan = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %answer = call ptr @enter_plan(ptr %plan, ptr %objects, i64 %count, ptr null)
  ret ptr %answer
}}

; The only argument is the list of arguments.
define ptr @native_plan_from_list(ptr %capsule, ptr %objects, i64 %one) {{
start:
  %plan = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %list = load ptr, ptr %objects
  %count = call i64 @PyList_Size(ptr %list)
  %is_list = icmp sge i64 %count, 0
  br i1 %is_list, label %spread, label %error
spread:
  %items = alloca ptr, i64 %count
  br label %loop
loop:
  %i = phi i64 [0, %spread], [%i_next, %copy]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %copy, label %enter
copy:
  %item = call ptr @PyList_GetItem(ptr %list, i64 %i)
  %item_at = getelementptr ptr, ptr %items, i64 %i
  store ptr %item, ptr %item_at
  %i_next = add i64 %i, 1
  br label %loop
enter:
  %answer = call ptr @enter_plan(ptr %plan, ptr %items, i64 %count, ptr %list)
  ret ptr %answer
error:
  ret ptr null
}}

; Run a plan. %list, unless it is null, is emptied when the registers hold the arguments.
define internal ptr @enter_plan(ptr %plan, ptr %objects, i64 %count, ptr %list) {{
start:
{_load("frame_size", "i64")}
{_load("template")}
{_load("first")}
{_load("argument_count", "i64")}
{_load("arguments")}
{_load("name")}
{_load("file")}
  %complete = icmp eq i64 %count, %argument_count
  br i1 %complete, label %modes, label %other_way
modes:
  %plain = call i1 @is_plain()
  br i1 %plain, label %prepare, label %other_way
prepare:
  %is_large = icmp sgt i64 %frame_size, {_STACK_SIZE}
  br i1 %is_large, label %large, label %small
small:
  %on_stack = alloca i8, i64 %frame_size, align 16
  br label %fill
large:
  %elsewhere = call ptr @_Znwm(i64 %frame_size)
  br label %fill
fill:
  %frame = phi ptr [%on_stack, %small], [%elsewhere, %large]
  call void @llvm.memcpy.p0.p0.i64(ptr %frame, ptr %template, i64 %frame_size, i1 false)
  store ptr %plan, ptr %frame
  br label %loop
loop:
  %i = phi i64 [0, %fill], [%i_next, %taken]
  %more = icmp slt i64 %i, %argument_count
  br i1 %more, label %take, label %all_taken
take:
  %object_at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object_at
  %triple = mul i64 %i, 3
  %kind_at = getelementptr i64, ptr %arguments, i64 %triple
  %offset_at = getelementptr i64, ptr %kind_at, i64 1
  %check_at = getelementptr i64, ptr %kind_at, i64 2
  %kind = load i64, ptr %kind_at
  %offset = load i64, ptr %offset_at
  %check = load i64, ptr %check_at
  %slot = getelementptr i8, ptr %frame, i64 %offset
  %fits = call i1 @take_argument(i64 %kind, ptr %slot, i64 %check, ptr %object)
  br i1 %fits, label %taken, label %refused
taken:
  %i_next = add i64 %i, 1
  br label %loop
refused:
  call void @empty_all(ptr %plan, ptr %frame)
  call void @free_frame(ptr %frame, i64 %frame_size)
  br label %other_way
other_way:
  %answer = call ptr @fall_back(ptr %plan, ptr %objects, i64 %count)
  ret ptr %answer
all_taken:
  %has_list = icmp ne ptr %list, null
  br i1 %has_list, label %empty_list, label %start_run
empty_list:
  %e = call i32 @PyList_SetSlice(ptr %list, i64 0, i64 %count, ptr null)
  br label %start_run
start_run:
  %handler = alloca i8, i64 {_HANDLER_SIZE}, align 16
  call void @_ZN5torch16PyWarningHandlerC1Ev(ptr %handler)
  call void @run(ptr %frame, ptr %first)
  call void @lock_gil(ptr %frame)
  %status_at = getelementptr i64, ptr %frame, i64 {int(FrameField.STATUS)}
  %status = load i64, ptr %status_at
  switch i64 %status, label %leave [
    i64 {int(Status.FAILED)}, label %failed
    i64 {int(Status.RETURNED)}, label %returned
  ]
returned:
  %result_at = getelementptr i64, ptr %frame, i64 {int(FrameField.RESULT)}
  %returned.is = load ptr, ptr %result_at
  call void @empty_all(ptr %plan, ptr %frame)
  br label %end
failed:
  %index_at = getelementptr i64, ptr %frame, i64 {int(FrameField.INDEX)}
  %index = load i64, ptr %index_at
  %narrow = trunc i64 %index to i32
  %line = add i32 %narrow, 1
  call void @_PyTraceback_Add(ptr %name, ptr %file, i32 %line)
  call void @empty_with_error(ptr %plan, ptr %frame)
  br label %end
leave:
  %resumed = call ptr @resume_in_interpreter(ptr %plan, ptr %frame, i64 %status)
  br label %end
end:
  %outcome = phi ptr [%returned.is, %returned], [null, %failed], [%resumed, %leave]
  call void @free_frame(ptr %frame, i64 %frame_size)
  %final = call ptr @end_warnings(ptr %handler, ptr %outcome)
  ret ptr %final
}}

; Free a frame, if it is not on the stack.
define internal void @free_frame(ptr %frame, i64 %size) {{
  %is_large = icmp sgt i64 %size, {_STACK_SIZE}
  br i1 %is_large, label %free, label %end
free:
  call void @_ZdlPvm(ptr %frame, i64 %size)
  br label %end
end:
  ret void
}}

; Empty the registers while an error is set: what dies with them may run anything.
define internal void @empty_with_error(ptr %plan, ptr %frame) {{
  %type_at = alloca ptr
  %value_at = alloca ptr
  %trace_at = alloca ptr
  call void @PyErr_Fetch(ptr %type_at, ptr %value_at, ptr %trace_at)
  call void @empty_all(ptr %plan, ptr %frame)
  %type = load ptr, ptr %type_at
  %value = load ptr, ptr %value_at
  %trace = load ptr, ptr %trace_at
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %trace)
  ret void
}}
"""
