"""Peak rate of multiply-adds of one core, measured."""

from __future__ import annotations

import ctypes
import time
from typing import Final

from rekindle.codegen.llvm.engine import compile_module
from rekindle.codegen.llvm.target import host_target

_CHAINS: Final = 16
"""Sums that do not wait for each other: more than the latency of a multiply-add times the units."""
_TIMES: Final = 1_000_000


def gigaflops(rounds: int = 20) -> float:
    """Return 10⁹ floating-point operations a second of float32 multiply-adds in registers: the best round."""
    lanes = host_target().vector_bits // 32
    code = compile_module(_loop(lanes), cache=False)
    run = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64, ctypes.c_float)(code.address("peak"))
    run(_TIMES, 1.0)
    least = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run(_TIMES, 1.0)
        least = min(least, time.perf_counter() - start)
    return 2 * lanes * _CHAINS * _TIMES / least / 1e9


def _loop(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    fma = f"@llvm.fma.v{lanes}f32"
    names = range(_CHAINS)
    phis = [f"%sum{n} = phi {vector} [%start, %entry], [%next{n}, %loop]" for n in names]
    steps = [f"%next{n} = call {vector} {fma}({vector} %sum{n}, {vector} %start, {vector} %start)" for n in names]
    total, adds = "%next0", []
    for n in names[1:]:
        adds.append(f"%total{n} = fadd {vector} {total}, %next{n}")
        total = f"%total{n}"
    lines = [
        f"declare {vector} {fma}({vector}, {vector}, {vector})",
        "define float @peak(i64 %times, float %x) {",
        "entry:",
        f"%one = insertelement {vector} poison, float %x, i64 0",
        f"%start = shufflevector {vector} %one, {vector} poison, <{lanes} x i32> zeroinitializer",
        "br label %loop",
        "loop:",
        "%i = phi i64 [0, %entry], [%i.next, %loop]",
        *phis,
        *steps,
        "%i.next = add i64 %i, 1",
        "%more = icmp ult i64 %i.next, %times",
        "br i1 %more, label %loop, label %done",
        "done:",
        *adds,
        f"%first = extractelement {vector} {total}, i64 0",
        "ret float %first",
        "}",
    ]
    return "\n".join(lines) + "\n"
