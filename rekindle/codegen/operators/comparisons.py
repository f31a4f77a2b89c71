"""Comparisons, logical and bitwise operators, and selection by conditions."""

from __future__ import annotations

import math

from rekindle.codegen.loop_ir.builder import Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.loop_ir.scalar_types import BOOL
from rekindle.codegen.operators.pointwise_ops import CHECKS, RULES, Build, PointwiseOp, ResultDtype, elementwise, names

E = Expression


def _comparison(kind: str) -> Build:
    def build(b: Builder, self: E, other: E) -> E:
        return b.compare(kind, self, other)

    return build


for _kind in ("lt", "le", "gt", "ge", "eq", "ne"):
    RULES[f"aten::{_kind}.Tensor"] = PointwiseOp(_comparison(_kind), ResultDtype.TRUTH)
    RULES[f"aten::{_kind}.Scalar"] = PointwiseOp(_comparison(_kind), ResultDtype.TRUTH, wrapped=names("other"))


@elementwise("logical_not", result=ResultDtype.TRUTH)
def logical_not(b: Builder, self: E) -> E:
    return b.invert(b.truth(self))


@elementwise("logical_and", result=ResultDtype.TRUTH)
def logical_and(b: Builder, self: E, other: E) -> E:
    return b.both(b.truth(self), b.truth(other))


@elementwise("logical_or", result=ResultDtype.TRUTH)
def logical_or(b: Builder, self: E, other: E) -> E:
    return b.either(b.truth(self), b.truth(other))


@elementwise("logical_xor", result=ResultDtype.TRUTH)
def logical_xor(b: Builder, self: E, other: E) -> E:
    return b.differ(b.truth(self), b.truth(other))


def _whole(value: E) -> None:
    if value.scalar.is_float:
        raise Unsupported("the bits of floats")


@elementwise("bitwise_not")
def bitwise_not(b: Builder, self: E) -> E:
    _whole(self)
    return b.invert(self)


@elementwise("bitwise_and.Tensor", "__and__.Tensor")
@elementwise("bitwise_and.Scalar", "__and__.Scalar", wrapped="other")
def bitwise_and(b: Builder, self: E, other: E) -> E:
    _whole(self)
    return b.both(self, other)


@elementwise("bitwise_or.Tensor", "__or__.Tensor")
@elementwise("bitwise_or.Scalar", "__or__.Scalar", wrapped="other")
def bitwise_or(b: Builder, self: E, other: E) -> E:
    _whole(self)
    return b.either(self, other)


@elementwise("bitwise_xor.Tensor", "__xor__.Tensor")
@elementwise("bitwise_xor.Scalar", "__xor__.Scalar", wrapped="other")
def bitwise_xor(b: Builder, self: E, other: E) -> E:
    _whole(self)
    return b.differ(self, other)


@elementwise("isnan", result=ResultDtype.TRUTH)
def isnan(b: Builder, self: E) -> E:
    return b.is_nan(self)


@elementwise("isinf", result=ResultDtype.TRUTH)
def isinf(b: Builder, self: E) -> E:
    if not self.scalar.is_float:
        return b.constant(False, BOOL)
    return b.compare("eq", b.call("abs", self), b.like(math.inf, self))


@elementwise("isfinite", result=ResultDtype.TRUTH)
def isfinite(b: Builder, self: E) -> E:
    if not self.scalar.is_float:
        return b.constant(True, BOOL)
    return b.compare("lt", b.call("abs", self), b.like(math.inf, self))


@elementwise("where.self", conditions="condition")
@elementwise("where.ScalarSelf", conditions="condition", wrapped="self")
@elementwise("where.ScalarOther", conditions="condition", wrapped="other")
def where(b: Builder, condition: E, self: E, other: E) -> E:
    if condition.scalar is not BOOL:
        raise Unsupported("a condition of numbers")
    return b.select(condition, self, other)


@elementwise("masked_fill.Scalar", "masked_fill.Tensor", result=ResultDtype.SELF, conditions="mask", is_contiguous=True)
def masked_fill(b: Builder, self: E, mask: E, value: E) -> E:
    if mask.scalar is not BOOL:
        raise Unsupported("a mask of numbers")
    return b.select(mask, value, self)


# -------------------------------------------------------------------------------------------------------------- checks


def _check_between(b: Builder, self: E, least: E, most: E) -> E:
    return b.checked(self, b.both(b.compare("ge", self, least), b.compare("le", self, most)))


CHECKS["check_between"] = "self least most", PointwiseOp(_check_between, ResultDtype.SELF)
"""Refuse elements below ``least`` or above ``most``, and NaN."""
