"""Operators that fold rows: sums, softmax, normalisation. A row lies along the last dimensions of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rekindle.codegen.loops.builder import Builder, Unsupported
from rekindle.codegen.loops.form import Expression
from rekindle.codegen.loops.scalars import BOOL, F32, F64, I64
from rekindle.codegen.operators.rules import Result

E = Expression


class Row(Protocol):
    """What an operator asks of the row that it works on."""

    @property
    def is_long(self) -> bool:
        """Whether it has so many elements that sums need more bits than the elements have."""

    def reduce(self, kind: str, value: E) -> E:
        """Fold ``value`` along the row; see :class:`~rekindle.codegen.loops.form.Reduction`."""


@dataclass(frozen=True, slots=True)
class RowRule:
    """An operator on rows of its first argument. ``build`` is called with a builder, a row, and the arguments of the
    schema; ``dims`` names the parameter with the dimensions of the row, ``shape`` the one with its sizes. ``is_folded``
    says that the result has one element for each row; the parameter ``keepdim`` tells of which shape."""

    build: Callable[..., E]
    dims: str = ""
    shape: str = ""
    is_folded: bool = False
    result: Result = Result.SELF


ROWS: Final[dict[str, RowRule]] = {}
"""By qualified name."""


def _rows(
    operator: str, *, dims: str = "", shape: str = "", is_folded: bool = False, result: Result = Result.SELF
) -> Callable[[Callable[..., E]], Callable[..., E]]:
    def decorate(build: Callable[..., E]) -> Callable[..., E]:
        ROWS[f"aten::{operator}"] = RowRule(build, dims, shape, is_folded, result)
        return build

    return decorate


def _wide(b: Builder, value: E) -> E:
    """In the type that sums are made in: so wide that their order does not matter much."""
    if value.scalar is F32:
        return b.cast(value, F64)
    return value if value.scalar.is_float else b.cast(value, I64)


def _total(b: Builder, row: Row, value: E) -> E:
    """The sum of a row, of the type of ``value``. Floats are summed up as such in many partial sums, so long as those
    have few terms."""
    if value.scalar is F32 and not row.is_long:
        return row.reduce("sum", value)
    return b.cast(row.reduce("sum", _wide(b, value)), value.scalar)


def _no_dtype(dtype: object) -> None:
    if dtype is not None:
        raise Unsupported("a result of another dtype")


def _floats(value: E) -> None:
    if not value.scalar.is_float:
        raise Unsupported("rows of integers")


def _length(b: Builder) -> E:
    return b.cast(b.length(), F64)


@_rows("softmax.int", dims="dim")
def softmax(b: Builder, row: Row, self: E, dim: E, dtype: object) -> E:
    _no_dtype(dtype)
    _floats(self)
    power = b.call("exp", b.sub(self, row.reduce("maximum", self)))
    total = _total(b, row, power)
    return b.div(power, total)


@_rows("log_softmax.int", dims="dim")
def log_softmax(b: Builder, row: Row, self: E, dim: E, dtype: object) -> E:
    _no_dtype(dtype)
    _floats(self)
    distance = b.sub(self, row.reduce("maximum", self))
    total = _total(b, row, b.call("exp", distance))
    return b.sub(distance, b.call("log", total))


def _moments(b: Builder, row: Row, value: E) -> tuple[E, E]:
    """The mean of a row, and the sum of the squared distances from it. Floats are summed up with all bits of their
    squares, in one walk; doubles in two."""
    wide = _wide(b, value)
    total = row.reduce("sum", wide)
    mean = b.div(total, _length(b))
    if value.scalar is F32:
        squares = row.reduce("sum", b.mul(wide, wide))
        return mean, b.clamp_min(b.sub(squares, b.mul(total, mean)), b.like(0.0, squares))
    distance = b.sub(wide, mean)
    return mean, row.reduce("sum", b.mul(distance, distance))


@_rows("layer_norm", shape="normalized_shape")
def layer_norm(
    b: Builder,
    row: Row,
    input: E,
    normalized_shape: Sequence[int],
    weight: E | None,
    bias: E | None,
    eps: E,
    cudnn_enable: bool,
) -> E:
    _floats(input)
    mean, squares = _moments(b, row, input)
    variance = b.div(squares, _length(b))
    scale = b.reciprocal(b.call("sqrt", b.add(variance, b.cast(eps, F64))))
    centred = b.sub(input, b.cast(mean, input.scalar))
    found = b.mul(centred, b.cast(scale, input.scalar))
    if weight is not None:
        found = b.mul(found, weight)
    return found if bias is None else b.add(found, bias)


@_rows("sum.dim_IntList", dims="dim", is_folded=True)
def sum_(b: Builder, row: Row, self: E, dim: Any, keepdim: bool, dtype: object) -> E:
    _no_dtype(dtype)
    _floats(self)
    return _total(b, row, self)


@_rows("mean.dim", dims="dim", is_folded=True)
def mean(b: Builder, row: Row, self: E, dim: Any, keepdim: bool, dtype: object) -> E:
    _no_dtype(dtype)
    _floats(self)
    return b.div(_total(b, row, self), b.cast(b.length(), self.scalar))


@_rows("amax", dims="dim", is_folded=True)
def amax(b: Builder, row: Row, self: E, dim: Any, keepdim: bool) -> E:
    return row.reduce("any" if self.scalar is BOOL else "maximum", self)


@_rows("amin", dims="dim", is_folded=True)
def amin(b: Builder, row: Row, self: E, dim: Any, keepdim: bool) -> E:
    return row.reduce("all" if self.scalar is BOOL else "minimum", self)


@_rows("any.dim", dims="dim", is_folded=True, result=Result.TRUTH)
def any_(b: Builder, row: Row, self: E, dim: Any, keepdim: bool) -> E:
    return row.reduce("any", b.truth(self))


@_rows("all.dim", dims="dim", is_folded=True, result=Result.TRUTH)
def all_(b: Builder, row: Row, self: E, dim: Any, keepdim: bool) -> E:
    return row.reduce("all", b.truth(self))


@_rows("var.correction", dims="dim", is_folded=True)
def var(b: Builder, row: Row, self: E, dim: Any, correction: E | None, keepdim: bool) -> E:
    _floats(self)
    _, squares = _moments(b, row, self)
    less = b.like(1.0, squares) if correction is None else b.cast(correction, F64)
    degrees = b.clamp_min(b.sub(_length(b), less), b.like(0.0, squares))
    return b.cast(b.div(squares, degrees), self.scalar)


@_rows("std.correction", dims="dim", is_folded=True)
def std(b: Builder, row: Row, self: E, dim: Any, correction: E | None, keepdim: bool) -> E:
    return b.call("sqrt", var(b, row, self, dim, correction, keepdim))
