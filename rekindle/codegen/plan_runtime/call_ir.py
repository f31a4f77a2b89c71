"""Calls: of C++ functions of ATen, and of functions of Python.

A C++ function is called as System V's ABI for x86-64 says: up to six words in registers, the others on the stack, and
floating-point numbers in registers of their own. A callee reads what its signature says and nothing else, so that one
handler calls every function that needs no more than what it passes.

Each word of a call is four words of the instruction, ``a``, ``m``, ``n`` and ``v``: it is ``(frame[a] & m) + (frame
address & n) + v``, so that one formula is an immediate number, the address of a register, the content of a register,
and the address of the Tensor that an object has inside.
"""

from __future__ import annotations

from typing import Final

from rekindle.codegen.plan_runtime.frame import FrameField, Kind
from rekindle.codegen.plan_runtime.macros import handler

REGISTER_WORDS: Final = 6
STACK_WORDS: Final = (0, 4, 10, 24)
"""Numbers of stack words that handlers pass: a call uses the first that suffices."""
DOUBLES: Final = (0, 4)

_RESULT: Final = int(FrameField.RESULT)
_THREAD: Final = int(FrameField.THREAD)
_PATIENCE: Final = 8
"""Number of operators after which the GIL is released; releasing and taking it again takes 60 ns."""
_OFFSET: Final = 1 << 63
"""PY_VECTORCALL_ARGUMENTS_OFFSET: the callee may overwrite the word before the arguments."""

CALLS: Final = f"""
; The word of a call that the four words of the instruction from operand %number on describe.
define internal ptr @operand(ptr %frame, ptr %insn, i64 %number) alwaysinline {{
  %at = add i64 %number, 3
  %a_at = getelementptr i64, ptr %insn, i64 %at
  %m_at = getelementptr i64, ptr %a_at, i64 1
  %n_at = getelementptr i64, ptr %a_at, i64 2
  %v_at = getelementptr i64, ptr %a_at, i64 3
  %a = load i64, ptr %a_at
  %m = load i64, ptr %m_at
  %n = load i64, ptr %n_at
  %v = load i64, ptr %v_at
  %from = getelementptr i8, ptr %frame, i64 %a
  %content = load i64, ptr %from
  %address = ptrtoint ptr %frame to i64
  %first = and i64 %content, %m
  %second = and i64 %address, %n
  %both = add i64 %first, %second
  %word = add i64 %both, %v
  %pointer = inttoptr i64 %word to ptr
  ret ptr %pointer
}}

; A new reference to what an operand of a kind is; for CONSTANT, %value is an object.
define internal ptr @boxed_operand(ptr %frame, i64 %kind, i64 %value) {{
  %constant = icmp eq i64 %kind, {int(Kind.CONSTANT)}
  br i1 %constant, label %immediate, label %register
immediate:
  %object = inttoptr i64 %value to ptr
  call void @Py_IncRef(ptr %object)
  ret ptr %object
register:
  %slot = getelementptr i8, ptr %frame, i64 %value
  %boxed = call ptr @boxed(i64 %kind, ptr %slot)
  ret ptr %boxed
}}

; A C++ exception has come out of a call: make it Python's.
define internal ptr @caught(ptr %frame, ptr %insn, ptr %exception) {{
  %c = call ptr @__cxa_begin_catch(ptr %exception)
  call void @lock_gil(ptr %frame)
  %current = alloca ptr
  call void @_ZSt17current_exceptionv(ptr sret(ptr) %current)
  call void @_ZN5torch29translate_exception_to_pythonERKNSt15__exception_ptr13exception_ptrE(ptr %current)
  call void @_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(ptr %current)
  call void @__cxa_end_catch()
  %failed = call ptr @fail(ptr %frame, ptr %insn)
  ret ptr %failed
}}

define internal void @lock_gil(ptr %frame) {{
  %thread_at = getelementptr ptr, ptr %frame, i64 {_THREAD}
  %thread = load ptr, ptr %thread_at
  %held = icmp eq ptr %thread, null
  br i1 %held, label %end, label %lock
lock:
  store ptr null, ptr %thread_at
  call void @PyEval_RestoreThread(ptr %thread)
  br label %end
end:
  ret void
}}

define internal void @unlock_gil(ptr %frame) {{
  %thread = call ptr @PyEval_SaveThread()
  %thread_at = getelementptr ptr, ptr %frame, i64 {_THREAD}
  store ptr %thread, ptr %thread_at
  %calls_at = getelementptr i64, ptr %frame, i64 {int(FrameField.CALLS)}
  store i64 0, ptr %calls_at
  ret void
}}

define internal void @free_vector(ptr %begin, i64 %capacity) {{
  %none = icmp eq ptr %begin, null
  br i1 %none, label %end, label %free
free:
  call void @_ZdlPvm(ptr %begin, i64 %capacity)
  br label %end
end:
  ret void
}}
"""


def aten_handler_name(stack: int, doubles: int, result: str) -> str:
    """Return the name of the handler that calls an ATen function with ``stack`` 64-bit words on the stack and
    ``doubles`` floating-point arguments; ``result`` is ``i64`` or ``double``."""
    return f"aten_{stack}_{doubles}_{result}"


def _aten(stack: int, doubles: int, result: str) -> str:
    """Return the handler that calls the function in operand 0. A result of one word is in the register RESULT."""
    lines = ["  %function = pointer 0"]
    arguments = []
    for number in range(REGISTER_WORDS + stack):
        lines.append(f"  %w{number} = call ptr @operand(ptr %frame, ptr %insn, i64 {1 + 4 * number})")
        arguments.append(f"ptr %w{number}")
    for number in range(doubles):
        at = 1 + 4 * (REGISTER_WORDS + stack + number)
        lines.append(f"  %f{number}.word = call ptr @operand(ptr %frame, ptr %insn, i64 {at})")
        lines.append(f"  %f{number}.bits = ptrtoint ptr %f{number}.word to i64")
        lines.append(f"  %f{number} = bitcast i64 %f{number}.bits to double")
        arguments.append(f"double %f{number}")
    lines += [
        f"  %value = invoke {result} %function({', '.join(arguments)}) to label %good unwind label %thrown",
        "good:",
        f"  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}",
        f"  store {result} %value, ptr %result_at",
        "next",
        "thrown:",
        "  %pad = landingpad { ptr, i32 } catch ptr null",
        "  %exception = extractvalue { ptr, i32 } %pad, 0",
        "  %caught = call ptr @caught(ptr %frame, ptr %insn, ptr %exception)",
        "  ret ptr %caught",
    ]
    return handler(aten_handler_name(stack, doubles, result), "\n".join(lines), personality=True)


HANDLERS: Final = (
    *(_aten(stack, doubles, "i64") for stack in STACK_WORDS for doubles in DOUBLES),
    _aten(0, 0, "double"),
    # What a call that returned a bool left in RESULT, to register 0.
    handler(
        "take_bool",
        f"""
  %to = slot 0
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  %word = load i64, ptr %result_at
  %bit = and i64 %word, 1
  store i64 %bit, ptr %to
  next
""",
    ),
    handler(
        "take_word",
        f"""
  %to = slot 0
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  %word = load i64, ptr %result_at
  store i64 %word, ptr %to
  next
""",
    ),
    # Let other threads of Python run until CPython is needed, if the Tensor at word 0 has at least operand 4 elements,
    # or so many operators have run since the last time.
    handler(
        "yield_gil",
        f"""
  %thread_at = getelementptr ptr, ptr %frame, i64 {_THREAD}
  %thread = load ptr, ptr %thread_at
  %held = icmp eq ptr %thread, null
  br i1 %held, label %look, label %end
look:
  %tensor = call ptr @operand(ptr %frame, ptr %insn, i64 0)
  %least = field 4
  %count_at = alloca i64
  %e = call i32 @aoti_torch_get_numel(ptr %tensor, ptr %count_at)
  %count = load i64, ptr %count_at
  %large = icmp sge i64 %count, %least
  %calls_at = getelementptr i64, ptr %frame, i64 {int(FrameField.CALLS)}
  %before = load i64, ptr %calls_at
  %calls = add i64 %before, 1
  store i64 %calls, ptr %calls_at
  %many = icmp sge i64 %calls, {_PATIENCE}
  %pays = or i1 %large, %many
  br i1 %pays, label %unlock, label %end
unlock:
  call void @unlock_gil(ptr %frame)
  br label %end
end:
  next
""",
    ),
    # Call the function of Python that is operand 0, with operand 1 arguments: each a kind and an offset or an object.
    # Operand 2 is a tuple of the names of the last of them, or null. The result is in RESULT.
    handler(
        "call_python",
        f"""
  lock
  %function = pointer 0
  %count = field 1
  %names = pointer 2
  %room = add i64 %count, 1
  %stack = alloca ptr, i64 %room
  %objects = getelementptr ptr, ptr %stack, i64 1
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i_next, %fine]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %call
one:
  %twice = mul i64 %i, 2
  %kind_index = add i64 %twice, 6
  %kind_at = getelementptr i64, ptr %insn, i64 %kind_index
  %value_at = getelementptr i64, ptr %kind_at, i64 1
  %kind = load i64, ptr %kind_at
  %value = load i64, ptr %value_at
  %object = call ptr @boxed_operand(ptr %frame, i64 %kind, i64 %value)
  %none = icmp eq ptr %object, null
  br i1 %none, label %release, label %fine
fine:
  %to = getelementptr ptr, ptr %objects, i64 %i
  store ptr %object, ptr %to
  %i_next = add i64 %i, 1
  br label %loop
call:
  %no_names = icmp eq ptr %names, null
  br i1 %no_names, label %call_plain, label %count_names
count_names:
  %named = call i64 @PyTuple_Size(ptr %names)
  br label %call_plain
call_plain:
  %keywords = phi i64 [0, %call], [%named, %count_names]
  %positional = sub i64 %count, %keywords
  %flags = or i64 %positional, {_OFFSET}
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %objects, i64 %flags, ptr %names)
  br label %release
release:
  %answer = phi ptr [null, %one], [%result, %call_plain]
  br label %release_loop
release_loop:
  %r = phi i64 [%i, %release], [%r_next, %released]
  %r_more = icmp sgt i64 %r, 0
  br i1 %r_more, label %released, label %end
released:
  %r_next = sub i64 %r, 1
  %r_at = getelementptr ptr, ptr %objects, i64 %r_next
  %r_object = load ptr, ptr %r_at
  call void @Py_DecRef(ptr %r_object)
  br label %release_loop
end:
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %error, label %good
good:
  %result_at = getelementptr i64, ptr %frame, i64 {_RESULT}
  store ptr %answer, ptr %result_at
  next
error:
  fail
""",
    ),
)
