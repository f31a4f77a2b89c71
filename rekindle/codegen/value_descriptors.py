"""What the values of a fused graph are, once the layouts of its inputs are known."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rekindle.codegen.layout import Ints, Layout
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.scalar_types import OF_DTYPE, Scalar
from rekindle.codegen.operators import RowRule, Rule
from rekindle.codegen.operators.views import IndexMap


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """A tensor that is passed; ``number`` counts tensors."""

    layout: Layout
    number: int


@dataclass(frozen=True, slots=True)
class Number:
    """A number: constant, or passed (``number`` counts those that are)."""

    type: type
    value: float | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """What an elementwise operator gives; ``scalar`` is the type that it computes with."""

    layout: Layout
    rule: Rule
    arguments: tuple[Any, ...]
    """Tensors, numbers, other constants."""
    conditions: frozenset[int]
    """Which arguments keep their own types."""
    scalar: Scalar


@dataclass(frozen=True, slots=True, eq=False)
class ViewOf:
    """A view of a tensor that is passed or computed."""

    layout: Layout
    base: Tensor
    places: IndexMap


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """What an operator on rows gives. The rows lie along the dimensions ``dims``, in order, of a tensor of ``sizes``;
    where ``is_folded``, ``layout`` has one element for each row."""

    layout: Layout
    rule: RowRule
    arguments: tuple[Any, ...]
    sizes: Ints
    dims: Ints
    scalar: Scalar

    @property
    def lengths(self) -> Ints:
        """How long the rows are."""
        return tuple(self.sizes[dim] for dim in self.dims)

    @property
    def rows(self) -> int:
        """How many there are."""
        return math.prod(size for dim, size in enumerate(self.sizes) if dim not in self.dims)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Tensors behind one another along a dimension."""

    layout: Layout
    parts: tuple[Tensor, ...]
    dim: int

    def starts(self) -> Iterator[tuple[int, Tensor]]:
        """The parts, with where each begins."""
        start = 0
        for part in self.parts:
            yield start, part
            start += part.layout.sizes[self.dim]


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A tensor whose dimensions 1 and 2 (groups, and channels of a group) are one, the channels."""

    layout: Layout
    base: Tensor

    @property
    def channels(self) -> int:
        """How many are in a group."""
        return self.base.layout.sizes[2]


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """Products of the matrices in the last two dimensions of ``a`` and ``b``, whose other dimensions broadcast."""

    layout: Layout
    a: Tensor
    b: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """Elements of ``base`` at the indices that ``index`` has along dimension ``dim``. In place of this dimension the
    result has those of ``index``; or ``is_aligned``: it has the sizes of ``index``, and takes of each other dimension
    the place where it is itself. With ``wraps``, indices below 0 count from the end."""

    layout: Layout
    base: Tensor
    index: Tensor
    dim: int
    is_aligned: bool
    wraps: bool


Tensor = Input | Computed | ViewOf | Folded | Joined | Grouped | Product | Looked


def scalar_of(dtype: torch.dtype) -> Scalar:
    """How kernels know a dtype.

    Raises:
        Unsupported: they do not.
    """
    scalar = OF_DTYPE.get(dtype)
    if scalar is None:
        raise Unsupported(f"elements of {dtype}")
    return scalar


def folds_of(value: Tensor, kept: Container[Tensor]) -> list[Folded]:
    """The operators on rows that ``value`` is made by, the nearest first; not those behind what is ``kept``."""
    return [each for each in makers_of(value, kept) if isinstance(each, Folded)]


def makers_of(value: Tensor, kept: Container[Tensor]) -> Iterator[Tensor]:
    """All that ``value`` is made of, itself first, the nearest first; not what is ``kept``, nor what is behind that or
    behind a product."""
    seen: set[Any] = set()
    pending: deque[Any] = deque([value])
    while pending:
        each = pending.popleft()
        if isinstance(each, Tensor) and each not in seen:
            seen.add(each)
            if each not in kept:
                yield each
                pending.extend(_made_of(each))


def _made_of(value: Tensor) -> Sequence[Any]:
    match value:
        case ViewOf() | Grouped():
            return [value.base]
        case Joined():
            return value.parts
        case Looked():
            return [value.index]
        case Computed() | Folded():
            return value.arguments
    return ()
