"""Sums, products, powers, extremes."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.loop_ir.builder import Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.loop_ir.scalar_types import BF16, BOOL, F16
from rekindle.codegen.operators.pointwise_ops import RULES, PointwiseOp, ResultDtype, Rounding, elementwise, names

E = Expression


def _is(number: E, value: float) -> bool:
    return number.kind == "constant" and number.payload == value


def _no_bool(value: E, what: str) -> None:
    if value.scalar is BOOL:
        raise Unsupported(f"{what} of truth values")


_SUM: Final = Rounding(factors=names("alpha"), unrounded_on_gpu=names("self other alpha"))
_PRODUCT: Final = Rounding(unrounded=names("other"), unrounded_on_gpu=names("self other"))


@elementwise("add.Tensor", rounding=_SUM)
@elementwise("add.Scalar", wrapped="other", rounding=_SUM)
def add(b: Builder, self: E, other: E, alpha: E) -> E:
    return b.add(self, other) if _is(alpha, 1) else b.fma(other, alpha, self)


def _plus(b: Builder, a: E, other: E) -> E:
    return b.add(a, other)


RULES["autodiff::plus"] = PointwiseOp(_plus, optional=frozenset({"b"}))


@elementwise("sub.Tensor", refuses_bool=True, rounding=_SUM)
@elementwise("sub.Scalar", wrapped="other", refuses_bool=True, rounding=_SUM)
def sub(b: Builder, self: E, other: E, alpha: E) -> E:
    return b.sub(self, other) if _is(alpha, 1) else b.fma(other, b.neg(alpha), self)


@elementwise("rsub.Tensor", refuses_bool=True, rounding=_SUM)
@elementwise("rsub.Scalar", wrapped="other", refuses_bool=True, rounding=_SUM)
def rsub(b: Builder, self: E, other: E, alpha: E) -> E:
    return sub(b, other, self, alpha)


@elementwise("mul.Tensor", rounding=_PRODUCT)
@elementwise("mul.Scalar", wrapped="other", rounding=_PRODUCT)
def mul(b: Builder, self: E, other: E) -> E:
    return b.mul(self, other)


@elementwise("div.Tensor", result=ResultDtype.FLOAT, rounding=_PRODUCT)
@elementwise("div.Scalar", result=ResultDtype.FLOAT, wrapped="other", rounding=_PRODUCT)
def div(b: Builder, self: E, other: E) -> E:
    return b.div(self, other)


@elementwise("neg")
def neg(b: Builder, self: E) -> E:
    _no_bool(self, "the negative")
    return b.neg(self)


@elementwise("abs", refuses_bool=True)
def absolute(b: Builder, self: E) -> E:
    if self.scalar is BOOL or not self.scalar.is_signed:
        return self
    return b.call("abs", self)


@elementwise("square")
def square(b: Builder, self: E) -> E:
    _no_bool(self, "the square")  # which are integers
    return b.mul(self, self)


@elementwise("reciprocal", result=ResultDtype.FLOAT)
def reciprocal(b: Builder, self: E) -> E:
    return b.reciprocal(self)


@elementwise("sqrt", result=ResultDtype.FLOAT)
def sqrt(b: Builder, self: E) -> E:
    return b.call("sqrt", self)


@elementwise("rsqrt", result=ResultDtype.FLOAT)
def rsqrt(b: Builder, self: E) -> E:
    return b.reciprocal(b.call("sqrt", self))


@elementwise("sign", "sgn")
def sign(b: Builder, self: E) -> E:
    if self.scalar is BOOL:
        return self
    zero = b.like(0, self)
    above, below = b.compare("lt", zero, self), b.compare("lt", self, zero)
    return b.sub(b.cast(above, self.scalar), b.cast(below, self.scalar))


@elementwise("pow.Tensor_Scalar", promoting="exponent", constants="exponent")
def power(b: Builder, self: E, exponent: E) -> E:
    _no_bool(self, "a power")
    assert isinstance(exponent.payload, int | float)
    value = exponent.payload
    if value == 0:
        return b.like(1, self)
    if value == 1:
        return self
    if value == 2:
        return b.mul(self, self)
    if value == 3:
        return b.mul(b.mul(self, self), self)
    if not self.scalar.is_float:
        raise Unsupported("a power of integers")
    is_half = self.kind == "cast" and self.operands[0].scalar is F16
    if value == 0.5 and not (is_half and b.arithmetic.has_half_powers):
        return b.call("sqrt", self)
    if value == -0.5 and not (is_half and b.arithmetic.has_half_powers):
        return rsqrt(b, self)
    if value == -1:
        return b.reciprocal(self)
    if value == -2:
        return b.reciprocal(b.mul(self, self))
    return b.call("pow", self, exponent)


@elementwise("pow.Tensor_Tensor", one_dtype=True)
@elementwise("pow.Scalar", wrapped="self", is_contiguous=True)
def power_of_tensors(b: Builder, self: E, exponent: E) -> E:
    if not self.scalar.is_float:
        raise Unsupported("a power of integers")
    return b.call("pow", self, exponent)


@elementwise("maximum", "max.other")
def maximum(b: Builder, self: E, other: E) -> E:
    return b.maximum(self, other)


@elementwise("minimum", "min.other")
def minimum(b: Builder, self: E, other: E) -> E:
    return b.minimum(self, other)


@elementwise("clamp", promoting="min max")
def clamp(b: Builder, self: E, min: E | None, max: E | None) -> E:
    _no_bool(self, "a clamp")
    found = self if min is None else _unless_nan(b, min, b.clamp_min(self, min))
    return found if max is None else _unless_nan(b, max, b.clamp_max(found, max))


def _unless_nan(b: Builder, bound: E, limited: E) -> E:
    """Return ``limited``, or NaN if the bound is NaN."""
    is_known = bound.kind == "constant" and bound.payload == bound.payload
    return limited if is_known or not bound.scalar.is_float else b.select(b.is_nan(bound), bound, limited)


@elementwise("clamp_min", promoting="min")
def clamp_min(b: Builder, self: E, min: E) -> E:
    return clamp(b, self, min, None)


@elementwise("clamp_max", promoting="max")
def clamp_max(b: Builder, self: E, max: E) -> E:
    return clamp(b, self, None, max)


@elementwise("clamp.Tensor")
def clamp_tensors(b: Builder, self: E, min: E | None, max: E | None) -> E:
    _no_bool(self, "a clamp")
    found = self if min is None else b.maximum(self, min)
    return found if max is None else b.minimum(found, max)


@elementwise("clamp_min.Tensor")
def clamp_min_tensor(b: Builder, self: E, min: E) -> E:
    return clamp_tensors(b, self, min, None)


@elementwise("clamp_max.Tensor")
def clamp_max_tensor(b: Builder, self: E, max: E) -> E:
    return clamp_tensors(b, self, None, max)


@elementwise("fmod.Tensor")
@elementwise("fmod.Scalar", wrapped="other")
def fmod(b: Builder, self: E, other: E) -> E:
    if not self.scalar.is_float:
        raise Unsupported("a remainder of integers")
    return b.call("fmod", self, other)


@elementwise("remainder.Tensor")
@elementwise("remainder.Scalar", wrapped="other")
def remainder(b: Builder, self: E, other: E) -> E:
    rest = fmod(b, self, other)
    return b.select(_signs_differ(b, rest, other), b.add(rest, other), rest)


def _signs_differ(b: Builder, rest: E, other: E) -> E:
    """Return whether the remainder ``rest`` is not zero, and its sign is not that of the divisor."""
    zero = b.like(0.0, rest)
    signs = b.differ(b.compare("lt", other, zero), b.compare("lt", rest, zero))
    return b.both(b.compare("ne", rest, zero), signs)


def _floor_div(b: Builder, self: E, other: E) -> E:
    """Divide as Python does: subtract the remainder first, so that rounding never makes the quotient too large."""
    rest = b.call("fmod", self, other)
    whole = b.div(b.sub(self, rest), other)
    one, zero = b.like(1.0, self), b.like(0.0, self)
    whole = b.select(_signs_differ(b, rest, other), b.sub(whole, one), whole)
    near = b.call("floor", whole)
    near = b.select(b.compare("gt", b.sub(whole, near), b.like(0.5, self)), b.add(near, one), near)
    quotient = b.div(self, other)
    whole = b.select(b.compare("ne", whole, zero), near, b.call("copysign", zero, quotient))
    return b.select(b.compare("eq", other, zero), quotient, whole)


@elementwise("div.Tensor_mode", constants="rounding_mode")
@elementwise("div.Scalar_mode", wrapped="other", constants="rounding_mode")
def div_mode(b: Builder, self: E, other: E, rounding_mode: str | None) -> E:
    if not self.scalar.is_float:
        raise Unsupported("a division of integers")
    if any(each.kind == "cast" and each.operands[0].scalar in (F16, BF16) for each in (self, other)):
        raise Unsupported("a division of short floats that PyTorch rounds twice")
    if rounding_mode == "trunc":
        return b.call("trunc", b.div(self, other))
    return _floor_div(b, self, other) if rounding_mode == "floor" else b.div(self, other)


@elementwise("lerp.Scalar", "lerp.Tensor", one_dtype=True)
def lerp(b: Builder, self: E, end: E, weight: E) -> E:
    if not self.scalar.is_float:
        raise Unsupported("an interpolation of integers")
    one = b.like(1.0, weight)
    is_near = b.compare("lt", b.call("abs", weight), b.like(0.5, weight))
    factor = b.select(is_near, weight, b.sub(weight, one))
    return b.fma(factor, b.sub(end, self), b.select(is_near, self, end))


@elementwise("addcmul")
def addcmul(b: Builder, self: E, tensor1: E, tensor2: E, value: E) -> E:
    _no_bool(self, "a product")
    return b.fma(b.mul(value, tensor1), tensor2, self)


@elementwise("addcdiv")
def addcdiv(b: Builder, self: E, tensor1: E, tensor2: E, value: E) -> E:
    if not self.scalar.is_float:
        raise Unsupported("a division of integers")
    return b.add(self, b.div(b.mul(value, tensor1), tensor2))
