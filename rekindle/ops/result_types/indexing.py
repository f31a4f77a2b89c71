"""Indexing, gathering and scattering, joining, sorting, searching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import torch

from rekindle.ir.types import TENSOR, TensorType
from rekindle.ops.result_types import dtypes, sizes
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.dtypes import always, first, floating, list_promotion, summed
from rekindle.ops.result_types.facts import Constant, Every, Fact
from rekindle.ops.result_types.rules import (
    FIRST,
    NEVER,
    SOME,
    Result,
    Rule,
    Rules,
    SizesRule,
    each,
    first_device,
    list_of,
    several,
    tensor,
    unknown_sizes,
)
from rekindle.ops.result_types.sizes import axis, broadcast, product, replaced, unknown_of

_INT64: Final = always(torch.int64)


# ------------------------------------------------------------------------------------------------------------- indexing


def _indexed(call: Call) -> Sizes | None:
    """Return the sizes of the result of advanced indexing. If the indices are adjacent, the dimensions that they select
    stay in place; otherwise these dimensions move to the front. A mask replaces its dimensions by one of unknown
    size. None if not known."""
    known, items = call.first.sizes, call.items("indices")
    if known is None or items is None:
        return None
    rest: list[int | None] = list(known)
    found: Sizes | None = ()
    before: list[int | None] = []
    between: list[list[int | None]] = [[]]
    places: list[int] = []
    for place, item in enumerate(items):
        if item == Constant(None):
            between[-1].append(rest.pop(0) if rest else None)
            continue
        taken, result = _index_sizes(item)
        if taken is None or len(rest) < taken:
            return None
        del rest[:taken]
        found = broadcast(found, result)
        places.append(place)
        between.append([])
    if found is None or not places:
        return None if places else known
    is_adjacent = places == list(range(places[0], places[-1] + 1))
    if is_adjacent:
        before = between[0]
        return (*before, *found, *between[-1], *rest)
    return (*found, *(size for part in between for size in part), *rest)


def _index_sizes(item: Fact) -> tuple[int | None, Sizes | None]:
    """Return the number of dimensions that an index consumes, and the sizes of those that replace them."""
    if not isinstance(item, TensorType) or item.dtype is None or item.rank is None:
        return None, None
    if item.dtype in (torch.bool, torch.uint8):
        if not item.rank:
            return None, None
        return item.rank, (None,)
    return 1, item.sizes


def _index_select(call: Call) -> Sizes | None:
    index = call.tensor("index").sizes
    count = 1 if index == () else index[0] if index else None
    return replaced(call.first.sizes, axis(call.int("dim"), call.first.rank), count)


def _taken_along(call: Call) -> Sizes | None:
    """Return the rank of the index, with unknown sizes. Without ``dim``, return the number of its elements, since the
    tensor is flattened; None if it is not known whether there is a ``dim``."""
    index, is_flat = call.tensor("indices"), call.is_none("dim")
    if is_flat:
        return (None if index.sizes is None else product(index.sizes),)
    return None if is_flat is None else unknown_of(index.rank)


def _scattered() -> Result:
    return tensor(first, sizes.first, device=first_device, flow=FIRST)


def _masked(call: Call) -> Sizes:
    return (None,)


def _one_hot_places(call: Call) -> Sizes:
    return (None, call.first.rank)


# -------------------------------------------------------------------------------------------------------------- joining


def _joined(
    dim: Callable[[Call, int, bool], int | None], grown: Callable[[Sizes], Sizes] = lambda given: given
) -> SizesRule:
    """Return the rule of a concatenation: the sizes of one dimension are added, the others are equal."""

    def rule(call: Call) -> Sizes | None:
        tensors = call.list_of_tensors("tensors")
        if not tensors:
            item = _item_of(call)
            return None if item is None or (item.rank or 0) < 2 else unknown_of(item.rank)
        counted = [None if t.sizes is None else grown(t.sizes) for t in tensors]
        matrices = [given for given in counted if given is not None and len(given) > 1]
        if not matrices:
            return _joined_vectors(counted)
        rank = len(matrices[0])
        is_mixed = any(given is None or len(given) != rank for given in counted)
        place = axis(dim(call, rank, is_mixed), rank)
        if any(len(given) != rank for given in matrices) or place is None:
            return unknown_of(rank) if all(len(given) == rank for given in matrices) else None
        found = list(reduce(lambda a, b: tuple(map(sizes.same, a, b)), matrices))
        found[place] = _total(counted, place, rank)
        return tuple(found)

    return rule


def _item_of(call: Call) -> TensorType | None:
    fact = call.fact("tensors")
    return fact.item if isinstance(fact, Every) and isinstance(fact.item, TensorType) else None


def _joined_vectors(counted: Sequence[Sizes | None]) -> Sizes | None:
    """Return the sizes of a concatenation of vectors: one dimension, if all are vectors and at least one exists; else
    None."""
    if any(given is None or len(given) != 1 for given in counted):
        return None
    return (_total(counted, 0, 1),)


def _total(counted: Sequence[Sizes | None], place: int, rank: int) -> int | None:
    total = 0
    for given in counted:
        if given is None or (len(given) != rank and given != (0,)):
            return None
        size = given[place] if len(given) == rank else 0
        if size is None:
            return None
        total += size
    return total


def _dim_argument(call: Call, rank: int, is_mixed: bool) -> int | None:
    return call.int("dim")


def _at_least(count: int) -> Callable[[Sizes], Sizes]:
    def grown(given: Sizes) -> Sizes:
        if len(given) >= count:
            return given
        if count == 1 or not given:
            return (1,) * count
        return (1, *given) if count == 2 else (1, *given, 1) if len(given) == 1 else (*given, 1)

    return grown


def _column(given: Sizes) -> Sizes:
    return (1, 1) if not given else (given[0], 1) if len(given) == 1 else given


def _stacked(call: Call) -> Sizes | None:
    tensors = call.list_of_tensors("tensors")
    if not tensors:
        item = _item_of(call)
        return None if item is None or item.rank is None else unknown_of(item.rank + 1)
    known = sizes.common(tensors)
    if known is None:
        return None
    place = axis(call.int("dim"), len(known) + 1)
    return unknown_of(len(known) + 1) if place is None else (*known[:place], len(tensors), *known[place:])


def _joined_dtype(call: Call) -> torch.dtype | None:
    """Return the common dtype of concatenated tensors. In a list of unknown length, all must have one rank and
    dtype. None if not known."""
    item = _item_of(call)
    return item.dtype if item is not None else list_promotion("tensors")(call)


def _join(rule: SizesRule) -> Result:
    return tensor(_joined_dtype, rule, flow=SOME)


def _meshed(call: Call) -> Sequence[Fact]:
    tensors = call.list_of_tensors("tensors")
    if tensors is None:
        return []
    lengths = [1 if t.sizes == () else t.sizes[0] if t.sizes else None for t in tensors]
    if call.has("indexing") and call.value("indexing") != "ij":
        lengths = [None] * len(lengths)
    return [tuple(replace(t, sizes=tuple(lengths), strides=None) for t in tensors)]


def _combined(call: Call) -> Sizes | None:
    length = call.int("r")
    return (None, length) if length else None  # of none, the result is a vector


def _product_of_lists(call: Call) -> Sizes | None:
    tensors = call.list_of_tensors("tensors")
    return None if tensors is None else (None,) if len(tensors) == 1 else (None, len(tensors))


# -------------------------------------------------------------------------------------------------- sorting, searching


_SORTED: Final = tensor(first, sizes.first)
_ORDER: Final = tensor(_INT64, sizes.first, flow=NEVER)


def _top(call: Call) -> Sizes | None:
    return replaced(call.first.sizes, axis(call.int("dim"), call.first.rank), call.int("k"))


def _index_dtype(call: Call) -> torch.dtype | None:
    as_int32 = call.flag("out_int32")
    return None if as_int32 is None else torch.int32 if as_int32 else torch.int64


def _searched(call: Call) -> Sizes | None:
    index = call.schema.argument_index("self")
    is_tensor = index is not None and call.schema.arguments[index].type == TENSOR
    return call.tensor("self").sizes if is_tensor else ()


def _inverse(call: Call) -> Sizes | None:
    """Return the sizes of the inverse indices; None if they are not requested, or for slices along a dimension."""
    if not call.flag("return_inverse"):
        return None
    return call.first.sizes if not call.has("dim") or call.is_none("dim") else None


def _uniques() -> Rule:
    """Return the rule of ``unique``: types of the values (a vector, or slices along a dimension), then of the indices
    and counts."""

    def rule(call: Call) -> Sequence[Fact]:
        is_flat = call.is_none("dim") if call.has("dim") else True
        rank = 1 if is_flat else None if is_flat is None else call.first.rank
        values = tensor(first, lambda call: unknown_of(rank), flow=SOME).type(call)
        counts = tensor(_INT64, sizes.of_rank(1), flow=NEVER).type(call)
        places = tensor(_INT64, _inverse, flow=NEVER).type(call)
        return [values, places, counts]

    return rule


def _diff_dtype(call: Call) -> torch.dtype | None:
    names = [name for name in ("prepend", "append") if call.is_none(name) is not True]
    return first(call) if not names else None


def _trapezoid_rank(call: Call, more: int) -> int | None:
    """Return the larger rank of the integrand and of the sample points, plus ``more``; None if a rank is not known."""
    ranks = [call.tensor(name).rank for name in ("y", "x") if call.has(name)]
    return None if None in ranks else max(rank or 0 for rank in ranks) + more


def _trapezoid_dtype(call: Call) -> torch.dtype | None:
    return dtypes.only_floating(dtypes.agreement(*(name for name in ("y", "x") if call.has(name))))(call)


def _one_more(call: Call) -> Sizes | None:
    rank = call.first.rank
    return None if rank is None else (None,) * (rank + 1)


def _vander(call: Call) -> Sizes | None:
    rank = call.first.rank
    return None if rank is None else (None,) * (max(rank, 1) + 1)


def _covariance_dtype(call: Call) -> torch.dtype | None:
    return floating(first)(call) if call.is_none("aweights") and call.is_none("fweights") else None


def _covariance(call: Call) -> Sizes | None:
    """Return the sizes of ``cov`` or ``corrcoef``: a squeezed matrix, a number for a single variable. None if not
    known."""
    known = call.first.sizes
    if known is None or len(known) < 2:
        return None if known is None else ()
    return None if known[0] is None else () if known[0] == 1 else (known[0], known[0])


_REPEATED_DIM = sizes.with_dim("dim")


def _interleaved(call: Call) -> Sizes | None:
    if not call.has("self"):
        return (None,)
    is_flat = call.is_none("dim")
    return (None,) if is_flat else None if is_flat is None else _REPEATED_DIM(call)


def _dtype_of_all(call: Call) -> torch.dtype | None:
    found = {each.dtype for each in call.tensors}
    return found.pop() if len(found) == 1 else None


def _histograms(call: Call) -> Sequence[Fact]:
    """Return the types of the counts, with one dimension for each dimension that has bins, and of the edges."""
    bins = call.items("bins")
    counts = tensor(first, lambda call: unknown_of(None if bins is None else len(bins)), flow=SOME)
    return [counts.type(call), Every(tensor(first, sizes.of_rank(1), flow=SOME).type(call))]


def _histogram_bins(call: Call) -> Sizes:
    return (call.int("bins"),)


RULES: Final[Rules] = {
    **each(tensor(first, _indexed, device=first_device), "index _unsafe_index"),
    "index_select": tensor(first, _index_select, device=first_device),
    **each(tensor(first, sizes.like("index"), device=first_device), "gather"),
    "take": tensor(first, sizes.like("index"), device=first_device),
    "take_along_dim": tensor(first, _taken_along, device=first_device),
    "masked_scatter": tensor(first, sizes.broadcasting("self", "mask"), device=first_device),
    "masked_select": tensor(first, _masked),
    **each(
        _scattered(),
        "scatter scatter_add scatter_reduce index_add index_copy index_fill index_put _unsafe_index_put put",
        "index_reduce select_scatter slice_scatter diagonal_scatter as_strided_scatter",
        "_unsafe_masked_index_put_accumulate",
    ),
    "_unsafe_masked_index": tensor(first, device=first_device),
    **each(tensor(_INT64, _one_hot_places, flow=NEVER), "nonzero argwhere nonzero_static"),
    "nonzero_numpy": list_of(tensor(_INT64, sizes.of_rank(1), flow=NEVER)),
    # Joining
    **each(_join(_joined(_dim_argument)), "cat concat concatenate"),
    "stack": _join(_stacked),
    "hstack": _join(_joined(lambda call, rank, is_mixed: None if is_mixed else 1, _at_least(1))),
    **each(_join(_joined(lambda call, rank, is_mixed: 0, _at_least(2))), "vstack row_stack"),
    "dstack": _join(_joined(lambda call, rank, is_mixed: 2, _at_least(3))),
    "column_stack": _join(_joined(lambda call, rank, is_mixed: 1, _column)),
    "meshgrid": _meshed,
    "cartesian_prod": _join(_product_of_lists),
    "combinations": tensor(first, _combined, flow=SOME),
    "_chunk_cat": _join(unknown_sizes),
    # Sorting and searching
    "sort": several(_SORTED, _ORDER),
    "msort": _SORTED,
    "argsort": _ORDER,
    "topk": several(tensor(first, _top), tensor(_INT64, _top, flow=NEVER)),
    "searchsorted": tensor(_index_dtype, _searched, flow=NEVER),
    "bucketize": tensor(_index_dtype, _searched, flow=NEVER),
    "unique_consecutive": _uniques(),
    "unique_dim": _uniques(),
    "_unique2": _uniques(),
    "bincount": tensor(lambda call: torch.int64 if call.is_none("weights") else None, sizes.of_rank(1), flow=NEVER),
    "histc": tensor(first, _histogram_bins, flow=SOME),
    "histogram": several(tensor(first, sizes.of_rank(1), flow=SOME), tensor(first, sizes.of_rank(1), flow=SOME)),
    # Differences, repetitions, diagonals
    "diff": tensor(_diff_dtype, sizes.rank_of_first, flow=SOME),
    **each(tensor(_trapezoid_dtype, lambda call: unknown_of(_trapezoid_rank(call, -1)), flow=SOME), "trapezoid trapz"),
    "cumulative_trapezoid": tensor(_trapezoid_dtype, lambda call: unknown_of(_trapezoid_rank(call, 0)), flow=SOME),
    "repeat_interleave": tensor(first, _interleaved, flow=SOME),
    "diag": tensor(first, lambda call: unknown_of({1: 2, 2: 1}.get(call.first.rank or 0)), device=first_device),
    "diagflat": tensor(first, sizes.of_rank(2), device=first_device),
    "diag_embed": tensor(first, _one_more, device=first_device),
    "linalg_vander": tensor(summed(first), _vander),
    "vander": tensor(dtypes.unknown, sizes.of_rank(2)),
    "cov": tensor(_covariance_dtype, _covariance, flow=SOME),
    "corrcoef": tensor(floating(first), _covariance, flow=SOME),
    "segment_reduce": tensor(first, flow=SOME),
    "gradient": list_of(tensor(dtypes.only_floating(_dtype_of_all), sizes.first, flow=SOME)),
    **each(_histograms, "histogramdd"),
}
