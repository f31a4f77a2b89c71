"""Examples with other sizes: vary the dynamic dimensions, to find how sizes in the program depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from rekindle.building.lowering.representation import NotBuildable
from rekindle.ir.graph_function import GraphFunction


def with_other_sizes(
    record: GraphFunction,
    examples: Sequence[Sequence[Any]],
    dynamic: Mapping[str, Sequence[int]],
) -> list[list[Any]]:
    """Return copies of the examples in which the dynamic dimensions of parameters have other sizes.

    Dimensions that have the same size in an example are the same dimension: they change together. Up to three sizes
    besides that of the example show how other sizes follow from them (:mod:`~rekindle.building.size_relations`).

    Raises:
        NotBuildable: a parameter is not a tensor in an example, or has no such dimension.
    """
    names = [argument.name for argument in record.schema.arguments]
    places = {names.index(name): dims for name, dims in dynamic.items() if name in names}
    return [changed for example in examples for changed in _changed(example, places, names)]


def _changed(example: Sequence[Any], places: Mapping[int, Sequence[int]], names: Sequence[str]) -> Iterator[list[Any]]:
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
        for other in dict.fromkeys((1, 2 * size + 1, 3 * size + 2)):
            if other != size:
                yield [_resized(each, places.get(index, ()), size, other) for index, each in enumerate(example)]


def _resized(value: Any, dims: Sequence[int], size: int, other: int) -> Any:
    """Return a tensor whose dimensions in ``dims`` of size ``size`` have the size ``other``: cut, or repeated
    cyclically."""
    for dim in dims:
        if value.shape[dim] == size and size > 0:
            value = value.index_select(dim, torch.arange(other) % size)
    return value
