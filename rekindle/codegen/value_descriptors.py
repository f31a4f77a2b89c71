"""Descriptors of the values of a fused graph, for known layouts of its inputs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rekindle.codegen.layout import Ints, Layout
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.scalar_types import OF_DTYPE, ScalarType
from rekindle.codegen.operators import PointwiseOp, RowOp
from rekindle.codegen.operators.views import AffineMap


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """A tensor in memory: an input of a kernel, or a value that the kernel has written. ``number`` is that of its
    buffer."""

    layout: Layout
    number: int


@dataclass(frozen=True, slots=True)
class ScalarValue:
    """A number: a constant, or an input of a kernel (``number`` counts these)."""

    type: type
    value: float | None = None
    number: int | None = None
    rounded: ScalarType | None = None
    """The half-precision type to which the operator rounds it before it computes; None if it does not."""


@dataclass(frozen=True, slots=True, eq=False)
class Pointwise:
    """Result of an elementwise operator; ``scalar`` is the type that it computes with."""

    layout: Layout
    rule: PointwiseOp
    arguments: tuple[Any, ...]
    """Tensors, numbers, other constants."""
    conditions: frozenset[int]
    """Indices of the arguments that keep their own types."""
    scalar: ScalarType


@dataclass(frozen=True, slots=True, eq=False)
class ViewValue:
    """A view of an input or of a computed tensor."""

    layout: Layout
    base: Tensor
    places: AffineMap


@dataclass(frozen=True, slots=True, eq=False)
class RowOpResult:
    """Result of an operator on rows. The rows lie along the dimensions ``dims``, in order, of a tensor of ``sizes``; if
    ``is_folded``, ``layout`` has one element for each row."""

    layout: Layout
    rule: RowOp
    arguments: tuple[Any, ...]
    sizes: Ints
    dims: Ints
    scalar: ScalarType

    @property
    def lengths(self) -> Ints:
        """Lengths of the rows."""
        return tuple(self.sizes[dim] for dim in self.dims)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return math.prod(size for dim, size in enumerate(self.sizes) if dim not in self.dims)


@dataclass(frozen=True, slots=True, eq=False)
class Concat:
    """Concatenation of tensors along a dimension."""

    layout: Layout
    parts: tuple[Tensor, ...]
    dim: int

    def starts(self) -> Iterator[tuple[int, Tensor]]:
        """Yield each part, after the index in ``dim`` at which it starts."""
        start = 0
        for part in self.parts:
            yield start, part
            start += part.layout.sizes[self.dim]


@dataclass(frozen=True, slots=True, eq=False)
class MergedGroups:
    """A tensor in which dimensions 1 and 2 of ``base`` (groups, and channels of a group) are merged into the
    channels."""

    layout: Layout
    base: Tensor

    @property
    def channels(self) -> int:
        """Number of channels in a group."""
        return self.base.layout.sizes[2]


@dataclass(frozen=True, slots=True, eq=False)
class Matmul:
    """Products of the matrices in the last two dimensions of ``a`` and ``b``, whose other dimensions broadcast."""

    layout: Layout
    a: Tensor
    b: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class FlattenedRows:
    """The rows of ``base`` as one matrix, an operand of a matrix product. In memory, the next row is one step along
    ``dim`` away."""

    layout: Layout
    base: Tensor
    dim: int


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """Elements of ``base`` at the indices ``index`` along dimension ``dim``. The dimensions of ``index`` replace this
    dimension. If ``is_aligned``, the result has the sizes of ``index`` instead, as in ``torch.gather``. With ``wraps``,
    negative indices count from the end."""

    layout: Layout
    base: Tensor
    index: Tensor
    dim: int
    is_aligned: bool
    wraps: bool


Tensor = Input | Pointwise | ViewValue | RowOpResult | Concat | MergedGroups | Matmul | FlattenedRows | Gather


def scalar_of(dtype: torch.dtype) -> ScalarType:
    """Return the scalar type that kernels use for a dtype.

    Raises:
        Unsupported: kernels have no type for it.
    """
    scalar = OF_DTYPE.get(dtype)
    if scalar is None:
        raise Unsupported(f"elements of {dtype}")
    return scalar


def row_ops_of(value: Tensor, materialized: Container[Tensor]) -> list[RowOpResult]:
    """Return the row operators that compute ``value``, the nearest first, up to ``materialized`` tensors."""
    return [each for each in producers_of(value, materialized) if isinstance(each, RowOpResult)]


def producers_of(value: Tensor, materialized: Container[Tensor]) -> Iterator[Tensor]:
    """Yield ``value`` and all values that it is computed from, the nearest first; without those that are
    ``materialized``, their producers, the operands of products, and the bases of gathers."""
    seen: set[Any] = set()
    pending: deque[Any] = deque([value])
    while pending:
        each = pending.popleft()
        if isinstance(each, Tensor) and each not in seen:
            seen.add(each)
            if each not in materialized:
                yield each
                pending.extend(_made_of(each))


def _made_of(value: Tensor) -> Sequence[Any]:
    match value:
        case ViewValue() | MergedGroups():
            return [value.base]
        case Concat():
            return value.parts
        case Gather():
            return [value.index]
        case Pointwise() | RowOpResult():
            return value.arguments
    return ()
