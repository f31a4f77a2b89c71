"""Sizes of results. A sizes rule maps a call to the sizes of a result: None for a size that is not known, None in place
of all where the number of dimensions is not known either.

Rules hold for each call that succeeds: of two sizes that must be equal the known one counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from rekindle.ir.types import TensorType
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.facts import Constant
from rekindle.ops.result_types.rules import SizesRule


def like(name: str) -> SizesRule:
    """Return the rule for the sizes of the tensor ``name``."""
    return lambda call: call.tensor(name).sizes


def first(call: Call) -> Sizes | None:
    """Return the sizes of the first argument; None if its rank is not known."""
    return call.first.sizes


def scalar(call: Call) -> Sizes | None:
    """Return the sizes of a tensor without dimensions."""
    return ()


def of_rank(rank: int) -> SizesRule:
    """Return a rule for this rank."""
    return lambda call: (None,) * rank


def rank_of_first(call: Call) -> Sizes | None:
    """Return unknown sizes with the rank of the first argument; None if the rank is not known."""
    return unknown_of(call.first.rank)


def unknown_of(rank: int | None) -> Sizes | None:
    """Return unknown sizes of ``rank`` dimensions; None if the rank is unknown."""
    return None if rank is None else (None,) * rank


def listed(name: str) -> SizesRule:
    """Return a rule for sizes passed as a list of ints; -1 is unknown."""

    def rule(call: Call) -> Sizes | None:
        sizes = call.ints(name)
        return None if sizes is None else tuple(size if size is not None and size >= 0 else None for size in sizes)

    return rule


def axis(dim: int | None, rank: int | None) -> int | None:
    """Return ``dim`` as a non-negative dimension; None if it is unknown or out of range. Rank 0 counts as 1."""
    if dim is None or rank is None or not -max(rank, 1) <= dim < max(rank, 1):
        return None
    return dim % max(rank, 1)


def axes(dims: Sequence[int | None] | None, rank: int | None) -> set[int] | None:
    """Return several dimensions as non-negative ones; None if one is unknown or out of range."""
    if dims is None or rank is None:
        return None
    found = [axis(dim, rank) for dim in dims]
    return None if None in found else {index for index in found if index is not None}


# -------------------------------------------------------------------------------------------------------- broadcasting


def same(a: int | None, b: int | None) -> int | None:
    """Return a size that is known to equal both: the known one of the two; None if neither is known."""
    return b if a is None else a


def broadcast_size(a: int | None, b: int | None) -> int | None:
    """Return the size to which both are broadcast; None if it is not known."""
    if a == 1:
        return b
    if b == 1:
        return a
    return same(a, b)


def broadcast(a: Sizes | None, b: Sizes | None) -> Sizes | None:
    """Return the sizes to which both are broadcast; None if a rank is not known."""
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    padded = ((1,) * (rank - len(sizes)) + sizes for sizes in (a, b))
    return tuple(map(broadcast_size, *padded))


def broadcasting(*names: str) -> SizesRule:
    """Return the rule for the sizes to which these arguments broadcast, as far as they are tensors that the overload
    has."""

    def rule(call: Call) -> Sizes | None:
        tensors = [name for name in names if call.has(name) and not _is_number(call, name)]
        found = [call.tensor(name).sizes for name in tensors]
        return reduce(broadcast, found) if found else None

    return rule


def _is_number(call: Call, name: str) -> bool:
    index = call.schema.argument_index(name)
    assert index is not None
    is_tensor = "Tensor" in str(call.schema.arguments[index].type)
    return not is_tensor or call.fact(name) == Constant(None)


# ---------------------------------------------------------------------------------------------------------- reductions


def reduced(dims: str = "dim", keepdim: str | None = "keepdim", *, empty: str = "all") -> SizesRule:
    """Return a rule for the sizes of the first argument after a reduction. ``dims`` and ``keepdim`` are names of
    arguments: the reduced dimensions, and the flag whether each stays with size 1 (None: they are removed). All
    dimensions are reduced where the argument ``dims`` is None or missing. ``empty`` specifies which dimensions an empty
    list reduces: "all", "none", or "unknown"."""

    def rule(call: Call) -> Sizes | None:
        sizes = call.first.sizes
        keep = call.flag(keepdim) if keepdim is not None and call.has(keepdim) else False
        chosen: set[int] | None
        if call.is_none(dims):
            chosen = None if sizes is None else set(range(len(sizes)))
            if keep is False:
                return ()
        else:
            listed = call.ints(dims)
            if listed is None:
                return unknown_of(call.first.rank) if keep else None
            if not listed and empty == "unknown":
                return None
            if not listed and empty == "all":
                if keep is False:
                    return ()
                chosen = None if sizes is None else set(range(len(sizes)))
            else:
                return _reduce(sizes, listed, keep)
        return (1,) * len(sizes) if keep and sizes is not None and chosen is not None else None

    return rule


def _reduce(sizes: Sizes | None, dims: Sizes, keep: bool | None) -> Sizes | None:
    if sizes is None or keep is None:
        return None
    if not sizes:
        return ()
    chosen = axes(dims, len(sizes))
    if chosen is None:
        # No dimension may be named twice, so that the rank follows from the number of dimensions.
        return unknown_of(len(sizes) if keep else len(sizes) - len(dims)) if keep or len(dims) <= len(sizes) else None
    if keep:
        return tuple(1 if index in chosen else size for index, size in enumerate(sizes))
    return tuple(size for index, size in enumerate(sizes) if index not in chosen)


def replaced(
    sizes: Sizes | None, index: int | None, size: int | None, *, scalar_becomes_vector: bool = False
) -> Sizes | None:
    """Return ``sizes`` with ``size`` at ``index``; all are unknown if the index is, and None is returned for None. A
    tensor without dimensions keeps its sizes, or gets the single size ``size`` if ``scalar_becomes_vector``."""
    if sizes is None:
        return None
    if not sizes:
        return (size,) if scalar_becomes_vector else ()
    if index is None:
        return (None,) * len(sizes)
    return (*sizes[:index], size, *sizes[index + 1 :])


def with_dim(name: str = "dim") -> SizesRule:
    """Return the rule for the sizes of the first argument, in which the size of the dimension in the argument ``name``
    is unknown."""

    def rule(call: Call) -> Sizes | None:
        sizes = call.first.sizes
        return replaced(sizes, axis(call.int(name), call.first.rank), None)

    return rule


# -------------------------------------------------------------------------------------------------------- other shapes


def product(sizes: Sequence[int | None]) -> int | None:
    """Return the number of elements; None if it is not known."""
    if 0 in sizes:
        return 0
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def last(sizes: Sizes | None, count: int) -> Sizes:
    """Return the last ``count`` sizes; all unknown if the rank is unknown or less than ``count``."""
    return (None,) * count if sizes is None or len(sizes) < count else sizes[-count:] if count else ()


def keep_leading(count: int) -> SizesRule:
    """Return the rule for the sizes of the first argument, with the last ``count`` of them unknown."""

    def rule(call: Call) -> Sizes | None:
        sizes = call.first.sizes
        if sizes is None or len(sizes) < count:
            return None
        return (*sizes[: len(sizes) - count], *(None,) * count)

    return rule


def common(tensors: Sequence[TensorType]) -> Sizes | None:
    """Return the sizes of tensors that all have the same sizes; None if no rank is known, or known ranks differ."""
    found: Sizes | None = None
    for each in tensors:
        if each.sizes is None:
            continue
        if found is not None and len(found) != len(each.sizes):
            return None
        found = each.sizes if found is None else tuple(map(same, found, each.sizes))
    return found
