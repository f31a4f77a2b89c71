"""Launch a kernel, in LLVM IR: find the launch that fits, allocate its results, run it.

The structures are those of :mod:`rekindle.codegen.llvm.launch_lookup_ir`. ``launch_kernel`` serves the C function that
Python calls (:mod:`rekindle.codegen.llvm.call_site_ir`), and native plans, which hold
``at::Tensor`` in frame slots.
"""

from __future__ import annotations

from typing import Final

from rekindle.codegen.llvm.launch_lookup_ir import launch_text
from rekindle.codegen.llvm.recording_ir import recording_text
from rekindle.codegen.llvm.tensor_boxing_ir import DEVICE_UNIT

UNLOCKED_ELEMENTS: Final = 1 << 15
"""Minimum number of elements of the largest input for which the GIL is released while a kernel runs on a CPU; for GPUs
it always is."""

_TEXT: Final = """
; Return the number of elements of the largest of the inputs.
define internal i64 @most_elements(ptr %layouts, i64 %inputs) {{
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %counted]
  %most = phi i64 [1, %start], [%most_next, %counted]
  %more = icmp slt i64 %i, %inputs
  br i1 %more, label %one, label %end
one:
  %layout = getelementptr %Layout, ptr %layouts, i64 %i
  %rank_at = getelementptr %Layout, ptr %layout, i64 0, i32 1
  %sizes_at = getelementptr %Layout, ptr %layout, i64 0, i32 2
  %rank = load i64, ptr %rank_at
  br label %multiply
multiply:
  %d = phi i64 [0, %one], [%d_next, %size]
  %count = phi i64 [1, %one], [%count_next, %size]
  %d_more = icmp slt i64 %d, %rank
  br i1 %d_more, label %size, label %counted
size:
  %sizes = load ptr, ptr %sizes_at
  %size_at = getelementptr i64, ptr %sizes, i64 %d
  %length = load i64, ptr %size_at
  %count_next = mul i64 %count, %length
  %d_next = add i64 %d, 1
  br label %multiply
counted:
  %larger = icmp sgt i64 %count, %most
  %most_next = select i1 %larger, i64 %count, i64 %most
  %i_next = add i64 %i, 1
  br label %loop
end:
  ret i64 %most
}}

; Run the launch of %site that fits %layouts. %pointers holds the addresses of the data of %tensors inputs, and has room
; for those of the outputs; %scalars holds the numbers. Return the number of outputs: at::Tensors on the heap, in
; %handles, which the caller owns. Return -1 where no launch fits, there is no memory, or the kernel refuses.
define internal i64 @launch_kernel(
    ptr %site, ptr %layouts, i64 %inputs, ptr %pointers, i64 %tensors, ptr %scalars, ptr %handles) {{
start:
  %launch = call ptr @find_launch(ptr %site, ptr %layouts, i64 %inputs)
  %none = icmp eq ptr %launch, null
  br i1 %none, label %no, label %launched
launched:
  %kernel = load ptr, ptr %launch
  ; The numbers are copied: while the kernel runs without the GIL, another thread may rebind the launch to other sizes.
  %numbers_at = getelementptr %Launch, ptr %launch, i64 0, i32 1
  %numbers = load ptr, ptr %numbers_at
  %parameters_at = getelementptr %Launch, ptr %launch, i64 0, i32 5
  %parameters = load i64, ptr %parameters_at
  %total_at = getelementptr %Launch, ptr %launch, i64 0, i32 6
  %total = load i64, ptr %total_at
  %own = alloca i64, i64 %total
  call void @copy_words(ptr %own, ptr %numbers, i64 %total)
  %layout = alloca %Layout
  %rank_at = getelementptr %Layout, ptr %layout, i64 0, i32 1
  %sizes_at = getelementptr %Layout, ptr %layout, i64 0, i32 2
  %strides_at = getelementptr %Layout, ptr %layout, i64 0, i32 3
  %outputs_at = getelementptr %Launch, ptr %launch, i64 0, i32 3
  %outputs = load i64, ptr %outputs_at
  %output_layouts_at = getelementptr %Launch, ptr %launch, i64 0, i32 4
  %output_layouts = load ptr, ptr %output_layouts_at
  %name_at = getelementptr %Launch, ptr %launch, i64 0, i32 8
  %name = load ptr, ptr %name_at
  br label %allocate
allocate:
  %o = phi i64 [0, %launched], [%o_next, %allocated]
  %n = phi i64 [%parameters, %launched], [%n_next, %allocated]
  %o_more = icmp slt i64 %o, %outputs
  br i1 %o_more, label %make, label %run
make:
  %m_layout = getelementptr %Layout, ptr %output_layouts, i64 %o
  %m_dtype = load i64, ptr %m_layout
  %m_rank_at = getelementptr %Layout, ptr %m_layout, i64 0, i32 1
  %m_rank = load i64, ptr %m_rank_at
  %n_middle = add i64 %n, %m_rank
  %n_next = add i64 %n_middle, %m_rank
  %o_sizes = getelementptr i64, ptr %own, i64 %n
  %o_strides = getelementptr i64, ptr %own, i64 %n_middle
  store i64 %m_dtype, ptr %layout
  store i64 %m_rank, ptr %rank_at
  store ptr %o_sizes, ptr %sizes_at
  store ptr %o_strides, ptr %strides_at
  %o_index = add i64 %tensors, %o
  %o_pointer = getelementptr ptr, ptr %pointers, i64 %o_index
  %o_handle = call ptr @new_handle(ptr %layout, ptr %o_pointer)
  %o_at = getelementptr ptr, ptr %handles, i64 %o
  store ptr %o_handle, ptr %o_at
  %o_failed = icmp eq ptr %o_handle, null
  br i1 %o_failed, label %release, label %allocated
allocated:
  %o_next = add i64 %o, 1
  br label %allocate
run:
  %elements = call i64 @most_elements(ptr %layouts, i64 %inputs)
  %many = icmp sge i64 %elements, {unlocked_elements}
  ; A launch on a GPU waits where the queue of the driver is full.
  %out_word = load i64, ptr %output_layouts
  %on_gpu = icmp uge i64 %out_word, {device_unit}
  %is_long = or i1 %many, %on_gpu
  br i1 %is_long, label %unlocked, label %locked
unlocked:
  ; From here on, nothing is read that other threads write: the launch may be evicted, or rebound to other sizes.
  %thread = call ptr @PyEval_SaveThread()
  %unlocked_event = call ptr @begin_event(ptr %name)
  %unlocked_status = call i64 %kernel(ptr %pointers, ptr %own, ptr %scalars)
  call void @end_event(ptr %unlocked_event)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
locked:
  %locked_event = call ptr @begin_event(ptr %name)
  %locked_status = call i64 %kernel(ptr %pointers, ptr %own, ptr %scalars)
  call void @end_event(ptr %locked_event)
  br label %ran
ran:
  %status = phi i64 [%unlocked_status, %unlocked], [%locked_status, %locked]
  %is_wrong = icmp ne i64 %status, 0
  br i1 %is_wrong, label %release, label %written
written:
  ret i64 %outputs
release:
  %r = phi i64 [%o, %make], [%outputs, %ran], [%r_next, %released]
  %r_more = icmp sgt i64 %r, 0
  br i1 %r_more, label %released, label %no
released:
  %r_next = sub i64 %r, 1
  %r_at = getelementptr ptr, ptr %handles, i64 %r_next
  %r_handle = load ptr, ptr %r_at
  %r_error = call i32 @aoti_torch_delete_tensor_object(ptr %r_handle)
  br label %release
no:
  ret i64 -1
}}
"""


def kernel_launch_text(most_launches: int) -> str:
    """Return the LLVM IR of ``launch_kernel`` and its callees, for a module that has the functions of
    :mod:`rekindle.codegen.llvm.tensor_boxing_ir`. A call site has at most ``most_launches`` launches."""
    text = _TEXT.format(unlocked_elements=UNLOCKED_ELEMENTS, device_unit=DEVICE_UNIT)
    return launch_text(most_launches) + recording_text() + text
