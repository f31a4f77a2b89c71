"""Functions of one number, mostly of the mathematical library."""

from __future__ import annotations

from rekindle.codegen.loop_ir.builder import Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.loop_ir.scalar_types import F32, F64
from rekindle.codegen.operators.pointwise_ops import RULES, Build, PointwiseOp, ResultDtype, elementwise
from rekindle.ops.releases.v2_14 import EARLY_OVERFLOW_OF_HYPERBOLICS

E = Expression

LIBRARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "erf", "erfc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "atanh"),
)
"""Operators that are called as the mathematical library calls them."""


def _of_library(name: str) -> Build:
    def build(b: Builder, self: E) -> E:
        return b.call(name, self)

    return build


for _name in LIBRARY:
    RULES[f"aten::{_name}"] = PointwiseOp(_of_library(_name), ResultDtype.FLOAT)


def _of_large_numbers(name: str) -> Build:
    """Return the rule of a function that is computed in doubles, because its implementation squares the argument, which
    floats cannot hold."""

    def build(b: Builder, self: E) -> E:
        if self.scalar is not F32:
            raise Unsupported(f"'{name}' of doubles")
        return b.cast(b.call(name, b.cast(self, F64)), F32)

    return build


for _name in ("asinh", "acosh"):
    RULES[f"aten::{_name}"] = PointwiseOp(_of_large_numbers(_name), ResultDtype.FLOAT)


def _hyperbolic(name: str) -> Build:
    """Return the rule of ``sinh`` or ``cosh``. Floats are computed in doubles, since the vector function of floats
    overflows too early, unless PyTorch's own result overflows as early in this release."""

    def build(b: Builder, self: E) -> E:
        if self.scalar is not F32 or EARLY_OVERFLOW_OF_HYPERBOLICS:
            return b.call(name, self)
        return b.cast(b.call(name, b.cast(self, F64)), F32)

    return build


for _name in ("sinh", "cosh"):
    RULES[f"aten::{_name}"] = PointwiseOp(_hyperbolic(_name), ResultDtype.FLOAT)


def _rounding(name: str) -> Build:
    def build(b: Builder, self: E) -> E:
        return b.call(name, self) if self.scalar.is_float else self

    return build


for _name in ("floor", "ceil", "trunc", "round"):
    RULES[f"aten::{_name}"] = PointwiseOp(_rounding(_name), refuses_bool=True)


@elementwise("frac")
def frac(b: Builder, self: E) -> E:
    if not self.scalar.is_float:
        raise Unsupported("a fraction of integers")
    return b.sub(self, b.call("trunc", self))


@elementwise("atan2", result=ResultDtype.FLOAT)
def atan2(b: Builder, self: E, other: E) -> E:
    return b.call("atan2", self, other)


@elementwise("hypot")
def hypot(b: Builder, self: E, other: E) -> E:
    if not self.scalar.is_float:
        raise Unsupported("a hypotenuse of integers")
    return b.call("hypot", self, other)
