"""Search for kernels that cover more sizes that a fused group may have.

The recipe of a kernel has guards on the sizes for which it is valid. The search selects sizes that no recipe covers
yet, lowers a recipe for these, and repeats until there are none: as in symbolic execution, where each recipe is a path.
:mod:`~rekindle.building.size_relations` determines how sizes vary. Nothing is run or allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Final

from rekindle.building.group_layouts import GroupInputs
from rekindle.building.size_relations import SizeRelations, relations_of
from rekindle.codegen.compiled_kernels import KernelRecipe
from rekindle.codegen.layout import Layout

_MAX_RECIPES: Final = 40
"""Number of recipes of a group at which the search ends."""
_MAX_TRIES: Final = 1500
"""Maximum number of combinations of sizes that are tried for inputs of a group with certain dtypes and ranks."""
_LARGEST: Final = 1 << 40
"""Maximum number of elements of a tensor that is considered."""
_SPECIAL: Final = (0, 1, 61, 257)
_SMALL: Final = (0, 1, 2, 3, 5)
_LARGE: Final = (17, 61, 257, 1031, 4099, 65_537, 1_000_003)
"""Sizes that are tried besides those that the group and its kernels name. Large ones are odd: multiples of a vector
are a special case."""


def add_recipes(
    calls: Sequence[GroupInputs], recipes: list[KernelRecipe], make: Callable[[GroupInputs], KernelRecipe | None]
) -> None:
    """Append to ``recipes`` kernels for sizes that the inputs of a group may have besides those in ``calls``.
    ``make`` returns the recipe for given inputs; None if there is no kernel."""
    by_signature: dict[tuple[object, ...], list[GroupInputs]] = {}
    for call in calls:
        signature = tuple((each.dtype, each.rank) if isinstance(each, Layout) else each for each in call)
        by_signature.setdefault(signature, []).append(call)
    for alike in by_signature.values():
        relations = relations_of(alike)
        if relations is not None:
            _explore(relations, alike, recipes, make)


def _explore(
    relations: SizeRelations,
    calls: Sequence[GroupInputs],
    recipes: list[KernelRecipe],
    make: Callable[[GroupInputs], KernelRecipe | None],
) -> None:
    """Append recipes for further sizes that ``relations`` allow, until all sizes to try are covered or a limit is
    reached."""
    tried = set[tuple[int, ...]]()
    known = -1
    while known != len(recipes):  # a new recipe names sizes that others may depend on
        known = len(recipes)
        for variables in _points(relations, calls, recipes):
            if len(recipes) >= _MAX_RECIPES or len(tried) >= _MAX_TRIES:
                return
            if variables in tried:
                continue
            tried.add(variables)
            inputs = relations.layouts(variables)
            if inputs is None or not _fits(inputs) or any(each.numbers(inputs) is not None for each in recipes):
                continue
            made = make(inputs)
            if made is not None:
                recipes.append(made)


def _points(
    relations: SizeRelations, calls: Sequence[GroupInputs], recipes: Sequence[KernelRecipe]
) -> Iterator[tuple[int, ...]]:
    """Yield values of the size variables to try: those of recorded calls, with some of them changed."""
    own = {size for call in calls for each in call if isinstance(each, Layout) for size in each.sizes}
    limits = {size for each in recipes for size in each.formula.constants if 0 <= size < _LARGEST}
    near = {limit + step for limit in limits for step in (-1, 0, 1) if limit + step >= 0}
    anchors = relations.calls[:2]
    count = len(anchors[0])
    values = sorted({*_SMALL, *_LARGE, *own, *near})
    yield from _changed(anchors, values, 1)
    for ones in range(1, count):
        yield from _changed([*dict.fromkeys(_changed(anchors, [1], ones))], values, 1)
    for anchor in anchors:
        yield from product(*((*_SPECIAL, value) for value in anchor))
    if count > 1:
        yield from _changed(anchors, sorted({*_SMALL, 257, *own, *limits}), 2)


def _changed(anchors: Sequence[tuple[int, ...]], values: Sequence[int], changes: int) -> Iterator[tuple[int, ...]]:
    """Yield the anchors with ``changes`` of their numbers replaced by any of the values."""
    for anchor, places in product(anchors, combinations(range(len(anchors[0])), changes)):
        for chosen in product(values, repeat=changes):
            point = list(anchor)
            for place, value in zip(places, chosen, strict=True):
                point[place] = value
            yield tuple(point)


def _fits(inputs: GroupInputs) -> bool:
    """Return whether tensors with these layouts are small enough to exist."""
    return all(math.prod(each.sizes) <= _LARGEST for each in inputs if isinstance(each, Layout))
