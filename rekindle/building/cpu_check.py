"""CPU feature check: when a library is opened, test that the processor has the instructions that it was built for.

The check is an LLVM module of its own, which is compiled for any x86-64 processor. It queries ``cpuid`` and ``xgetbv``
(Intel SDM, volume 2A; AMD APM, volume 3) for the features that LLVM may use in code for the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from rekindle.building.lowlevel.compiler import c_string
from rekindle.codegen.llvm.target import LEVELS, Target

BASELINE: Final = Target("x86-64", ",".join(f"+{each}" for each in LEVELS["x86-64"]))
"""The target that the check itself is compiled for."""

EAX, EBX, ECX, EDX = range(4)


class _Bit(NamedTuple):
    """Where ``cpuid`` reports a feature, and the bits of ``xcr0`` that the system has to set for its registers."""

    leaf: int
    subleaf: int
    register: int
    bit: int
    state: int = 0


_AVX, _AVX512 = 0x6, 0xE6

FEATURES: Final[dict[str, _Bit]] = {
    "cx16": _Bit(1, 0, ECX, 13),
    "sahf": _Bit(0x80000001, 0, ECX, 0),
    "popcnt": _Bit(1, 0, ECX, 23),
    "sse3": _Bit(1, 0, ECX, 0),
    "ssse3": _Bit(1, 0, ECX, 9),
    "sse4.1": _Bit(1, 0, ECX, 19),
    "sse4.2": _Bit(1, 0, ECX, 20),
    "movbe": _Bit(1, 0, ECX, 22),
    "avx": _Bit(1, 0, ECX, 28, _AVX),
    "f16c": _Bit(1, 0, ECX, 29, _AVX),
    "fma": _Bit(1, 0, ECX, 12, _AVX),
    "lzcnt": _Bit(0x80000001, 0, ECX, 5),
    "bmi": _Bit(7, 0, EBX, 3),
    "bmi2": _Bit(7, 0, EBX, 8),
    "avx2": _Bit(7, 0, EBX, 5, _AVX),
    "avx512f": _Bit(7, 0, EBX, 16, _AVX512),
    "avx512dq": _Bit(7, 0, EBX, 17, _AVX512),
    "avx512ifma": _Bit(7, 0, EBX, 21, _AVX512),
    "avx512cd": _Bit(7, 0, EBX, 28, _AVX512),
    "avx512bw": _Bit(7, 0, EBX, 30, _AVX512),
    "avx512vl": _Bit(7, 0, EBX, 31, _AVX512),
    "avx512vbmi": _Bit(7, 0, ECX, 1, _AVX512),
    "avx512vbmi2": _Bit(7, 0, ECX, 6, _AVX512),
    "gfni": _Bit(7, 0, ECX, 8),
    "vpclmulqdq": _Bit(7, 0, ECX, 10, _AVX),
    "avx512vnni": _Bit(7, 0, ECX, 11, _AVX512),
    "avx512bitalg": _Bit(7, 0, ECX, 12, _AVX512),
    "avx512vpopcntdq": _Bit(7, 0, ECX, 14, _AVX512),
    "avx512vp2intersect": _Bit(7, 0, EDX, 8, _AVX512),
    "avx512fp16": _Bit(7, 0, EDX, 23, _AVX512),
    "avxvnni": _Bit(7, 1, EAX, 4, _AVX),
    "avx512bf16": _Bit(7, 1, EAX, 5, _AVX512),
}
"""Features that LLVM may use in code for a target that has them, by LLVM's names."""

_QUERY: Final = """
define internal i1 @has_bit(i32 %leaf, i32 %subleaf, i32 %register, i32 %bit, i32 %state) {
start:
  %group = and i32 %leaf, -2147483648
  %limits = call { i32, i32, i32, i32 } asm "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 %group, i32 0)
  %limit = extractvalue { i32, i32, i32, i32 } %limits, 0
  %known = icmp uge i32 %limit, %leaf
  br i1 %known, label %ask, label %no
ask:
  %words = call { i32, i32, i32, i32 } asm "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 %leaf, i32 %subleaf)
  %a = extractvalue { i32, i32, i32, i32 } %words, 0
  %b = extractvalue { i32, i32, i32, i32 } %words, 1
  %c = extractvalue { i32, i32, i32, i32 } %words, 2
  %d = extractvalue { i32, i32, i32, i32 } %words, 3
  %is.b = icmp eq i32 %register, 1
  %is.c = icmp eq i32 %register, 2
  %is.d = icmp eq i32 %register, 3
  %ab = select i1 %is.b, i32 %b, i32 %a
  %abc = select i1 %is.c, i32 %c, i32 %ab
  %word = select i1 %is.d, i32 %d, i32 %abc
  %shifted = lshr i32 %word, %bit
  %one = and i32 %shifted, 1
  %has = icmp ne i32 %one, 0
  %stateless = icmp eq i32 %state, 0
  %settled = xor i1 %has, true
  %done = or i1 %settled, %stateless
  br i1 %done, label %yes, label %system
yes:
  ret i1 %has
system:
  %basic = call { i32, i32, i32, i32 } asm "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 1, i32 0)
  %basic.c = extractvalue { i32, i32, i32, i32 } %basic, 2
  %osxsave = and i32 %basic.c, 134217728
  %can.ask = icmp ne i32 %osxsave, 0
  br i1 %can.ask, label %saved, label %no
saved:
  %xcr = call { i32, i32 } asm "xgetbv", "={ax},={dx},{cx}"(i32 0)
  %enabled = extractvalue { i32, i32 } %xcr, 0
  %wanted = and i32 %enabled, %state
  %all = icmp eq i32 %wanted, %state
  ret i1 %all
no:
  ret i1 false
}
"""

_CHECK: Final = """
define ptr @missing_feature{suffix}() {{
{blocks}
  ret ptr null
}}
"""


def check_module(targets: Mapping[str, Target], message: str) -> str:
    """Return an LLVM module with a function ``missing_feature`` for each target, with the target's key as suffix.
    The function returns null if the processor has all features of the target; else ``message``, with ``{}`` replaced
    by the name of a missing feature."""
    constants: dict[str, str] = {}
    functions = []
    for suffix, target in targets.items():
        blocks = ["  br label %check0"]
        required = [name for name in FEATURES if target.has(name)]
        for index, name in enumerate(required):
            bit = FEATURES[name]
            constants[name] = f'@"lacks.{name}" = private constant {c_string(message.format(name).encode())}'
            numbers = f"i32 {bit.leaf}, i32 {bit.subleaf}, i32 {bit.register}, i32 {bit.bit}, i32 {bit.state}"
            blocks += [
                f"check{index}:",
                f"  %has{index} = call i1 @has_bit({numbers})",
                f"  br i1 %has{index}, label %check{index + 1}, label %lacks{index}",
                f"lacks{index}:",
                f'  ret ptr @"lacks.{name}"',
            ]
        blocks.append(f"check{len(required)}:")
        functions.append(_CHECK.format(suffix=suffix, blocks="\n".join(blocks)))
    return "\n".join([*constants.values(), *([_QUERY] if constants else []), *functions])
