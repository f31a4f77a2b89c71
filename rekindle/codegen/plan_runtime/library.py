"""All handlers, and the entry of plans, as one module of machine code."""

from __future__ import annotations

import platform
import sys
from functools import cache
from typing import Final

from rekindle.codegen.llvm.call_sites import MAX_LAUNCHES
from rekindle.codegen.llvm.cpython_wrappers import object_class_offset
from rekindle.codegen.llvm.engine import NativeCode, compile_module
from rekindle.codegen.llvm.launch_ir import kernel_launch_text
from rekindle.codegen.llvm.library import MissingSymbolError
from rekindle.codegen.llvm.optimization import PREOPTIMIZED
from rekindle.codegen.llvm.tensor_abi import tensor_objects
from rekindle.codegen.llvm.tensor_boxing_ir import tensor_reading_text
from rekindle.codegen.plan_runtime import (
    attribute_check_ir,
    call_ir,
    container_ir,
    control_ir,
    conversion_ir,
    entry_ir,
    kernel_ir,
    number_ir,
    ownership_ir,
    type_check_ir,
)

ENTRY: Final = "native_plan"
"""The function that Python calls."""
LIST_ENTRY: Final = "native_plan_from_list"
"""The function that Python calls with a list of arguments, which it empties."""

_VECTORCALL: Final = "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)"
VECTORCALL_BEFORE_3_11: Final = """
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
declare ptr @_PyObject_MakeTpCall(ptr, ptr, ptr, i64, ptr)
declare ptr @PyThreadState_Get()

define internal ptr @PyObject_Vectorcall(ptr %function, ptr %arguments, i64 %flags, ptr %names) {
  %is_positional = icmp eq ptr %names, null
  br i1 %is_positional, label %positional, label %named
positional:
  %by_position = call ptr @PyObject_VectorcallDict(ptr %function, ptr %arguments, i64 %flags, ptr null)
  ret ptr %by_position
named:
  %thread = call ptr @PyThreadState_Get()
  %count = and i64 %flags, 9223372036854775807
  %by_name = call ptr @_PyObject_MakeTpCall(ptr %thread, ptr %function, ptr %arguments, i64 %count, ptr %names)
  ret ptr %by_name
}
"""
"""``PyObject_Vectorcall`` of functions that CPython 3.10 exports: there it is an inline function of the headers."""

_DECLARATIONS: Final = """
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i64 @PyList_Size(ptr)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBool_FromLong(i64)
declare i32 @PyErr_CheckSignals()
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @_PyTraceback_Add(ptr, ptr, i32)
@_Py_NoneStruct = external global i8
@PyList_Type = external global i8
@PyTuple_Type = external global i8
@PyDict_Type = external global i8
declare i32 @aoti_torch_new_tensor_handle(ptr, ptr)
declare i32 @aoti_torch_get_numel(ptr, ptr)
declare ptr @_Z16THPVariable_WrapRKN2at10TensorBaseE(ptr)
declare void @_ZN5torch16PyWarningHandlerC1Ev(ptr)
declare void @_ZN5torch16PyWarningHandlerD1Ev(ptr)
declare void @_ZSt17current_exceptionv(ptr sret(ptr))
declare void @_ZN5torch29translate_exception_to_pythonERKNSt15__exception_ptr13exception_ptrE(ptr)
declare void @_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(ptr)
declare ptr @_Znwm(i64)
declare void @_ZdlPvm(ptr, i64)
declare i32 @__gxx_personality_v0(...)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
"""

_HANDLERS: Final = (
    *ownership_ir.HANDLERS,
    *conversion_ir.HANDLERS,
    *number_ir.HANDLERS,
    *container_ir.HANDLERS,
    *call_ir.HANDLERS,
    *kernel_ir.HANDLERS,
    *control_ir.HANDLERS,
)
_SUPPORT: Final = (
    ownership_ir.OWNERSHIP,
    ownership_ir.EMPTY,
    conversion_ir.CONVERSIONS,
    container_ir.CONTAINERS,
    call_ir.CALLS,
    control_ir.CONTROL,
    entry_ir.ENTRY,
    type_check_ir.TYPE_CHECK,
    attribute_check_ir.ATTRIBUTE_CHECK,
)


def library_text() -> str | None:
    """Return the LLVM IR of all handlers; None if this build of PyTorch or Python is not supported, or this platform is
    not Linux on x86-64."""
    objects, class_offset = tensor_objects(), object_class_offset()
    if objects is None or class_offset is None or sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    vectorcall = _VECTORCALL if sys.version_info >= (3, 11) else VECTORCALL_BEFORE_3_11
    text = "\n".join([vectorcall, _DECLARATIONS, number_ir.DECLARATIONS, *_SUPPORT, *_HANDLERS])
    text = text.replace("{class_offset}", str(class_offset)).replace("{tensor_offset}", str(objects.tensor_offset))
    return "\n".join([PREOPTIMIZED, tensor_reading_text(objects), kernel_launch_text(MAX_LAUNCHES), text])


@cache
def plan_library() -> NativeCode | None:
    """Return the machine code of all handlers; None if this platform does not support native plans."""
    text = library_text()
    if text is None:
        return None
    try:
        return compile_module(text)
    except MissingSymbolError:
        return None


def loaded_plan_library() -> NativeCode | None:
    """Return the machine code of all handlers if this process has loaded it; None otherwise."""
    return plan_library() if plan_library.cache_info().currsize else None
