"""Examples with other sizes: what they show of the dimensions that may have any size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.building.lowering.representation import NotBuildable
from rekindle.ir.graph_function import GraphFunction


def with_other_sizes(
    record: GraphFunction,
    examples: Sequence[Sequence[Any]],
    dynamic: Mapping[str, Sequence[int]],
    module: torch.nn.Module | None,
) -> list[list[Any]]:
    """Return the examples with other sizes of the dynamic dimensions of parameters.

    Dimensions that have the same size in an example are the same dimension: they change together. They become 1, and
    larger, and the sizes of other tensors: a kernel may depend on which sizes are equal.

    Raises:
        NotBuildable: a parameter is not a tensor in an example, or has no such dimension.
    """
    names = [argument.name for argument in record.schema.arguments]
    places = {names.index(name): dims for name, dims in dynamic.items() if name in names}
    return [changed for example in examples for changed in _changed(example, places, names, module)]


def _changed(
    example: Sequence[Any],
    places: Mapping[int, Sequence[int]],
    names: Sequence[str],
    module: torch.nn.Module | None,
) -> Iterator[list[Any]]:
    sizes = set()
    for index, dims in places.items():
        tensor = example[index]
        if not isinstance(tensor, Tensor):
            raise NotBuildable(f"'{names[index]}' has dynamic sizes, and in an example it is not a tensor")
        for dim in dims:
            if not -tensor.dim() <= dim < tensor.dim():
                raise NotBuildable(f"'{names[index]}' has {tensor.dim()} dimensions, and {dim} is none of them")
            sizes.add(tensor.shape[dim])
    for size in sorted(sizes):
        # Kernels differ for small and large sizes.
        known = _sizes_of(example, module)
        for other in dict.fromkeys((1, *(factor * size + 1 for factor in (2, 16, 128)), *known)):
            if other != size and (other <= 2 * size + 1 or _elements(example, places, size, other) <= MAX_ELEMENTS):
                yield [_resized(each, places.get(index, ()), size, other) for index, each in enumerate(example)]


def _sizes_of(example: Sequence[Any], module: torch.nn.Module | None) -> list[int]:
    """Return the smallest sizes of the tensors of a call."""
    tensors = [each for each in example if isinstance(each, Tensor)]
    if module is not None:
        tensors += [*module.parameters(), *module.buffers()]
    return sorted({size for each in tensors for size in each.shape if size > 1})[:_MAX_KNOWN]


_MAX_KNOWN: Final = 12
"""How many sizes of other tensors are tried."""

MAX_ELEMENTS: Final = 1 << 20
"""How large examples are made."""


def _elements(example: Sequence[Any], places: Mapping[int, Sequence[int]], size: int, other: int) -> int:
    """Return the number of elements of the largest tensor after a change of size."""
    largest = 0
    for index, dims in places.items():
        count = example[index].numel()
        for dim in dims:
            if example[index].shape[dim] == size:
                count = count // max(size, 1) * other
        largest = max(largest, count)
    return largest


def _resized(value: Any, dims: Sequence[int], size: int, other: int) -> Any:
    """Return a tensor with the dimensions of one size cut to another, or repeated up to it."""
    for dim in dims:
        if value.shape[dim] == size and size > 0:
            value = value.index_select(dim, torch.arange(other) % size)
    return value
