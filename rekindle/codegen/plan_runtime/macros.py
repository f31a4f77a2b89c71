"""The shorthand in which handlers are written.

A handler is a function ``ptr (ptr %frame, ptr %insn)`` in LLVM IR. These macros expand to several lines::

    %x = field N      the operand N of the instruction, an i64
    %x = pointer N    the same as a pointer
    %x = slot N       the address in the frame that operand N is an offset of
    next              continue with the next instruction
    fail              an error of Python is set
    leave             the interpreter takes over before this instruction
    leave after       the interpreter takes over after it
    lock              take the GIL, if it is not held: what follows uses CPython
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_OPERANDS: Final = 3
"""The first operand of an instruction: handler, next and index precede it."""

_LOADS: Final = re.compile(r"(?P<indent>\s*)(?P<name>%[\w.]+) = (?P<what>field|pointer|slot) (?P<number>\d+)$")


def handler(name: str, body: str, *, personality: bool = False) -> str:
    """Return the LLVM IR of handler ``@name``, whose body is the lines ``body``. With ``personality``, C++ exceptions
    can be caught in it."""
    attributes = " personality ptr @__gxx_personality_v0" if personality else ""
    lines = [f"define ptr @{name}(ptr %frame, ptr %insn){attributes} {{", "start:"]
    for line in body.strip("\n").splitlines():
        lines.extend(_expanded(line))
    return "\n".join([*lines, "}", ""])


def _expanded(line: str) -> Iterator[str]:
    found = _LOADS.match(line)
    if found is None:
        yield from _ENDS.get(line.strip(), [line])
        return
    name = found["name"]
    kind = "ptr" if found["what"] == "pointer" else "i64"
    yield f"  {name}.at = getelementptr i64, ptr %insn, i64 {_OPERANDS + int(found['number'])}"
    if found["what"] == "slot":
        yield f"  {name}.offset = load i64, ptr {name}.at"
        yield f"  {name} = getelementptr i8, ptr %frame, i64 {name}.offset"
    else:
        yield f"  {name} = load {kind}, ptr {name}.at"


_ENDS: Final = {
    "lock": ["  call void @lock_gil(ptr %frame)"],
    "next": ["  %next.at = getelementptr ptr, ptr %insn, i64 1", "  %next = load ptr, ptr %next.at", "  ret ptr %next"],
    "fail": ["  %ending = call ptr @fail(ptr %frame, ptr %insn)", "  ret ptr %ending"],
    "leave": ["  %ending = call ptr @leave(ptr %frame, ptr %insn, i64 2)", "  ret ptr %ending"],
    "leave after": ["  %ending = call ptr @leave(ptr %frame, ptr %insn, i64 3)", "  ret ptr %ending"],
}
