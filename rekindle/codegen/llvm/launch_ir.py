"""Launch a kernel, in LLVM's language: find the launch that fits, allocate its results, run it.

The structures are those of :mod:`rekindle.codegen.llvm.launch_lookup_ir`. ``launch_kernel`` serves the C function that
Python calls (:mod:`rekindle.codegen.llvm.call_site_ir`), and native plans, whose Tensors are no objects of Python.
"""

from __future__ import annotations

from typing import Final

from rekindle.codegen.llvm.launch_lookup_ir import launch_text

_TEXT: Final = """
; Run the launch of %site that fits %layouts. %pointers holds the addresses of the data of %tensors inputs, and has room
; for those of the outputs; %scalars holds the numbers. Return the number of outputs: at::Tensors on the heap, in
; %handles, which the caller owns. Return -1 where no launch fits, there is no memory, or the kernel refuses.
define internal i64 @launch_kernel(
    ptr %site, ptr %layouts, i64 %inputs, ptr %pointers, i64 %tensors, ptr %scalars, ptr %handles) {
start:
  %launch = call ptr @find_launch(ptr %site, ptr %layouts, i64 %inputs)
  %none = icmp eq ptr %launch, null
  br i1 %none, label %no, label %launched
launched:
  %kernel = load ptr, ptr %launch
  ; Allocating a Tensor may run anything, and with it this launch for other sizes.
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
  %made_at = getelementptr %Launch, ptr %launch, i64 0, i32 4
  %made = load ptr, ptr %made_at
  br label %allocate
allocate:
  %o = phi i64 [0, %launched], [%o_next, %allocated]
  %n = phi i64 [%parameters, %launched], [%n_next, %allocated]
  %o_more = icmp slt i64 %o, %outputs
  br i1 %o_more, label %make, label %run
make:
  %m_layout = getelementptr %Layout, ptr %made, i64 %o
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
  %status = call i64 %kernel(ptr %pointers, ptr %own, ptr %scalars)
  %is_wrong = icmp ne i64 %status, 0
  br i1 %is_wrong, label %release, label %written
written:
  ret i64 %outputs
release:
  %r = phi i64 [%o, %make], [%outputs, %run], [%r_next, %released]
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
}
"""


def kernel_launch_text(most_launches: int) -> str:
    """Functions for a module that has those of :mod:`rekindle.codegen.llvm.tensor_boxing_ir`: ``launch_kernel``, and
    what it calls. A site has at most ``most_launches`` launches."""
    return launch_text(most_launches) + _TEXT
