"""Jumps and the end of a plan."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.plan_runtime.frame import FrameField, Status
from rekindle.codegen.plan_runtime.macros import handler

_STATUS: Final = int(FrameField.STATUS)
_INDEX: Final = int(FrameField.INDEX)
_RESULT: Final = int(FrameField.RESULT)
_JUMPS: Final = 64
"""Number of backward jumps after which signals are checked: a power of two."""

CONTROL: Final = f"""
; Python's error is set: the plan ends at this instruction.
define internal ptr @fail(ptr %frame, ptr %insn) {{
  %ended = call ptr @leave(ptr %frame, ptr %insn, i64 {int(Status.FAILED)})
  ret ptr null
}}

define internal ptr @leave(ptr %frame, ptr %insn, i64 %status) {{
  %index_at = getelementptr i64, ptr %insn, i64 2
  %index = load i64, ptr %index_at
  %index_to = getelementptr i64, ptr %frame, i64 {_INDEX}
  store i64 %index, ptr %index_to
  %status_to = getelementptr i64, ptr %frame, i64 {_STATUS}
  store i64 %status, ptr %status_to
  ret ptr null
}}

; Leave before the instruction, or, where it has run, after it, with the items of RESULT as its results.
define internal ptr @leave_with_items(ptr %frame, ptr %insn, i64 %has_run) {{
  %pending_at = getelementptr i64, ptr %frame, i64 {int(FrameField.PENDING)}
  %pending = sub i64 0, %has_run
  store i64 %pending, ptr %pending_at
  %status = add i64 %has_run, {int(Status.LEFT_BEFORE)}
  %ended = call ptr @leave(ptr %frame, ptr %insn, i64 %status)
  ret ptr null
}}

; Run instructions until one ends the plan.
define internal void @run(ptr %frame, ptr %first) {{
start:
  br label %loop
loop:
  %insn = phi ptr [%first, %start], [%following, %loop]
  %handler = load ptr, ptr %insn
  %following = call ptr %handler(ptr %frame, ptr %insn)
  %ended = icmp eq ptr %following, null
  br i1 %ended, label %end, label %loop
end:
  ret void
}}
"""

HANDLERS: Final = (
    handler("proceed", "next"),
    # Go to operand 1 where the bool in register 0 is true, else to operand 2.
    handler(
        "branch",
        """
  %from = slot 0
  %if_true = pointer 1
  %if_false = pointer 2
  %word = load i64, ptr %from
  %is_false = icmp eq i64 %word, 0
  %target = select i1 %is_false, ptr %if_false, ptr %if_true
  ret ptr %target
""",
    ),
    # Set the counter in register 0 to 0; go to operand 2 if the limit at word 3 is positive, else to operand 1.
    handler(
        "loop_start",
        """
  %counter = slot 0
  %behind = pointer 1
  %body = pointer 2
  %limit_word = call ptr @operand(ptr %frame, ptr %insn, i64 3)
  %limit = ptrtoint ptr %limit_word to i64
  store i64 0, ptr %counter
  %some = icmp sgt i64 %limit, 0
  %target = select i1 %some, ptr %body, ptr %behind
  ret ptr %target
""",
    ),
    # Add 1 to the counter in register 0; go to operand 2 if the limit at word 3 is more, else to operand 1.
    handler(
        "loop_next",
        """
  %counter = slot 0
  %behind = pointer 1
  %body = pointer 2
  %limit_word = call ptr @operand(ptr %frame, ptr %insn, i64 3)
  %limit = ptrtoint ptr %limit_word to i64
  %before = load i64, ptr %counter
  %now = add i64 %before, 1
  store i64 %now, ptr %counter
  %some = icmp slt i64 %now, %limit
  %target = select i1 %some, ptr %body, ptr %behind
  ret ptr %target
""",
    ),
    # Precedes each jump back: once in a while signals, and other threads, get their turn.
    handler(
        "safepoint",
        f"""
  %jumps_at = getelementptr i64, ptr %frame, i64 {int(FrameField.JUMPS)}
  %before = load i64, ptr %jumps_at
  %jumps = add i64 %before, 1
  store i64 %jumps, ptr %jumps_at
  %rest = and i64 %jumps, {_JUMPS - 1}
  %due = icmp eq i64 %rest, 0
  br i1 %due, label %look, label %fine
look:
  lock
  %thread = call ptr @PyEval_SaveThread()
  call void @PyEval_RestoreThread(ptr %thread)
  %signals = call i32 @PyErr_CheckSignals()
  %interrupted = icmp ne i32 %signals, 0
  br i1 %interrupted, label %error, label %fine
fine:
  next
error:
  fail
""",
    ),
    # Return the value of operand 0, a kind, and 1, an offset or an object.
    handler(
        "return",
        f"""
  lock
  %kind = field 0
  %value = field 1
  %object = call ptr @boxed_operand(ptr %frame, i64 %kind, i64 %value)
  %none = icmp eq ptr %object, null
  br i1 %none, label %error, label %good
good:
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  store ptr %object, ptr %result_at
  br label %end
end:
  %ended = call ptr @leave(ptr %frame, ptr %insn, i64 {int(Status.RETURNED)})
  ret ptr null
error:
  fail
""",
    ),
    # Return the object in RESULT.
    handler(
        "return_result",
        f"""
  %ended = call ptr @leave(ptr %frame, ptr %insn, i64 {int(Status.RETURNED)})
  ret ptr null
""",
    ),
)
