"""Math functions composed of additions and multiplications, for machines without a vector math library.

All compute with doubles, accurately to a few units in the last place. For floats, the result is rounded at the end,
which is accurate to little more than half a unit. NaN, infinities, signed zeros and denormals are handled as IEEE 754
requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from rekindle.codegen.llvm.vector_ir_builder import VectorWriter

Formula = Callable[[VectorWriter, str], str]
"""Writes a function of one vector of doubles; takes and returns names of values."""

_LN2_HIGH: Final = float.fromhex("0x1.62e42fee00000p-1")
"""ln 2, cut so that its product with an exponent is exact …"""
_LN2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")
"""… and the rest."""
_ROUNDING: Final = 1.5 * 2.0**52
"""Added to a number below 2^51, this pushes its fraction out, and leaves it as an integer in the lowest bits."""
_TO_BIAS: Final = 1023
_MANTISSA: Final = 52


def _whole(w: VectorWriter, x: str) -> tuple[str, str]:
    """Emit the integer nearest to ``x``: as a float, and in the low bits of the second value. For NaN, these bits are
    arbitrary."""
    shifted = w.add(x, w.splat(_ROUNDING))
    return w.sub(shifted, w.splat(_ROUNDING)), w.bits(shifted)


def _power_of_two(w: VectorWriter, n: str) -> str:
    """Emit 2 to the power of the low bits of ``n``, which is between -1022 and 1023."""
    return w.from_bits(w.integer("shl", w.integer("add", n, w.splat_integer(_TO_BIAS)), w.splat_integer(_MANTISSA)))


def _clamped(w: VectorWriter, x: str, low: float, high: float) -> str:
    """Emit ``x`` clamped to two bounds. NaN stays."""
    below = w.select(w.compare("ogt", x, w.splat(high)), w.splat(high), x)
    return w.select(w.compare("olt", below, w.splat(low)), w.splat(low), below)


def _reduced(w: VectorWriter, x: str) -> tuple[str, str]:
    """Emit the argument reduction of ``exp``: return ``r`` and ``n`` (in the low bits), where ``x`` is ``r + n ln 2``
    and ``r`` at most ``ln 2 / 2``."""
    whole, bits = _whole(w, w.mul(x, w.splat(1 / math.log(2))))
    r = w.sub(x, w.mul(whole, w.splat(_LN2_HIGH)))
    return w.sub(r, w.mul(whole, w.splat(_LN2_LOW))), w.integer("sub", bits, _integer_of_rounding(w))


def _integer_of_rounding(w: VectorWriter) -> str:
    return w.splat_integer(0x4338000000000000)  # the bits of _ROUNDING


def _expm1_of_reduced(w: VectorWriter, r: str) -> str:
    """Emit ``exp(r) - 1`` by Taylor's series, whose 14th term is below 2^-57 of the first."""
    series = w.polynomial(r, [1 / math.factorial(k) for k in range(2, 14)])
    return w.fma(w.mul(r, r), series, r)


def exp(w: VectorWriter, x: str) -> str:
    """Emit ``exp(x)`` as ``exp(r) 2^n``. The power is in two factors, since one factor cannot hold it at the ends of
    the range."""
    r, n = _reduced(w, _clamped(w, x, -746.0, 710.0))
    half = w.integer("ashr", n, w.splat_integer(1))
    rest = w.integer("sub", n, half)
    value = w.add(_expm1_of_reduced(w, r), w.splat(1.0))
    return w.mul(w.mul(value, _power_of_two(w, half)), _power_of_two(w, rest))


def expm1(w: VectorWriter, x: str) -> str:
    """Emit ``expm1(x)`` as ``2^n (exp(r) - 1) + (2^n - 1)``; beyond 40, as ``exp(x)``."""
    r, n = _reduced(w, _clamped(w, x, -40.0, 40.0))
    power = _power_of_two(w, n)
    value = w.fma(_expm1_of_reduced(w, r), power, w.sub(power, w.splat(1.0)))
    signed = w.select(w.compare("oeq", x, w.splat(0.0)), x, value)
    return w.select(w.compare("ogt", x, w.splat(40.0)), exp(w, x), signed)


def sigmoid(w: VectorWriter, x: str) -> str:
    """Emit ``1 / (1 + exp(-x))``."""
    return w.div(w.splat(1.0), w.add(exp(w, w.sub(w.splat(-0.0), x)), w.splat(1.0)))


def tanh(w: VectorWriter, x: str) -> str:
    """Emit ``tanh(x)`` as ``e / (e + 2)`` for ``e = expm1(2 |x|)``, with the sign of ``x``. Above 22, ``|tanh(x)|`` is
    1."""
    size = _clamped(w, w.call("llvm.fabs", x), 0.0, 22.0)
    e = expm1(w, w.add(size, size))
    return w.call("llvm.copysign", w.div(e, w.add(e, w.splat(2.0))), x)


def log(w: VectorWriter, x: str) -> str:
    """Emit ``log(x)`` as ``log(1 + f) + e ln 2``, where ``x`` is ``(1 + f) 2^e`` and ``1 + f`` is within ``sqrt(2)`` of
    1.

    With ``s = f / (2 + f)``, ``log(1 + f)`` is ``2 s + 2/3 s³ + 2/5 s⁵ + …``, which is
    ``f - f²/2 + s (f²/2 + 2/3 s² + 2/5 s⁴ + …)``: there, what is rounded is small beside ``f``.
    """
    tiny = w.compare("olt", x, w.splat(2.0**-1022))
    normal = w.select(tiny, w.mul(x, w.splat(2.0**54)), x)
    shift = w.select(tiny, w.splat(-54.0), w.splat(0.0))
    # the exponent, had the mantissa been between sqrt(1/2) and sqrt(2)
    bits = w.bits(normal)
    offset = w.integer("sub", bits, w.splat_integer(0x3FE6A09E667F3BCD))
    exponent = w.integer("ashr", offset, w.splat_integer(_MANTISSA))
    mantissa = w.from_bits(w.integer("sub", bits, w.integer("shl", exponent, w.splat_integer(_MANTISSA))))
    e = w.add(w.emit(f"sitofp {w.integers} {exponent} to {w.type}"), shift)
    f = w.sub(mantissa, w.splat(1.0))
    s = w.div(f, w.add(f, w.splat(2.0)))
    z = w.mul(s, s)
    series = w.mul(z, w.polynomial(z, [2 / (2 * k + 1) for k in range(1, 12)]))
    half = w.mul(w.mul(f, f), w.splat(0.5))
    low = w.fma(e, w.splat(_LN2_LOW), w.mul(s, w.add(half, series)))
    value = w.add(w.mul(e, w.splat(_LN2_HIGH)), w.sub(f, w.sub(half, low)))
    value = w.select(w.compare("oeq", x, w.splat(math.inf)), x, value)
    value = w.select(w.compare("oeq", x, w.splat(0.0)), w.splat(-math.inf), value)
    return w.select(w.compare("uge", x, w.splat(0.0)), _or_nan(w, x, value), w.splat(math.nan))


def _or_nan(w: VectorWriter, x: str, value: str) -> str:
    """Emit ``value``, with NaN in the lanes where ``x`` is NaN."""
    return w.select(w.compare("uno", x, x), x, value)


def log1p(w: VectorWriter, x: str) -> str:
    """Emit ``log1p(x)`` as ``log(u)`` for ``u = 1 + x``, plus the rounding error of ``u``, ``(x - (u - 1)) / u``."""
    u = w.add(x, w.splat(1.0))
    lost = w.div(w.sub(x, w.sub(u, w.splat(1.0))), u)
    value = w.add(log(w, u), lost)
    value = w.select(w.compare("oeq", u, w.splat(math.inf)), u, value)
    value = w.select(w.compare("oeq", u, w.splat(0.0)), w.splat(-math.inf), value)
    return w.select(w.compare("oeq", u, w.splat(1.0)), x, value)


_ERFCX: Final = [
    0.25539567631050575,
    -0.4271858474139584,
    0.2416581942424654,
    -0.07897858101573274,
    0.0037328924044408925,
    0.006997461739343965,
    -0.0008471432556721676,
    -0.0009819770339677388,
    4.3555706438920964e-05,
    0.0001743613313272385,
    2.7524126428444183e-05,
    -2.758173672012487e-05,
    -1.3957189330751223e-05,
    1.4031811425087275e-06,
    3.7368545745104275e-06,
    1.1538086150711695e-06,
    -4.026149902340813e-07,
    -4.1816268442828895e-07,
    -1.0161959923228168e-07,
]
"""``exp(x²) erfc(x)`` for ``x`` from 0.5 to 6 as a polynomial in ``(x - 2) / (x + 2)``: Chebyshev interpolation,
computed with 60 digits, which is off by at most 3e-18."""


def erf(w: VectorWriter, x: str) -> str:
    """Emit ``erf(x)``: Taylor's series up to 0.5; then ``1 - exp(-x²) P((x - 2) / (x + 2))``."""
    size = _clamped(w, w.call("llvm.fabs", x), 0.0, 6.0)
    square = w.mul(size, size)
    taylor = [2 / math.sqrt(math.pi) * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(13)]
    near = w.mul(x, w.polynomial(square, taylor))
    t = w.div(w.sub(size, w.splat(2.0)), w.add(size, w.splat(2.0)))
    tail = w.mul(exp(w, w.sub(w.splat(-0.0), square)), w.polynomial(t, _ERFCX))
    far = w.call("llvm.copysign", w.sub(w.splat(1.0), tail), x)
    return w.select(w.compare("olt", size, w.splat(0.5)), near, far)


FORMULAS: Final[Mapping[str, Formula]] = {
    "erf": erf,
    "exp": exp,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "sigmoid": sigmoid,
    "tanh": tanh,
}
"""The functions by name."""
