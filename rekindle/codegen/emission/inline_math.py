"""Functions that are short enough to stand where they are called: a call costs the vectors that are in registers."""

from __future__ import annotations

import math
import struct
from typing import Final

from rekindle.codegen.emission.names import Function
from rekindle.codegen.emission.registers import literal, splat, vector
from rekindle.codegen.loops.scalars import F32

_SERIES: Final = (
    0.4999999403953552,
    0.1666652113199234,
    0.04166838899254799,
    0.008368716575205326,
    0.001381459878757596,
)
"""The polynomial nearest to ``(exp(r) - 1 - r) / r²`` between ``-ln 2 / 2`` and ``ln 2 / 2``, by relative error."""
_ROUNDING: Final = 1.5 * 2.0**23
"""Added to a number below 2^22, this pushes its fraction out, and leaves it as an integer in the lowest bits."""
_LN2_HIGH: Final = struct.unpack("<f", struct.pack("<f", math.log(2.0)))[0]
_LN2_LOW: Final = math.log(2.0) - _LN2_HIGH


def exp(f: Function, x: str, lanes: int) -> str:
    """The exponential function of floats, for machines that multiply and add at once: less than one unit in the last
    place off. ``x`` is ``r + n ln 2``, so that ``exp(x)`` is ``exp(r) 2^n``; the power in two factors, since either end
    of the range needs more than one holds."""
    type, whole = vector("float", lanes), vector("i32", lanes)

    def number(value: float) -> str:
        return splat("float", literal(value, F32), lanes)

    def integer(value: int) -> str:
        return splat("i32", str(value), lanes)

    def fma(a: str, b: str, c: str) -> str:
        symbol = "llvm.fma.f32" if lanes == 1 else f"llvm.fma.v{lanes}f32"
        return f.call(type, symbol, (type, a), (type, b), (type, c))

    def power_of_two(n: str) -> str:
        bits = f.let(f"shl {whole} {f.let(f'add {whole} {n}, {integer(127)}')}, {integer(23)}")
        return f.let(f"bitcast {whole} {bits} to {type}")

    truth = vector("i1", lanes)
    x = f.let(f"select {truth} {f.let(f'fcmp ogt {type} {x}, {number(89.0)}')}, {type} {number(89.0)}, {type} {x}")
    x = f.let(f"select {truth} {f.let(f'fcmp olt {type} {x}, {number(-104.0)}')}, {type} {number(-104.0)}, {type} {x}")
    shifted = fma(x, number(1 / math.log(2.0)), number(_ROUNDING))
    bits = f.let(f"bitcast {type} {shifted} to {whole}")
    n = f.let(f"sub {whole} {bits}, {integer(struct.unpack('<i', struct.pack('<f', _ROUNDING))[0])}")
    count = f.let(f"fsub {type} {shifted}, {number(_ROUNDING)}")
    r = fma(count, number(-_LN2_LOW), fma(count, number(-_LN2_HIGH), x))
    series = number(_SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        series = fma(series, r, number(coefficient))
    power = f.let(f"fadd {type} {fma(series, f.let(f'fmul {type} {r}, {r}'), r)}, {number(1.0)}")
    half = f.let(f"ashr {whole} {n}, {integer(1)}")
    rest = f.let(f"sub {whole} {n}, {half}")
    return f.let(f"fmul {type} {f.let(f'fmul {type} {power}, {power_of_two(half)}')}, {power_of_two(rest)}")
