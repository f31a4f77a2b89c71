"""LLVM IR that unboxes Python's Tensors and numbers, and boxes Tensors.

It describes them in structures of 64-bit words::

    layout  dtype, rank, sizes*, strides*        of a number: its class (0 int, 1 float, 2 bool), 0, null, null
                                                 of a fixed object: -1, 0, null, null

The word of the dtype encodes the device too: see :func:`dtype_and_device`.
"""

from __future__ import annotations

from typing import Final

import torch

from rekindle.codegen.llvm.tensor_abi import FUNCTIONS, TensorObjects
from rekindle.ir.scalar_types import DTYPE_NUMBERS

DEVICE_UNIT: Final = 256
"""Difference of the word of a dtype between the CPU and ``cuda:0``, and between consecutive GPUs."""

FIXED: Final = -1
"""In place of a dtype, marks an input that is always the same object."""


def dtype_and_device(dtype: torch.dtype, device: torch.device) -> int:
    """Return a dtype and a device, CPU or GPU, encoded in one 64-bit word."""
    number = DTYPE_NUMBERS[dtype]
    return number if device.type == "cpu" else number + DEVICE_UNIT * ((device.index or 0) + 1)


_INCLUDED: Final = "_ZN3c104impl31tls_is_dispatch_keyset_includedENS_14DispatchKeySetE"
_EXCLUDED: Final = "_ZN3c104impl31tls_is_dispatch_keyset_excludedENS_14DispatchKeySetE"
_AUTOGRAD_META: Final = "_ZNK3c1010TensorImpl13autograd_metaEv"
_REQUIRES_GRAD: Final = "_ZNK3c1010TensorImpl13requires_gradEv"
_FUNCTION_MODE: Final = "_ZN2at4impl27torch_function_mode_enabledEv"
_WRAP: Final = "_Z16THPVariable_WrapON2at10TensorBaseE"

_TEXT: Final = """
%Layout = type {{ i64, i64, ptr, ptr }}

; Whether nothing intercepts operators: no mode of Python, no transform, no autocast.
define internal i1 @is_plain() {{
{plain}
}}

; Whether a forward derivative is being computed: the level of torch.autograd.forward_ad is not -1.
define internal i1 @is_dual(ptr %forward) {{
  %level = call ptr @PyDict_GetItemString(ptr %forward, ptr @level_name)
  %missing = icmp eq ptr %level, null
  br i1 %missing, label %yes, label %read
read:
  %number = call i64 @PyLong_AsLongLong(ptr %level)
  %positive = icmp sge i64 %number, 0
  ret i1 %positive
yes:
  ret i1 true
}}

; Describe a Tensor in %layout, and store the address of its data in %pointer. False: kernels do not take such a Tensor.
define internal i1 @read_tensor(ptr %object, i1 %grad_mode, ptr %forward, ptr %layout, ptr %pointer) {{
  %class_at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class_at
  %tensor_class = load ptr, ptr @THPVariableClass
  %parameter_class = load ptr, ptr @ParameterClass
  %is_tensor = icmp eq ptr %class, %tensor_class
  %is_parameter = icmp eq ptr %class, %parameter_class
  %known_class = or i1 %is_tensor, %is_parameter
  br i1 %known_class, label %look, label %no
look:
  %handle = getelementptr i8, ptr %object, i64 {tensor_offset}
  %fine = call i1 @read_handle(ptr %handle, i1 %grad_mode, ptr %forward, ptr %layout, ptr %pointer)
  ret i1 %fine
no:
  ret i1 false
}}

; Do the same for the at::Tensor at %handle.
define internal i1 @read_handle(ptr %handle, i1 %grad_mode, ptr %forward, ptr %layout, ptr %pointer) {{
  %dtype_to = alloca i32
  %index_to = alloca i32
  %tensor = load ptr, ptr %handle
  %keys_at = getelementptr i8, ptr %tensor, i64 {keys_offset}
  %keys = load i64, ptr %keys_at
  %is_plain = icmp eq i64 %keys, {plain_keys}
  %of_inference = icmp eq i64 %keys, {inference_keys}
  %on_cpu = or i1 %is_plain, %of_inference
  br i1 %on_cpu, label %gradient, label %gpu
gpu:
  %is_plain_gpu = icmp eq i64 %keys, {cuda_keys}
  %of_inference_gpu = icmp eq i64 %keys, {cuda_inference_keys}
  %on_gpu = or i1 %is_plain_gpu, %of_inference_gpu
  br i1 %on_gpu, label %gradient, label %no
gradient:
  %meta = call ptr @{autograd_meta}(ptr %tensor)
  %never = icmp eq ptr %meta, null
  br i1 %never, label %read, label %forward_mode
forward_mode:
  %dual = call i1 @is_dual(ptr %forward)
  br i1 %dual, label %no, label %backward_mode
backward_mode:
  br i1 %grad_mode, label %ask, label %read
ask:
  %required = call i1 @{requires_grad}(ptr %tensor)
  br i1 %required, label %no, label %read
read:
  %e0 = call i32 @aoti_torch_get_dtype(ptr %handle, ptr %dtype_to)
  %dtype = load i32, ptr %dtype_to
  %wide = sext i32 %dtype to i64
  br i1 %on_cpu, label %known, label %ask_index
ask_index:
  %e5 = call i32 @aoti_torch_get_device_index(ptr %handle, ptr %index_to)
  %device_index = load i32, ptr %index_to
  %wide_index = sext i32 %device_index to i64
  %device_number = add i64 %wide_index, 1
  %device_part = mul i64 %device_number, {device_unit}
  %of_gpu = add i64 %wide, %device_part
  br label %known
known:
  %word = phi i64 [%wide, %read], [%of_gpu, %ask_index]
  store i64 %word, ptr %layout
  %rank_at = getelementptr %Layout, ptr %layout, i64 0, i32 1
  %sizes_at = getelementptr %Layout, ptr %layout, i64 0, i32 2
  %strides_at = getelementptr %Layout, ptr %layout, i64 0, i32 3
  %e1 = call i32 @aoti_torch_get_dim(ptr %handle, ptr %rank_at)
  %e2 = call i32 @aoti_torch_get_sizes(ptr %handle, ptr %sizes_at)
  %e3 = call i32 @aoti_torch_get_strides(ptr %handle, ptr %strides_at)
  %e4 = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %pointer)
  %e01 = or i32 %e0, %e1
  %e23 = or i32 %e2, %e3
  %e03 = or i32 %e01, %e23
  %errors = or i32 %e03, %e4
  %fine = icmp eq i32 %errors, 0
  ret i1 %fine
no:
  ret i1 false
}}

; A number: its class to %layout, its value to %value. False: no number, or none of 64 bits.
define internal i1 @read_scalar(ptr %object, ptr %layout, ptr %value) {{
  %class_at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class_at
  %is_int = icmp eq ptr %class, @PyLong_Type
  br i1 %is_int, label %int, label %no_int
int:
  %number = call i64 @PyLong_AsLongLong(ptr %object)
  store i64 %number, ptr %value
  store i64 0, ptr %layout
  %suspicious = icmp eq i64 %number, -1
  br i1 %suspicious, label %check, label %yes
check:
  %error = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %error, null
  br i1 %none, label %yes, label %too_large
too_large:
  call void @PyErr_Clear()
  br label %no
no_int:
  %is_float = icmp eq ptr %class, @PyFloat_Type
  br i1 %is_float, label %float, label %no_float
float:
  %real = call double @PyFloat_AsDouble(ptr %object)
  store double %real, ptr %value
  store i64 1, ptr %layout
  br label %yes
no_float:
  %is_bool = icmp eq ptr %class, @PyBool_Type
  br i1 %is_bool, label %bool, label %no
bool:
  %is_true = icmp eq ptr %object, @_Py_TrueStruct
  %bit = zext i1 %is_true to i64
  store i64 %bit, ptr %value
  store i64 2, ptr %layout
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

; Allocate a Tensor of %layout, and store the address of its data in %pointer. The caller owns the at::Tensor on the
; heap that is returned. Null: there is no memory.
define internal ptr @new_handle(ptr %layout, ptr %pointer) {{
  %rank_at = getelementptr %Layout, ptr %layout, i64 0, i32 1
  %sizes_at = getelementptr %Layout, ptr %layout, i64 0, i32 2
  %strides_at = getelementptr %Layout, ptr %layout, i64 0, i32 3
  %dtype = load i64, ptr %layout
  %rank = load i64, ptr %rank_at
  %sizes = load ptr, ptr %sizes_at
  %strides = load ptr, ptr %strides_at
  %dtype_part = urem i64 %dtype, {device_unit}
  %narrow = trunc i64 %dtype_part to i32
  %device_number = udiv i64 %dtype, {device_unit}
  %on_cpu = icmp eq i64 %device_number, 0
  %narrow_number = trunc i64 %device_number to i32
  %device_index = sub i32 %narrow_number, 1
  %cpu = call i32 @aoti_torch_device_type_cpu()
  %cuda = call i32 @aoti_torch_device_type_cuda()
  %device_type = select i1 %on_cpu, i32 %cpu, i32 %cuda
  %handle_to = alloca ptr
  %error = call i32 @aoti_torch_empty_strided(
      i64 %rank, ptr %sizes, ptr %strides, i32 %narrow, i32 %device_type, i32 %device_index, ptr %handle_to)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %no, label %made
made:
  %handle = load ptr, ptr %handle_to
  %e = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %pointer)
  ret ptr %handle
no:
  ret ptr null
}}

; Return the object of Python for the at::Tensor that @new_handle has returned, which is freed. Null: an error is set.
define internal ptr @object_of_handle(ptr %handle) {{
  %object = call ptr @{wrap}(ptr %handle)
  %d = call i32 @aoti_torch_delete_tensor_object(ptr %handle)
  ret ptr %object
}}

@level_name = private constant [15 x i8] c"_current_level\\00"
@THPVariableClass = external global ptr
@ParameterClass = external global ptr
@PyLong_Type = external global i8
@PyFloat_Type = external global i8
@PyBool_Type = external global i8
@_Py_TrueStruct = external global i8
declare ptr @PyDict_GetItemString(ptr, ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyObject_CallObject(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
{declarations}
"""


def tensor_reading_text(objects: TensorObjects) -> str:
    """Return the LLVM IR of ``is_plain``, ``read_tensor``, ``read_scalar``, ``new_handle`` and others, with the
    declarations of CPython that they need."""
    declarations = []
    for name, type in FUNCTIONS.items():
        result, _, parameters = type.partition(" ")
        declarations.append(f"declare {result} @{name}{parameters}")
    return _TEXT.format(
        class_offset=objects.class_offset,
        tensor_offset=objects.tensor_offset,
        keys_offset=objects.keys_offset,
        plain_keys=objects.plain_keys,
        inference_keys=objects.inference_keys,
        cuda_keys=objects.cuda_keys,
        cuda_inference_keys=objects.cuda_inference_keys,
        device_unit=DEVICE_UNIT,
        plain=_is_plain(objects),
        autograd_meta=_AUTOGRAD_META,
        requires_grad=_REQUIRES_GRAD,
        wrap=_WRAP,
        declarations="\n".join(declarations),
    )


def _is_plain(objects: TensorObjects) -> str:
    lines = [f"  %q0 = call i1 @{_FUNCTION_MODE}()", "  br i1 %q0, label %no, label %a1"]
    for index, key in enumerate(objects.mode_keys, 1):
        lines += [f"a{index}:", f"  %q{index} = call i1 @{_INCLUDED}(i64 {key})"]
        lines.append(f"  br i1 %q{index}, label %no, label %a{index + 1}")
    last = len(objects.mode_keys) + 1
    lines += [f"a{last}:", f"  %q{last} = call i1 @{_EXCLUDED}(i64 {objects.autocast_key})", f"  ret i1 %q{last}"]
    return "\n".join([*lines, "no:", "  ret i1 false"])
