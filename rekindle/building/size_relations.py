"""Inference of size relations: how the sizes of a group's inputs depend on each other, from recorded calls.

A group was called with tensors of several sizes. Sizes that were always equal are constants of the program. The others
follow from a few *variables*, such as the number of rows: each is a variable, an affine function of one, or a multiple
of a product of two. Strides are those of dense tensors, or follow from the variables in the same way. These relations
determine which other sizes are tried. They are conjectures: a kernel checks the sizes that it is called with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import torch

from rekindle.building.group_layouts import GroupInputs
from rekindle.codegen.layout import Ints, Layout

Formula = Callable[[Sequence[int]], int | None]
"""A size as a function of the variables; None if it would not be an integer, or would be negative."""

_MAX_VARIABLES = 4


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor whose layout depends on size variables. ``sizes`` has a formula for each dimension. If the tensor is
    dense, ``order`` is the order of its dimensions in memory, the innermost first; otherwise ``order`` is None, and
    ``strides`` has a formula for each dimension."""

    dtype: torch.dtype
    sizes: tuple[Formula, ...]
    order: tuple[int, ...] | None
    strides: tuple[Formula, ...]

    def layout(self, variables: Sequence[int]) -> Layout | None:
        """Return the layout for these values of the size variables; None if a size or stride is not a natural
        number."""
        sizes = _values(self.sizes, variables)
        if sizes is None:
            return None
        strides = _values(self.strides, variables) if self.order is None else _dense_strides(sizes, self.order)
        return None if strides is None else Layout(sizes, strides, self.dtype)


@dataclass(frozen=True, slots=True)
class SizeRelations:
    """The inputs of a group as functions of size variables, and the values of the variables in the calls."""

    inputs: tuple[_Tensor | type, ...]
    calls: tuple[Ints, ...]

    def layouts(self, variables: Sequence[int]) -> GroupInputs | None:
        """Return the inputs for these values of the variables; None if a size or stride is not a natural number."""
        found: list[Layout | type] = []
        for each in self.inputs:
            layout = each.layout(variables) if isinstance(each, _Tensor) else each
            if layout is None:
                return None
            found.append(layout)
        return tuple(found)


def relations_of(calls: Sequence[GroupInputs]) -> SizeRelations | None:
    """Infer the relations in calls with the same dtypes, ranks and types of numbers.

    Returns:
        The relations; None if no size varies, there are more than four variables, or strides follow no rule.
    """
    columns = {
        column
        for each in zip(*calls, strict=True)
        for column in zip(*(layout.sizes for layout in each if isinstance(layout, Layout)), strict=True)
    }
    finder = _Finder()
    for column in sorted(columns, key=lambda column: (max(column), column)):  # factors come before their product
        if finder.formula(column) is None:
            finder.variables.append(column)
    if not 1 <= len(finder.variables) <= _MAX_VARIABLES:
        return None
    inputs: list[_Tensor | type] = []
    for each in zip(*calls, strict=True):
        layouts = [layout for layout in each if isinstance(layout, Layout)]
        if not layouts:
            inputs.append(next(kind for kind in each if isinstance(kind, type)))
            continue
        sizes = finder.formulas([layout.sizes for layout in layouts])
        order = _order(layouts)
        strides = () if order is not None else finder.formulas([layout.strides for layout in layouts])
        if sizes is None or strides is None:
            return None
        inputs.append(_Tensor(layouts[0].dtype, sizes, order, strides))
    return SizeRelations(tuple(inputs), tuple(dict.fromkeys(zip(*finder.variables, strict=True))))


class _Finder:
    """Inference of formulas for columns of numbers. A column has one number for each recorded call."""

    def __init__(self) -> None:
        self.variables: list[Ints] = []

    def formulas(self, rows: Sequence[Ints]) -> tuple[Formula, ...] | None:
        """Return a formula for each column of the rows; None if some column has no formula."""
        found = [self.formula(column) for column in zip(*rows, strict=True)]
        known = tuple(each for each in found if each is not None)
        return known if len(known) == len(found) else None

    def formula(self, column: Ints) -> Formula | None:
        """Return a formula that computes the numbers of ``column``, one for each recorded call, from the variables
        found so far; None if there is none."""
        first = column[0]
        if all(each == first for each in column):
            return lambda _: first
        for index, variable in enumerate(self.variables):
            found = _affine(variable, column)
            if found is not None:
                return _affine_formula(index, *found)
        for a, b in combinations_with_replacement(range(len(self.variables)), 2):
            factor = _factor(self.variables[a], self.variables[b], column)
            if factor is not None:
                return _product_formula(a, b, factor)
        return None


def _affine(variable: Ints, column: Ints) -> tuple[Fraction, Fraction] | None:
    """Return the slope and the offset of a column as an increasing affine function of a variable; None if it is not
    one. An offset other than 0 must be confirmed by a third point."""
    points = sorted(set(zip(variable, column, strict=True)))
    if len(points) != len({x for x, _ in points}) or len(points) < 2:
        return None
    (x, y), (other_x, other_y) = points[0], points[-1]
    slope = Fraction(other_y - y, other_x - x)
    offset = y - slope * x
    if slope <= 0 or any(slope * x + offset != y for x, y in points) or (offset and len(points) < 3):
        return None
    return slope, offset


def _affine_formula(index: int, slope: Fraction, offset: Fraction) -> Formula:
    def formula(variables: Sequence[int]) -> int | None:
        size = slope * variables[index] + offset
        return int(size) if size.denominator == 1 and size >= 0 else None

    return formula


def _factor(a: Ints, b: Ints, column: Ints) -> Fraction | None:
    """Return the ratio of a column to the product of two variables; None if it is not constant, or a variable is 0."""
    if 0 in a or 0 in b:
        return None
    factors = {Fraction(each, x * y) for x, y, each in zip(a, b, column, strict=True)}
    return factors.pop() if len(factors) == 1 else None


def _product_formula(a: int, b: int, factor: Fraction) -> Formula:
    def formula(variables: Sequence[int]) -> int | None:
        size = factor * variables[a] * variables[b]
        return int(size) if size.denominator == 1 else None

    return formula


def _values(formulas: Sequence[Formula], variables: Sequence[int]) -> Ints | None:
    found = [formula(variables) for formula in formulas]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def _order(layouts: Sequence[Layout]) -> tuple[int, ...] | None:
    """Return the order of the dimensions in memory, the innermost first, with which all layouts are dense; None if
    neither the order of contiguous tensors nor that of one layout's strides fits."""
    rank = layouts[0].rank
    most = max(layouts, key=lambda layout: sum(size > 1 for size in layout.sizes))
    orders = [tuple(range(rank - 1, -1, -1)), tuple(sorted(range(rank), key=lambda dim: (most.strides[dim], -dim)))]
    for order in orders:
        if all(_is_dense(layout, order) for layout in layouts):
            return order
    return None


def _is_dense(layout: Layout, order: Sequence[int]) -> bool:
    dense = _dense_strides(layout.sizes, order)
    return all(
        size == 1 or stride == own for size, stride, own in zip(layout.sizes, layout.strides, dense, strict=True)
    )


def _dense_strides(sizes: Ints, order: Sequence[int]) -> Ints:
    strides, step = [0] * len(sizes), 1
    for dim in order:
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return tuple(strides)
