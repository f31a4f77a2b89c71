"""The functions of Python's :mod:`math` and :mod:`cmath`.

Where one is not defined (``math.sqrt(-1.0)``) it raises ``ValueError`` as Python does; TorchScript returns nan.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable

from rekindle.ops.registration.declare import declare

Number = int | float | complex


def _by_type(real: Callable[[float], float], of_complex: Callable[[complex], complex]) -> Callable[[Number], Number]:
    """Return a function of a Scalar that calls ``real`` or ``of_complex``, by its type at run time."""

    def apply(a: Number) -> Number:
        return of_complex(a) if isinstance(a, complex) else real(a)

    return apply


_WITH_COMPLEX: tuple[tuple[str, Callable[[float], float], Callable[[complex], complex]], ...] = (
    ("acos", math.acos, cmath.acos),
    ("acosh", math.acosh, cmath.acosh),
    ("asin", math.asin, cmath.asin),
    ("asinh", math.asinh, cmath.asinh),
    ("atan", math.atan, cmath.atan),
    ("atanh", math.atanh, cmath.atanh),
    ("cos", math.cos, cmath.cos),
    ("cosh", math.cosh, cmath.cosh),
    ("exp", math.exp, cmath.exp),
    ("log", math.log, cmath.log),
    ("log10", math.log10, cmath.log10),
    ("sin", math.sin, cmath.sin),
    ("sinh", math.sinh, cmath.sinh),
    ("sqrt", math.sqrt, cmath.sqrt),
    ("tan", math.tan, cmath.tan),
    ("tanh", math.tanh, cmath.tanh),
)
for _name, _real, _complex in _WITH_COMPLEX:
    declare(_real, f"aten::{_name}.int(int a) -> float", f"aten::{_name}.float(float a) -> float")
    declare(_complex, f"aten::{_name}.complex(complex a) -> complex")
    declare(_by_type(_real, _complex), f"aten::{_name}.Scalar(Scalar a) -> Scalar")

_REAL: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("degrees", math.degrees),
    ("erf", math.erf),
    ("erfc", math.erfc),
    ("expm1", math.expm1),
    ("fabs", math.fabs),
    ("gamma", math.gamma),
    ("lgamma", math.lgamma),
    ("log1p", math.log1p),
    ("radians", math.radians),
)
for _name, _real in _REAL:
    declare(
        _real,
        f"aten::{_name}.int(int a) -> float",
        f"aten::{_name}.float(float a) -> float",
        f"aten::{_name}.Scalar(Scalar a) -> Scalar",
    )

declare(
    cmath.phase,
    "aten::angle.int(int a) -> float",
    "aten::angle.float(float a) -> float",
    "aten::angle.complex(complex a) -> float",
    "aten::angle.Scalar(Scalar a) -> Scalar",
)
declare(
    cmath.rect,
    "aten::polar.int(int a, int b) -> complex",
    "aten::polar.float(float a, float b) -> complex",
    "aten::polar.int_float(int a, float b) -> complex",
    "aten::polar.float_int(float a, int b) -> complex",
    "aten::polar.Scalar_Scalar(Scalar a, Scalar b) -> Scalar",
)
declare(
    math.atan2,
    "aten::atan2.int(int a, int b) -> float",
    "aten::atan2.float(float a, float b) -> float",
    "aten::atan2.int_float(int a, float b) -> float",
    "aten::atan2.float_int(float a, int b) -> float",
    "aten::atan2.Scalar_Scalar(Scalar a, Scalar b) -> float",
)
declare(
    math.log,
    "aten::log.int_int(int a, int b) -> float",
    "aten::log.float_float(float a, float b) -> float",
)
declare(cmath.log, "aten::log.complex_complex(complex a, complex b) -> complex")
declare(math.log, "aten::log.int_float(int a, float b) -> float", "aten::log.float_int(float a, int b) -> float")
declare(
    cmath.log,
    "aten::log.int_complex(int a, complex b) -> complex",
    "aten::log.complex_int(complex a, int b) -> complex",
    "aten::log.float_complex(float a, complex b) -> complex",
    "aten::log.complex_float(complex a, float b) -> complex",
)
declare(math.log, "aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float")

declare(math.factorial, "aten::factorial.int(int a) -> int")
declare(math.gcd, "aten::gcd.int(int a, int b) -> int")
declare(math.frexp, "aten::frexp(float a) -> (float, int)")
declare(math.modf, "aten::modf(float a) -> (float, float)")
declare(math.ldexp, "aten::ldexp(float x, int i) -> float")
