"""Arithmetic on sizes for formulas, and ``sum_to``, which reverses a broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from rekindle.ops.registration.declare import implements

Sizes = Sequence[int]


@implements("autodiff::size_unless_equal(Tensor self, Tensor other) -> int[]?")
def size_unless_equal(self: Tensor, other: Tensor) -> list[int] | None:
    """Return the size of ``self``; None if ``other`` has the same size."""
    size = self.shape
    return None if size == other.shape else list(size)


@implements("autodiff::sizes_of(Tensor[] tensors) -> int[][]")
def sizes_of(tensors: Sequence[Tensor]) -> list[list[int]]:
    """Return the size of each of ``tensors``."""
    return [list(tensor.shape) for tensor in tensors]


@implements("autodiff::ratio(int a, int b) -> int")
def ratio(a: int, b: int) -> int:
    """Return ``a // b``, where ``b`` divides ``a``; 0 for ``b`` of 0."""
    return a // b if b else 0


@implements("autodiff::negated(int[] numbers) -> int[]")
def negated(numbers: Sizes) -> list[int]:
    """Return ``numbers`` with the other sign."""
    return [-number for number in numbers]


@implements("autodiff::inverse_order(int[] dims) -> int[]")
def inverse_order(dims: Sizes) -> list[int]:
    """Return the permutation that undoes ``dims``."""
    found = [0] * len(dims)
    for place, dim in enumerate(dims):
        found[dim % len(dims)] = place
    return found


@implements("autodiff::padded_repeats(int rank, int[] repeats) -> int[]")
def padded_repeats(rank: int, repeats: Sizes) -> list[int]:
    """Return ``repeats`` with a 1 for each leading dimension that it does not name."""
    return [1] * max(0, rank - len(repeats)) + list(repeats)


@implements("autodiff::as_row(int[] numbers, int first) -> int[]")
def as_row(numbers: Sizes, first: int) -> list[int]:
    """Return an option of a one-dimensional layer, such as its stride, as the option of a two-dimensional layer whose
    images have one row: ``[first, number]``. An empty list is returned unchanged."""
    return [first, numbers[0]] if numbers else []


@implements("autodiff::last_two(int[] sizes) -> int[]")
def last_two(sizes: Sizes) -> list[int]:
    """Return the last two of ``sizes``."""
    return list(sizes[-2:])


@implements("autodiff::sum_to(Tensor(a) self, int[] size) -> Tensor(a)")
def sum_to(self: Tensor, size: Sizes) -> Tensor:
    """Return a gradient summed to ``size``, which it was broadcast from."""
    return self if list(self.shape) == list(size) else self.sum_to_size(size)
