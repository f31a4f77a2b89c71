"""Events of ``torch.profiler`` for kernels and native regions, in LLVM IR.

A profiler adds its callbacks to the thread that it watches. Native code asks whether there are any, which takes 5 ns,
and only then begins an event. Where PyTorch lacks the functions, nothing is recorded.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

from rekindle.codegen.llvm.symbols import find
from rekindle.ir.profiling import PREFIX

_FUNCTIONS: Final = ("_ZN2at23hasThreadLocalCallbacksEv", "aoti_record_function_start", "aoti_record_function_end")

_WITHOUT_EVENTS: Final = """
define internal ptr @begin_event(ptr %name) alwaysinline {
  ret ptr null
}

define internal void @end_event(ptr %event) alwaysinline {
  ret void
}
"""

_WITH_EVENTS: Final = """
declare i1 @_ZN2at23hasThreadLocalCallbacksEv()
declare i32 @aoti_record_function_start(ptr, ptr, ptr, i64, ptr)
declare i32 @aoti_record_function_end(ptr)

define internal ptr @begin_event(ptr %name) {
start:
  %is_watched = call i1 @_ZN2at23hasThreadLocalCallbacksEv()
  %is_unnamed = icmp eq ptr %name, null
  %is_unwatched = xor i1 %is_watched, true
  %none = or i1 %is_unnamed, %is_unwatched
  br i1 %none, label %no, label %begin
begin:
  %event = alloca ptr
  %error = call i32 @aoti_record_function_start(ptr %name, ptr null, ptr null, i64 0, ptr %event)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %no, label %begun
begun:
  %handle = load ptr, ptr %event
  ret ptr %handle
no:
  ret ptr null
}

define internal void @end_event(ptr %event) {
start:
  %none = icmp eq ptr %event, null
  br i1 %none, label %done, label %end
end:
  %error = call i32 @aoti_record_function_end(ptr %event)
  br label %done
done:
  ret void
}
"""


def recording_text() -> str:
    """Return the LLVM IR of two functions. ``begin_event`` begins a profiler event with the name at an address, and
    returns it; null if events are not recorded, or the address is null. ``end_event`` ends it."""
    return _WITH_EVENTS if all(find(name) is not None for name in _FUNCTIONS) else _WITHOUT_EVENTS


@cache
def _buffer(name: str) -> Any:
    return ctypes.create_string_buffer((PREFIX + name).encode())


def name_address(name: str) -> int:
    """Return the address of the name of an event. It stays valid: a profiler may read it after a kernel is gone."""
    return ctypes.addressof(_buffer(name))
