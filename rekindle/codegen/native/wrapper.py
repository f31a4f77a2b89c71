"""The CPython wrapper of a region: a C function that unboxes Python objects, calls the region, and boxes the results.

If it cannot unbox an argument, or the region falls back to the plan, it calls a Python function with the original
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.codegen.native.native_types import NativeType
from rekindle.codegen.native.writer import FALLBACK, RAISED, Number, argument_names, arguments_text
from rekindle.ir.profiling import PREFIX

ENTRY: Final = "entry"
"""The name of the C function."""

EVENT: Final = "native_region"
"""The name by which a profiler records that a region runs."""

_STACK: Final = 4096
"""Size in bytes of the stack memory for lists."""


def entry_text(region: str, inputs: Sequence[NativeType], outputs: Sequence[NativeType]) -> str:
    """Return the LLVM IR of ``@entry``, which unboxes the arguments and calls ``@{region}``. Its ``self`` is a capsule
    of the Python function that is the fallback."""
    lines = [
        "start:",
        "  %arena = alloca %Arena",
        f"  %stack = alloca [{_STACK} x i8], align 16",
        f"  %results = alloca [{max(sum(kind.words for kind in outputs), 1)} x i64]",
        f"  %stack_end = getelementptr i8, ptr %stack, i64 {_STACK}",
        "  %e1 = insertvalue %Arena zeroinitializer, ptr %stack, 1",
        "  %e2 = insertvalue %Arena %e1, ptr %stack_end, 2",
        "  store %Arena %e2, ptr %arena",
        f"  %complete = icmp eq i64 %count, {len(inputs)}",
        "  br i1 %complete, label %take0, label %left",
    ]
    for index, kind in enumerate(inputs):
        lines += _take(index, kind)
    given = "".join(f", {arguments_text(index, kind)}" for index, kind in enumerate(inputs))
    lines += [
        f"take{len(inputs)}:",
        "  %event = call ptr @begin_event(ptr @event_name)",
        f"  %status = call i32 @{region}(ptr %arena{given}, ptr %results)",
        "  call void @end_event(ptr %event)",
        f"  switch i32 %status, label %done [i32 {FALLBACK}, label %left",
        f"                                   i32 {RAISED}, label %interrupted]",
        "done:",
        "  %written = call i1 @write_back(ptr %arena)",
        "  br i1 %written, label %answer, label %raised",
        "answer:",
        *_answer(outputs),
        "left:",
        "  call void @free_arena(ptr %arena)",
        "  %other = call ptr @fall_back(ptr %self, ptr %arguments, i64 %count)",
        "  ret ptr %other",
        "interrupted:",  # lists keep what was written before, as in Python
        "  %error = alloca [3 x ptr]",
        "  %error1 = getelementptr ptr, ptr %error, i64 1",
        "  %error2 = getelementptr ptr, ptr %error, i64 2",
        "  call void @PyErr_Fetch(ptr %error, ptr %error1, ptr %error2)",
        "  %kept = call i1 @write_back(ptr %arena)",
        "  %class = load ptr, ptr %error",
        "  %value = load ptr, ptr %error1",
        "  %traceback = load ptr, ptr %error2",
        "  call void @PyErr_Restore(ptr %class, ptr %value, ptr %traceback)",
        "  br label %raised",
        "raised:",
        "  call void @free_arena(ptr %arena)",
        "  ret ptr null",
    ]
    text = PREFIX + EVENT
    name = f'@event_name = private constant [{len(text) + 1} x i8] c"{text}\\00"'
    return "\n".join([name, f"define ptr @{ENTRY}(ptr %self, ptr %arguments, i64 %count) {{", *lines, "}", ""])


def _take(index: int, kind: NativeType) -> list[str]:
    """Return the lines that unbox argument ``index`` into ``%a{index}``."""
    lines = [
        f"take{index}:",
        f"  %p{index} = getelementptr ptr, ptr %arguments, i64 {index}",
        f"  %o{index} = load ptr, ptr %p{index}",
    ]
    if kind.is_list:
        lines += [
            f"  %a{index} = call ptr @list_of(ptr %arena, ptr %o{index}, i64 {int(kind.element)})",
            f"  %g{index} = icmp ne ptr %a{index}, null",
            f"  br i1 %g{index}, label %take{index + 1}, label %left",
        ]
        return lines
    if kind is NativeType.STRING:
        lines += [
            f"  %a{index} = call ptr @string_of(ptr %arena, ptr %o{index})",
            f"  %g{index} = icmp ne ptr %a{index}, null",
            f"  br i1 %g{index}, label %take{index + 1}, label %left",
        ]
        return lines
    chosen = str(int(kind))
    if kind is NativeType.NUMBER:
        chosen = f"%k{index}"
        lines.append(f"  {chosen} = call i64 @number_kind(ptr %o{index})")
    lines += [
        f"  %w{index} = alloca i64",
        f"  %g{index} = call i1 @decode(ptr %arena, ptr %o{index}, i64 {chosen}, ptr %w{index})",
        f"  br i1 %g{index}, label %good{index}, label %left",
        f"good{index}:",
    ]
    if kind is NativeType.NUMBER:
        number = Number(*argument_names(index, kind))
        lines += [
            f"  {number.is_float} = trunc i64 {chosen} to i1",
            f"  {number.int} = load i64, ptr %w{index}",
            f"  %x{index}.given = load double, ptr %w{index}",
            f"  %x{index}.made = sitofp i64 {number.int} to double",
            f"  {number.float} = select i1 {number.is_float}, double %x{index}.given, double %x{index}.made",
        ]
    elif kind is NativeType.BOOL:
        lines += [f"  %b{index} = load i64, ptr %w{index}", f"  %a{index} = trunc i64 %b{index} to i1"]
    else:
        lines.append(f"  %a{index} = load {kind.llvm}, ptr %w{index}")
    return [*lines, f"  br label %take{index + 1}"]


def _answer(outputs: Sequence[NativeType]) -> list[str]:
    """Return the lines that box the results: the output, a tuple of several, or None if there are none."""
    lines = []
    place = 0
    for index, kind in enumerate(outputs):
        lines += [
            f"  %rp{index} = getelementptr i64, ptr %results, i64 {place}",
            f"  %rw{index} = load i64, ptr %rp{index}",
        ]
        place += kind.words
        if kind.is_list or kind is NativeType.STRING:
            maker = "list_object" if kind.is_list else "string_object"
            lines += [
                f"  %rl{index} = inttoptr i64 %rw{index} to ptr",
                f"  %r{index} = call ptr @{maker}(ptr %rl{index})",
            ]
        elif kind is NativeType.NUMBER:
            lines += [
                f"  %rq{index} = getelementptr i64, ptr %results, i64 {place - 1}",
                f"  %rk{index} = load i64, ptr %rq{index}",
                f"  %r{index} = call ptr @encode(i64 %rw{index}, i64 %rk{index})",
            ]
        else:
            lines.append(f"  %r{index} = call ptr @encode(i64 %rw{index}, i64 {int(kind)})")
    lines.append("  call void @free_arena(ptr %arena)")
    if not outputs:
        return [*lines, "  call void @Py_IncRef(ptr @_Py_NoneStruct)", "  ret ptr @_Py_NoneStruct"]
    if len(outputs) == 1:
        return [*lines, "  ret ptr %r0"]
    lines.append(f"  %tuple = call ptr @PyTuple_New(i64 {len(outputs)})")
    for index in range(len(outputs)):
        lines.append(f"  %t{index} = call i32 @PyTuple_SetItem(ptr %tuple, i64 {index}, ptr %r{index})")
    return [*lines, "  ret ptr %tuple"]
