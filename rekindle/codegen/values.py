"""What the values of a fused graph are, once the layouts of its inputs are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rekindle.codegen.layout import Ints, Layout
from rekindle.codegen.loops.builder import Unsupported
from rekindle.codegen.loops.scalars import OF_DTYPE, Scalar
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
    """What an operator on rows gives. The rows lie along the last dimensions of a tensor of ``sizes``, which are
    ``lengths`` long; where ``is_folded``, ``layout`` has one element for each row."""

    layout: Layout
    rule: RowRule
    arguments: tuple[Any, ...]
    sizes: Ints
    lengths: Ints
    scalar: Scalar


Tensor = Input | Computed | ViewOf | Folded


def scalar_of(dtype: torch.dtype) -> Scalar:
    """How kernels know a dtype.

    Raises:
        Unsupported: they do not.
    """
    scalar = OF_DTYPE.get(dtype)
    if scalar is None:
        raise Unsupported(f"elements of {dtype}")
    return scalar


def rows_of(value: Tensor) -> Ints | None:
    """How long the rows are along which something is folded to make ``value``; None where nothing is.

    Raises:
        Unsupported: rows of different lengths.
    """
    found: set[Ints] = set()
    seen: set[int] = set()
    pending: list[Any] = [value]
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Folded):
            found.add(each.lengths)
        if isinstance(each, Computed | Folded):
            pending += each.arguments
        elif isinstance(each, ViewOf):
            pending.append(each.base)
    if len(found) > 1:
        raise Unsupported("rows of different lengths")
    return found.pop() if found else None
