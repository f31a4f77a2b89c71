"""Reductions: operators that compute one element of a row. Sums, extremes and their indices, variances, norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rekindle.codegen.loop_ir.builder import Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.loop_ir.scalar_types import BOOL, F64, I64, U8
from rekindle.codegen.operators.pointwise_ops import ResultDtype
from rekindle.codegen.operators.rows import ROWS, Row, RowOp, exact_moments, floats, length, total

E = Expression
Build = Callable[..., E]


def _folds(
    *operators: str,
    result: ResultDtype = ResultDtype.SELF,
    is_ordered: bool = False,
    is_variance: bool = False,
) -> Callable[[Build], Build]:
    """Register the decorated function as an output of reductions. Each is named with the parameter that has the
    dimensions: ``sum(dim)``. Several outputs of one operator are registered in their order."""

    def decorate(build: Build) -> Build:
        for operator in operators:
            name, _, dims = operator.removesuffix(")").partition("(")
            rule = RowOp(
                build, dims=dims, is_folded=True, result=result, is_ordered=is_ordered, is_variance=is_variance
            )
            ROWS[f"aten::{name}"] = (*ROWS.get(f"aten::{name}", ()), rule)
        return build

    return decorate


@_folds("sum", "sum.dim_IntList(dim)", result=ResultDtype.SUM)
def sum_(b: Builder, row: Row, self: E, *_: object) -> E:
    if self.scalar is BOOL:
        raise Unsupported("a sum as truth values")
    return total(b, row, self)


def sum_to_size(b: Builder, row: Row, self: E, size: object) -> E:
    return total(b, row, self)


ROWS["aten::_grad_sum_to_size"] = ROWS["autodiff::sum_to"] = (RowOp(sum_to_size, size="size", is_folded=True),)


@_folds("nansum(dim)", result=ResultDtype.SUM)
def nansum(b: Builder, row: Row, self: E, *_: object) -> E:
    return total(b, row, b.select(b.is_nan(self), b.like(0, self), self))


@_folds("mean", "mean.dim(dim)", result=ResultDtype.SUM)
def mean(b: Builder, row: Row, self: E, *_: object) -> E:
    floats(self)
    return b.div(total(b, row, self), b.cast(b.length(), self.scalar))


@_folds("prod", "prod.dim_int(dim)", result=ResultDtype.SUM)
def prod(b: Builder, row: Row, self: E, *_: object) -> E:
    if self.scalar is BOOL:
        raise Unsupported("a product as truth values")
    return row.reduce("product", self)


@_folds("count_nonzero(dim)", "count_nonzero.dim_IntList(dim)", result=ResultDtype.INDEX)
def count_nonzero(b: Builder, row: Row, self: E, *_: object) -> E:
    return row.reduce("sum", b.cast(b.truth(self), I64))


@_folds("max", "max.dim(dim)", "amax(dim)")
def amax(b: Builder, row: Row, self: E, *_: object) -> E:
    return row.reduce("any" if self.scalar is BOOL else "maximum", self)


@_folds("min", "min.dim(dim)", "amin(dim)")
def amin(b: Builder, row: Row, self: E, *_: object) -> E:
    return row.reduce("all" if self.scalar is BOOL else "minimum", self)


def _ordered(b: Builder, value: E) -> E:
    return b.cast(value, U8) if value.scalar is BOOL else value


@_folds("max.dim(dim)", result=ResultDtype.INDEX, is_ordered=True)
def index_of_max(b: Builder, row: Row, self: E, *_: object) -> E:
    return row.reduce("argmaximum", _ordered(b, self))


@_folds("min.dim(dim)", result=ResultDtype.INDEX, is_ordered=True)
def index_of_min(b: Builder, row: Row, self: E, *_: object) -> E:
    return row.reduce("argminimum", _ordered(b, self))


@_folds("argmax(dim)", result=ResultDtype.INDEX, is_ordered=True)
def argmax(b: Builder, row: Row, self: E, *_: object) -> E:
    _no_truth(self)
    return row.reduce("argmaximum", self)


@_folds("argmin(dim)", result=ResultDtype.INDEX, is_ordered=True)
def argmin(b: Builder, row: Row, self: E, *_: object) -> E:
    _no_truth(self)
    return row.reduce("argminimum", self)


def _no_truth(value: E) -> None:
    if value.scalar is BOOL:
        raise Unsupported("the largest of truth values")


@_folds("any", "any.dim(dim)", "any.dims(dim)", result=ResultDtype.TRUTH)
def any_(b: Builder, row: Row, self: E, *_: object) -> E:
    return row.reduce("any", b.truth(self))


@_folds("all", "all.dim(dim)", "all.dims(dim)", result=ResultDtype.TRUTH)
def all_(b: Builder, row: Row, self: E, *_: object) -> E:
    return row.reduce("all", b.truth(self))


@_folds("logsumexp(dim)")
def logsumexp(b: Builder, row: Row, self: E, *_: object) -> E:
    floats(self)
    largest = row.reduce("maximum", self)
    is_infinite = b.compare("eq", b.call("abs", largest), b.like(math.inf, largest))
    shift = b.select(is_infinite, b.like(0.0, largest), largest)
    return b.add(b.call("log", total(b, row, b.call("exp", b.sub(self, shift)))), shift)


# ----------------------------------------------------------------------------------------------------------- variances


def _variance(b: Builder, row: Row, self: E, less: E) -> E:
    """Return the variance of a row in the accumulator's type: it may overflow a float even if its square root does not.
    ``less`` is the correction of the number of elements."""
    floats(self)
    _, squares = exact_moments(b, row, self)
    freedom = b.sub(length(b, squares), b.cast(less, squares.scalar))
    return b.div(squares, b.clamp_min(freedom, b.like(0.0, squares)))


def _variance_and_deviation(operator: str, degrees: Callable[..., E]) -> None:
    """Register ``var`` and ``std`` with one of their parameter lists. ``degrees`` returns the correction of the number
    of elements."""

    def var(b: Builder, row: Row, self: E, *given: Any) -> E:
        return b.cast(_variance(b, row, self, degrees(b, *given)), self.scalar)

    def std(b: Builder, row: Row, self: E, *given: Any) -> E:
        return b.cast(b.call("sqrt", _variance(b, row, self, degrees(b, *given))), self.scalar)

    _folds(f"var{operator}", is_variance=True)(var)
    _folds(f"std{operator}", is_variance=True)(std)


def _correction(b: Builder, dim: object, correction: E | None, keepdim: bool) -> E:
    return b.constant(1.0, F64) if correction is None else b.cast(correction, F64)


_variance_and_deviation(".correction(dim)", _correction)
_variance_and_deviation(".dim(dim)", lambda b, dim, unbiased, keepdim: b.constant(float(unbiased), F64))
_variance_and_deviation("", lambda b, unbiased: b.constant(float(unbiased), F64))


# --------------------------------------------------------------------------------------------------------------- norms


@_folds("linalg_vector_norm(dim)")
def linalg_vector_norm(b: Builder, row: Row, self: E, ord: E, *_: object) -> E:
    return _norm(b, row, self, ord)


@_folds("norm.Scalar", "norm.ScalarOpt_dim(dim)")
def norm(b: Builder, row: Row, self: E, p: E | None, *_: object) -> E:
    return _norm(b, row, self, p)


def _norm(b: Builder, row: Row, self: E, p: E | None) -> E:
    floats(self)
    size = b.call("abs", self)
    order: Any = 2.0 if p is None else p.payload
    if p is not None and p.kind != "constant":
        raise Unsupported("a norm of an order that is not constant")
    if order == 2:
        return b.call("sqrt", total(b, row, b.mul(self, self)))
    if order == 1:
        return total(b, row, size)
    if order == math.inf:
        return row.reduce("maximum", size)
    if order == -math.inf:
        return row.reduce("minimum", size)
    if order == 0:
        is_there = b.compare("ne", self, b.like(0.0, self))
        return total(b, row, b.select(is_there, b.like(1.0, self), b.like(0.0, self)))
    power = b.like(order, self)
    return b.call("pow", total(b, row, b.call("pow", size, power)), b.reciprocal(power))
