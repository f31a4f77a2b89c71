"""Opening of libraries: check the processor, and select the level of its instruction set.

This is LLVM IR that is compiled for any x86-64 processor. A library for several levels has the functions of each, with
suffixes. The level of an instance is selected when it is opened: the highest that the processor has, or the one that
the environment variable ``REKINDLE_CPU`` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rekindle.building.cpu_check import check_module
from rekindle.building.lowlevel.compiler import c_string, field_index
from rekindle.building.runtime.instances import Instance
from rekindle.building.runtime.objects import ErrorCode
from rekindle.codegen.llvm.target import VARIABLE, Target


def opening_module(
    name: str, methods: Sequence[str], targets: Mapping[str, Target], cpu: str, *, has_objects: bool
) -> str:
    """Return the module of the functions that open a library and report errors; for several levels, also of those that
    dispatch to the functions of a level. ``targets`` are by suffix, the lowest level first. ``has_objects``: whether
    the library has objects to unpack."""
    lowest = next(iter(targets))
    cpus = ", ".join(each.cpu for each in targets.values())
    if len(targets) == 1:
        which = f"the library was built for (cpu: {cpus if cpu == cpus else f'{cpu}, {cpus}'})"
    else:
        which = f"every level of the library needs ({cpus})"
    lacks = "this processor lacks '{}', which " + which
    parts = [
        check_module(targets, lacks),
        _OPEN.format(name=name, code=int(ErrorCode.UNSUPPORTED_CPU)),
        _select_one(lowest) if len(targets) == 1 else _select_of_several(targets),
    ]
    if len(targets) > 1:
        level = field_index(Instance, "level")
        parts.append(_SHARED.format(name=name, lowest=lowest))
        if has_objects:
            parts.append(_UNPACK.format(name=name, lowest=lowest))
        parts += [_method(name, method, targets, level) for method in methods]
    parts.append(_open_of(targets, field_index(Instance, "level")))
    return "\n".join(parts)


_OPEN: Final = """
@null.message = private constant [31 x i8] c"the instance is a null pointer\\00"

define i32 @{name}_open(ptr %weights, ptr %out) {{
start:
  %nowhere = icmp eq ptr %out, null
  br i1 %nowhere, label %wrong, label %check
wrong:
  ret i32 10
check:
  store ptr null, ptr %out
  %level = call i32 @selected_level()
  %none = icmp slt i32 %level, 0
  br i1 %none, label %refuse, label %open
refuse:
  ret i32 {code}
open:
  %result = call i32 @open_level(i32 %level, ptr %weights, ptr %out)
  ret i32 %result
}}

define ptr @{name}_error(ptr %instance) {{
  %none = icmp eq ptr %instance, null
  br i1 %none, label %null, label %message
null:
  %missing = call ptr @refusal()
  %runs = icmp eq ptr %missing, null
  %text = select i1 %runs, ptr @null.message, ptr %missing
  ret ptr %text
message:
  %at = getelementptr i64, ptr %instance, i64 1
  %own = load ptr, ptr %at
  ret ptr %own
}}
"""

_SHARED: Final = """
declare void @"{name}_close{lowest}"(ptr)
declare void @"{name}_free{lowest}"(ptr)

define void @{name}_close(ptr %instance) {{
  tail call void @"{name}_close{lowest}"(ptr %instance)
  ret void
}}

define void @{name}_free(ptr %value) {{
  tail call void @"{name}_free{lowest}"(ptr %value)
  ret void
}}
"""
"""Functions that do the same at each level."""

_UNPACK: Final = """
declare i32 @"{name}_unpack{lowest}"(ptr, ptr, ptr)

define i32 @{name}_unpack(ptr %instance, ptr %object, ptr %result) {{
  %code = tail call i32 @"{name}_unpack{lowest}"(ptr %instance, ptr %object, ptr %result)
  ret i32 %code
}}
"""


def _select_one(suffix: str) -> str:
    """Return the LLVM IR of the functions that select the only level, number 0, and return the reason why the
    processor does not support it."""
    return f"""
define internal ptr @refusal() {{
  %missing = call ptr @"missing_feature{suffix}"()
  ret ptr %missing
}}

define internal i32 @selected_level() {{
  %missing = call ptr @refusal()
  %runs = icmp eq ptr %missing, null
  %level = select i1 %runs, i32 0, i32 -1
  ret i32 %level
}}
"""


def _select_of_several(targets: Mapping[str, Target]) -> str:
    """Return the LLVM IR of the functions that select the number of a level, and return the reason why none can be
    selected."""
    known = ", ".join(each.cpu for each in targets.values())
    refused = f"{VARIABLE} names none of the levels of the library that this processor has ({known})"
    constants = [
        f"@variable = private constant {c_string(VARIABLE.encode())}",
        f"@native = private constant {c_string(b'native')}",
        f"@refused = private constant {c_string(refused.encode())}",
    ]
    blocks = [
        "define internal i32 @selected_level() {",
        "  %named = call ptr @getenv(ptr @variable)",
        "  %unset = icmp eq ptr %named, null",
        "  br i1 %unset, label %any, label %set",
        "set:",
        "  %first = load i8, ptr %named",
        "  %empty = icmp eq i8 %first, 0",
        "  %order = call i32 @strcmp(ptr %named, ptr @native)",
        "  %native = icmp eq i32 %order, 0",
        "  %free = or i1 %empty, %native",
        "  br label %any",
        "any:",
        "  %is.free = phi i1 [ true, %0 ], [ %free, %set ]",
        f"  br label %level{len(targets) - 1}",
    ]
    for number, (suffix, target) in reversed(list(enumerate(targets.items()))):
        lower = f"level{number - 1}" if number else "nothing"
        constants.append(f"@name.{number} = private constant {c_string(target.cpu.encode())}")
        blocks += [
            f"level{number}:",
            f"  br i1 %is.free, label %check{number}, label %compare{number}",
            f"compare{number}:",
            f"  %order{number} = call i32 @strcmp(ptr %named, ptr @name.{number})",
            f"  %is{number} = icmp eq i32 %order{number}, 0",
            f"  br i1 %is{number}, label %check{number}, label %{lower}",
            f"check{number}:",
            f'  %missing{number} = call ptr @"missing_feature{suffix}"()',
            f"  %runs{number} = icmp eq ptr %missing{number}, null",
            f"  br i1 %runs{number}, label %found{number}, label %{lower}",
            f"found{number}:",
            f"  ret i32 {number}",
        ]
    lowest = next(iter(targets))
    blocks += [
        "nothing:",
        "  ret i32 -1",
        "}",
        "define internal ptr @refusal() {",
        "  %level = call i32 @selected_level()",
        "  %none = icmp slt i32 %level, 0",
        "  br i1 %none, label %why, label %fine",
        "fine:",
        "  ret ptr null",
        "why:",
        f'  %missing = call ptr @"missing_feature{lowest}"()',
        "  %named = icmp eq ptr %missing, null",
        "  %text = select i1 %named, ptr @refused, ptr %missing",
        "  ret ptr %text",
        "}",
    ]
    declared = ["declare ptr @getenv(ptr)", "declare i32 @strcmp(ptr, ptr)"]
    return "\n".join([*constants, *declared, *blocks])


def _open_of(targets: Mapping[str, Target], field: int) -> str:
    """Return the LLVM IR of the function that opens an instance at a level, and stores the level in ``field`` of the
    instance."""
    lines = [f'declare i32 @"open.library{suffix}"(ptr, ptr)' for suffix in targets]
    lines += [
        "define internal i32 @open_level(i32 %level, ptr %weights, ptr %out) {",
        f"  switch i32 %level, label %level0 [{' '.join(f'i32 {n}, label %level{n}' for n in range(len(targets)))}]",
    ]
    for number, suffix in enumerate(targets):
        lines += [
            f"level{number}:",
            f'  %result{number} = call i32 @"open.library{suffix}"(ptr %weights, ptr %out)',
            "  br label %opened",
        ]
    results = ", ".join(f"[ %result{number}, %level{number} ]" for number in range(len(targets)))
    lines += [
        "opened:",
        f"  %result = phi i32 {results}",
        "  %instance = load ptr, ptr %out",
        "  %none = icmp eq ptr %instance, null",
        "  br i1 %none, label %done, label %note",
        "note:",
        f"  %at = getelementptr i64, ptr %instance, i64 {field}",
        "  %number = zext i32 %level to i64",
        "  store i64 %number, ptr %at",
        "  br label %done",
        "done:",
        "  ret i32 %result",
        "}",
    ]
    return "\n".join(lines)


def _method(name: str, method: str, targets: Mapping[str, Target], field: int) -> str:
    """Return the LLVM IR of a method that calls the function for the level of an instance."""
    lines = [f'declare i32 @"{name}_{method}{suffix}"(ptr, ptr, i64, ptr)' for suffix in targets]
    cases = " ".join(f"i64 {number}, label %level{number}" for number in range(1, len(targets)))
    lines += [
        f"define i32 @{name}_{method}(ptr %instance, ptr %arguments, i64 %count, ptr %result) {{",
        "  %none = icmp eq ptr %instance, null",
        "  br i1 %none, label %level0, label %select",
        "select:",
        f"  %at = getelementptr i64, ptr %instance, i64 {field}",
        "  %level = load i64, ptr %at",
        f"  switch i64 %level, label %level0 [{cases}]",
    ]
    arguments = "(ptr %instance, ptr %arguments, i64 %count, ptr %result)"
    for number, suffix in enumerate(targets):
        lines += [
            f"level{number}:",
            f'  %code{number} = tail call i32 @"{name}_{method}{suffix}"{arguments}',
            f"  ret i32 %code{number}",
        ]
    return "\n".join([*lines, "}"])
