"""Operators on rows: their descriptions, softmax, normalization, scans. A row lies along some dimensions of a tensor;
:mod:`~rekindle.codegen.operators.reductions` has the operators that compute one element of a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from rekindle.codegen.loop_ir.builder import Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.loop_ir.scalar_types import BOOL, F32, F64
from rekindle.codegen.operators.pointwise_ops import ResultDtype, names

E = Expression


class Row(Protocol):
    """Interface of the row that an operator computes with."""

    @property
    def is_long(self) -> bool:
        """Whether the row has so many elements that sums need a wider type than the elements."""

    def reduce(self, kind: str, value: E) -> E:
        """Return the reduction of ``value`` along the row; see :class:`~rekindle.codegen.loop_ir.nodes.Reduction`."""

    def scan(self, kind: str, value: E) -> E:
        """Return the cumulative ``sum`` or ``product`` (the kind) of ``value`` along the row."""


@dataclass(frozen=True, slots=True)
class RowOp:
    """An operator on rows of its first argument. ``build`` is called with a builder, a row, and the arguments of the
    schema; ``dims`` names the parameter with the dimensions of the row, ``shape`` the one with its sizes, ``size``
    the one with the sizes of what is left; without any it has all dimensions. Where ``channels`` names operands with
    one element for each channel (dimension 1), a row is a channel of an image, or as many channels as make one of
    ``groups`` groups. ``is_folded``: the result has one element for each row, and the parameter ``keepdim``
    specifies its shape. ``is_ordered``: the result depends on the order of the elements of a row. ``is_variance``:
    it divides by the degrees of freedom."""

    build: Callable[..., E]
    dims: str = ""
    shape: str = ""
    size: str = ""
    channels: frozenset[str] = frozenset()
    groups: str = ""
    is_folded: bool = False
    result: ResultDtype = ResultDtype.SELF
    is_ordered: bool = False
    is_variance: bool = False


ROWS: Final[dict[str, tuple[RowOp, ...]]] = {}
"""By qualified name; a rule for each output."""


def _rows(
    operator: str, *, dims: str = "", shape: str = "", channels: str = "", groups: str = ""
) -> Callable[[Callable[..., E]], Callable[..., E]]:
    def decorate(build: Callable[..., E]) -> Callable[..., E]:
        rule = RowOp(build, dims=dims, shape=shape, channels=names(channels), groups=groups)
        ROWS[f"aten::{operator}"] = (rule,)
        return build

    return decorate


def floats(value: E) -> None:
    """Check that ``value`` is of a float type.

    Raises:
        Unsupported: it is of an integer type.
    """
    if not value.scalar.is_float:
        raise Unsupported("rows of integers")


def total(b: Builder, row: Row, value: E) -> E:
    """Return the sum of a row, in the type of ``value``. Elements of float32 are summed in many partial sums of few
    terms; if the row is too long for that, in the accumulator's type."""
    if value.scalar is F32 and row.is_long:
        return b.cast(row.reduce("sum", b.cast(value, b.accumulator(F32))), F32)
    return row.reduce("sum", value)


def length(b: Builder, other: E) -> E:
    """Return the number of elements of a row, in the type of ``other``."""
    return b.cast(b.length(), other.scalar)


@_rows("softmax.int", dims="dim")
def softmax(b: Builder, row: Row, self: E, dim: E, dtype: object) -> E:
    floats(self)
    power = b.call("exp", b.sub(self, row.reduce("maximum", self)))
    whole = total(b, row, power)
    if b.arithmetic.divides_fast:
        return b.div(power, whole)
    return b.mul(power, b.reciprocal(whole))  # one division a row; the sum is between 1 and the row's length


@_rows("_safe_softmax", dims="dim")
def safe_softmax(b: Builder, row: Row, self: E, dim: E, dtype: object) -> E:
    found = softmax(b, row, self, dim, dtype)
    is_masked = b.compare("eq", row.reduce("maximum", self), b.like(-math.inf, self))
    return b.select(is_masked, b.like(0.0, found), found)


@_rows("log_softmax.int", dims="dim")
def log_softmax(b: Builder, row: Row, self: E, dim: E, dtype: object) -> E:
    floats(self)
    distance = b.sub(self, row.reduce("maximum", self))
    return b.sub(distance, b.call("log", total(b, row, b.call("exp", distance))))


def moments(b: Builder, row: Row, value: E) -> tuple[E, E]:
    """Return the mean of a row and the sum of the squared distances from it, for normalization, in the accumulator's
    type. Floats accumulated as doubles need one pass: a double holds all bits of their squares. Cancellation where the
    distances are a few units in the last place of the mean is as in PyTorch's own normalizations, which accumulate
    floats."""
    if value.scalar is not F32 or b.accumulator(F32) is not F64:
        return exact_moments(b, row, value)
    wide = b.cast(value, F64)
    whole = row.reduce("sum", wide)
    mean = b.div(whole, length(b, whole))
    squares = row.reduce("sum", b.mul(wide, wide))
    return mean, b.clamp_min(b.sub(squares, b.mul(whole, mean)), b.like(0.0, squares))


def exact_moments(b: Builder, row: Row, value: E) -> tuple[E, E]:
    """Return the result of :func:`moments` in two passes over the row, without cancellation."""
    wide = b.cast(value, b.accumulator(value.scalar))
    mean = b.div(row.reduce("sum", wide), length(b, wide))
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
    return normalized(b, row, input, weight, bias, eps)


@_rows("instance_norm", channels="weight bias")
def instance_norm(
    b: Builder,
    row: Row,
    input: E,
    weight: E | None,
    bias: E | None,
    running_mean: E | None,
    running_var: E | None,
    use_input_stats: bool,
    momentum: E,
    eps: E,
    cudnn_enabled: bool,
) -> E:
    if running_mean is not None or running_var is not None or not use_input_stats:
        raise Unsupported("statistics that are kept")
    return normalized(b, row, input, weight, bias, eps)


@_rows("group_norm", channels="weight bias", groups="num_groups")
def group_norm(
    b: Builder,
    row: Row,
    input: E,
    num_groups: object,
    weight: E | None,
    bias: E | None,
    eps: E,
    cudnn_enabled: bool,
) -> E:
    return normalized(b, row, input, weight, bias, eps)


def normalized(b: Builder, row: Row, input: E, weight: E | None, bias: E | None, eps: E) -> E:
    """Return a row scaled to mean 0 and variance 1, then multiplied by ``weight`` and added to ``bias``."""
    floats(input)
    mean, squares = moments(b, row, input)
    variance = b.div(squares, length(b, squares))
    scale = b.reciprocal(b.call("sqrt", b.add(variance, b.cast(eps, variance.scalar))))
    centred = b.sub(input, b.cast(mean, input.scalar))
    found = b.mul(centred, b.cast(scale, input.scalar))
    if weight is not None:
        found = b.mul(found, weight)
    return found if bias is None else b.add(found, bias)


def _cumulative(kind: str) -> Callable[..., E]:
    def build(b: Builder, row: Row, self: E, dim: E, dtype: object) -> E:
        if self.scalar is BOOL:
            raise Unsupported("a sum as truth values")
        wide = b.cast(self, F64) if self.scalar is F32 else self
        return b.cast(row.scan(kind, wide), self.scalar)

    return build


for _name, _kind in (("cumsum", "sum"), ("cumprod", "product")):
    ROWS[f"aten::{_name}"] = (RowOp(_cumulative(_kind), dims="dim", result=ResultDtype.SUM, is_ordered=True),)
