"""Inlined math functions of float32: a call would spill the vector registers. They require fused multiply-add, and
their error is less than two units in the last place."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.vector_types import literal, splat, vector
from rekindle.codegen.loop_ir.scalar_types import F32

# The polynomials nearest to these functions by relative error, the constant term first.
_EXP: Final = (0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.008368716575205326, 0.001381459878757596)
"""Coefficients of a polynomial for ``(exp(r) - 1 - r) / r²``, between ``-ln 2 / 2`` and ``ln 2 / 2``."""
_TANH: Final = (
    *(-0.3333333134651184, 0.13333214819431305, -0.053947947919368744),
    *(0.02170751430094242, -0.008194983936846256, 0.002159721218049526),
)
"""Coefficients of a polynomial for ``(tanh(x) / x - 1) / x²`` in ``x²``, up to 0.62."""
_ERF: Final = (
    *(0.12837916612625122, -0.37612631916999817, 0.11283686757087708, -0.02685893513262272),
    *(0.005199895706027746, -0.0008129910565912724, 8.316413732245564e-05),
)
"""Coefficients of a polynomial for ``erf(x) / x - 1`` in ``x²``, up to 0.93."""
_LOG_ERFC: Final = (
    *(-0.00019567387062124908, -1.1276756525039673, -0.6371822357177734, -0.10393160581588745),
    *(0.022226925939321518, -0.0030432187486439943, 0.00019593736215028912),
)
"""Coefficients of a polynomial for ``log(1 - erf(x))``, between 0.92 and 4."""

_ROUNDING: Final = 1.5 * 2.0**23
"""Added to a number below 2^22, this pushes its fraction out, and leaves it as an integer in the lowest bits."""
_ROUNDING_BITS: Final = struct.unpack("<i", struct.pack("<f", _ROUNDING))[0]
_LN2_HIGH: Final = struct.unpack("<f", struct.pack("<f", math.log(2.0)))[0]
_LN2_LOW: Final = math.log(2.0) - _LN2_HIGH


@dataclass(slots=True)
class _Writer:
    """Writes arithmetic on vectors of ``lanes`` float32, or on one if ``lanes`` is 1."""

    f: FunctionBuilder
    lanes: int
    has_avx512: bool = False
    """Whether vectors of 16 can be multiplied by powers of two in one instruction."""

    @property
    def type(self) -> str:
        return vector("float", self.lanes)

    @property
    def whole(self) -> str:
        return vector("i32", self.lanes)

    def number(self, value: float) -> str:
        return splat("float", literal(value, F32), self.lanes)

    def integer(self, value: int) -> str:
        return splat("i32", str(value), self.lanes)

    def do(self, instruction: str, a: str, b: str) -> str:
        return self.f.emit_value(f"{instruction} {self.type} {a}, {b}")

    def of_integers(self, instruction: str, a: str, b: str) -> str:
        return self.f.emit_value(f"{instruction} {self.whole} {a}, {b}")

    def call(self, name: str, *arguments: str) -> str:
        symbol = f"{name}.f32" if self.lanes == 1 else f"{name}.v{self.lanes}f32"
        return self.f.call(self.type, symbol, *((self.type, each) for each in arguments))

    def fma(self, a: str, b: str, c: str) -> str:
        return self.call("llvm.fma", a, b, c)

    def choose(self, order: str, a: str, b: str, then: str, other: str) -> str:
        """Emit ``then`` in the lanes in which ``a`` and ``b`` are in this order, ``other`` elsewhere."""
        truth = self.f.emit_value(f"fcmp {order} {self.type} {a}, {b}")
        return self.f.emit_value(f"select {vector('i1', self.lanes)} {truth}, {self.type} {then}, {self.type} {other}")

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        value = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(value, x, self.number(coefficient))
        return value

    def power_of_two(self, n: str) -> str:
        bits = self.of_integers("shl", self.of_integers("add", n, self.integer(127)), self.integer(23))
        return self.f.emit_value(f"bitcast {self.whole} {bits} to {self.type}")

    @property
    def can_scale(self) -> bool:
        """Whether :meth:`scaled` may be used."""
        return self.has_avx512 and self.lanes == 16

    def scaled(self, value: str, n: str) -> str:
        """Emit ``value`` times two to the power of ``n``, which is an integer in a float. The product is rounded
        once."""
        symbol = "llvm.x86.avx512.mask.scalef.ps.512"
        operands = ((self.type, each) for each in (value, n, "zeroinitializer"))
        return self.f.call(self.type, symbol, *operands, ("i16", "-1"), ("i32", "4"))

    def reduced_exp(self, x: str) -> tuple[str, str, str]:
        """Reduce the argument of ``exp``. Return ``exp(r)``, ``n``, and ``n`` as a float, where ``x`` is ``r + n ln 2``
        and ``r`` at most ``ln 2 / 2``."""
        shifted = self.fma(x, self.number(1 / math.log(2.0)), self.number(_ROUNDING))
        bits = self.f.emit_value(f"bitcast {self.type} {shifted} to {self.whole}")
        n = self.of_integers("sub", bits, self.integer(_ROUNDING_BITS))
        count = self.do("fsub", shifted, self.number(_ROUNDING))
        r = self.fma(count, self.number(-_LN2_LOW), self.fma(count, self.number(-_LN2_HIGH), x))
        rest = self.fma(self.polynomial(r, _EXP), self.do("fmul", r, r), r)
        return self.do("fadd", rest, self.number(1.0)), n, count

    def small_exp(self, x: str) -> str:
        """Emit ``exp(x)`` for ``x`` between -80 and 80."""
        value, n, count = self.reduced_exp(x)
        return self.scaled(value, count) if self.can_scale else self.do("fmul", value, self.power_of_two(n))


def exp(f: FunctionBuilder, x: str, lanes: int, has_avx512: bool = False) -> str:
    """Emit ``exp(x)`` as ``exp(r) 2^n``. The power is in two factors, since one factor cannot hold it at the ends of
    the range. Both variants are accurate to the last bit, and agree."""
    w = _Writer(f, lanes, has_avx512)
    x = w.choose("ogt", x, w.number(89.0), w.number(89.0), x)
    x = w.choose("olt", x, w.number(-104.0), w.number(-104.0), x)
    value, n, count = w.reduced_exp(x)
    if w.can_scale:
        return w.scaled(value, count)
    half = w.of_integers("ashr", n, w.integer(1))
    rest = w.of_integers("sub", n, half)
    return w.do("fmul", w.do("fmul", value, w.power_of_two(half)), w.power_of_two(rest))


def tanh(f: FunctionBuilder, x: str, lanes: int, has_avx512: bool = False) -> str:
    """Emit ``tanh(x)`` as ``1 - 2 / (exp(2 |x|) + 1)`` with the sign of ``x``; near zero, as ``x`` plus a
    polynomial."""
    w = _Writer(f, lanes, has_avx512)
    size = w.call("llvm.fabs", x)
    size = w.choose("ogt", size, w.number(10.0), w.number(10.0), size)
    power = w.do("fadd", w.small_exp(w.do("fadd", size, size)), w.number(1.0))
    large = w.do("fsub", w.number(1.0), w.do("fdiv", w.number(2.0), power))
    square = w.do("fmul", size, size)
    small = w.fma(w.do("fmul", w.polynomial(square, _TANH), square), size, size)
    return w.call("llvm.copysign", w.choose("ogt", size, w.number(0.62), large, small), x)


def erf(f: FunctionBuilder, x: str, lanes: int, has_avx512: bool = False) -> str:
    """Emit ``erf(x)`` as ``1 - exp(p(|x|))`` with the sign of ``x``; near zero, as ``x`` plus a polynomial."""
    w = _Writer(f, lanes, has_avx512)
    size = w.call("llvm.fabs", x)
    size = w.choose("ogt", size, w.number(4.0), w.number(4.0), size)
    rest = w.small_exp(w.polynomial(size, _LOG_ERFC))
    large = w.call("llvm.copysign", w.do("fsub", w.number(1.0), rest), x)
    small = w.fma(w.polynomial(w.do("fmul", x, x), _ERF), x, x)
    return w.choose("ogt", size, w.number(0.925), large, small)


INLINE: Final[dict[str, Callable[..., str]]] = {"exp": exp, "tanh": tanh, "erf": erf}
"""The functions by name."""
