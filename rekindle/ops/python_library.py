"""Functions of Python's library that TorchScript has no operator for, and whose last digit no other operators give.

They run as Python's own functions. Archives say them by operators of tensors, whose last digit may be another.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from rekindle.ops.declare import declare, implements

declare(math.log2, "python::log2(float x) -> float")
if sys.version_info >= (3, 11):
    declare(math.exp2, "python::exp2(float x) -> float")
    declare(math.cbrt, "python::cbrt(float x) -> float")
declare(round, "python::round(float x, int digits) -> float")
declare(math.nextafter, "python::nextafter(float x, float towards) -> float")
declare(math.fsum, "python::fsum(float[] xs) -> float")


@implements("python::norm(float[] xs) -> float")
def norm(xs: Sequence[float]) -> float:
    """``math.hypot(*xs)``"""
    return math.hypot(*xs)


@implements("python::casefold(str text) -> str")
def casefold(text: str) -> str:
    """``text.casefold()``"""
    return text.casefold()
