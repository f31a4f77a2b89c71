"""Views: affine maps from the elements of a view to those of its base.

A view of a value that a kernel computes is not materialized: its elements are computed where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rekindle.codegen.layout import Ints

AffineExpr = tuple[int, Ints]
"""Index along one dimension: an offset, and the stride of each loop."""

AffineMap = tuple[AffineExpr, ...]
"""For each dimension of a value, its index as a function of the loops."""

View = tuple[Ints, AffineMap]
"""The sizes of a view, and for each dimension of the base, its index as a function of the view's indices."""

ViewRule = Callable[..., "Sequence[View]"]
"""Called with the sizes of the base and the constant arguments; returns the view of each output. ``IndexError`` and
``ValueError`` mean that the operator would raise."""

VIEWS: Final[dict[str, ViewRule]] = {}
"""By qualified name."""


def _view(*operators: str) -> Callable[[ViewRule], ViewRule]:
    def decorate(rule: ViewRule) -> ViewRule:
        for operator in operators:
            VIEWS[operator] = rule
        return rule

    return decorate


def identity(rank: int) -> AffineMap:
    """Return the affine map of ``rank`` loops to equal indices."""
    return tuple((0, _unit(rank, dim)) for dim in range(rank))


def _unit(rank: int, dim: int, step: int = 1) -> Ints:
    return tuple(step if each == dim else 0 for each in range(rank))


def _wrapped(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise IndexError(dim)
    return dim + rank if dim < 0 else dim


def compose(places: AffineMap, through: AffineMap, loops: int) -> AffineMap:
    """Return the map from ``loops`` loops to the indices of a base: ``places`` maps a view's indices to the base's,
    ``through`` the loops to the view's."""
    found = []
    for offset, steps in places:
        total = [0] * loops
        for step, (inner, inner_steps) in zip(steps, through, strict=True):
            if step:
                offset += step * inner
                for loop in range(loops):
                    total[loop] += step * inner_steps[loop]
        found.append((offset, tuple(total)))
    return tuple(found)


def _part(sizes: Ints, dim: int, start: int, length: int, step: int = 1) -> View:
    rank = len(sizes)
    places = tuple((start, _unit(rank, d, step)) if d == dim else (0, _unit(rank, d)) for d in range(rank))
    return (*sizes[:dim], length, *sizes[dim + 1 :]), places


@_view("prim::ConstantChunk")
def chunk(sizes: Ints, chunks: int, dim: int) -> Sequence[View]:
    dim = _wrapped(dim, len(sizes))
    length = -(-sizes[dim] // chunks)
    starts = [length * number for number in range(chunks)]
    if starts[-1] >= sizes[dim]:
        raise ValueError("fewer chunks")
    return [_part(sizes, dim, start, min(length, sizes[dim] - start)) for start in starts]


@_view("aten::slice.Tensor")
def slice_(sizes: Ints, dim: int, start: int | None, end: int | None, step: int) -> Sequence[View]:
    dim = _wrapped(dim, len(sizes))
    if step <= 0:
        raise ValueError(step)
    size = sizes[dim]
    first, last = _bound(0 if start is None else start, size), size if end is None else _bound(end, size)
    return [_part(sizes, dim, first, max(0, -(-(last - first) // step)), step)]


def _bound(index: int, size: int) -> int:
    """Return an end of a slice, clipped to ``size`` elements."""
    return max(index + size, 0) if index < 0 else min(index, size)


@_view("aten::narrow")
def narrow(sizes: Ints, dim: int, start: int, length: int) -> Sequence[View]:
    dim = _wrapped(dim, len(sizes))
    if not -sizes[dim] <= start <= sizes[dim] or length < 0:
        raise IndexError(start)
    start = start + sizes[dim] if start < 0 else start
    if start + length > sizes[dim]:
        raise IndexError(start)
    return [_part(sizes, dim, start, length)]


@_view("aten::select.int")
def select(sizes: Ints, dim: int, index: int) -> Sequence[View]:
    dim = _wrapped(dim, len(sizes))
    index = _wrapped(index, sizes[dim])
    rank = len(sizes) - 1
    places = [(0, _unit(rank, each)) for each in range(rank)]
    places.insert(dim, (index, (0,) * rank))
    return [((*sizes[:dim], *sizes[dim + 1 :]), tuple(places))]


@_view("aten::permute")
def permute(sizes: Ints, dims: Sequence[int]) -> Sequence[View]:
    rank = len(sizes)
    order = [_wrapped(dim, rank) for dim in dims]
    if sorted(order) != list(range(rank)):
        raise ValueError(dims)
    return [(tuple(sizes[dim] for dim in order), tuple((0, _unit(rank, order.index(dim))) for dim in range(rank)))]


@_view("aten::transpose.int")
def transpose(sizes: Ints, dim0: int, dim1: int) -> Sequence[View]:
    order = list(range(len(sizes)))
    if order:
        a, b = _wrapped(dim0, len(sizes)), _wrapped(dim1, len(sizes))
        order[a], order[b] = order[b], order[a]
    return permute(sizes, order)


@_view("aten::t")
def t(sizes: Ints) -> Sequence[View]:
    if len(sizes) > 2:
        raise ValueError(sizes)
    return permute(sizes, range(len(sizes) - 1, -1, -1))


@_view("aten::unsqueeze")
def unsqueeze(sizes: Ints, dim: int) -> Sequence[View]:
    rank = len(sizes) + 1
    at = _wrapped(dim, rank)
    places = tuple((0, _unit(rank, each + (each >= at))) for each in range(rank - 1))
    return [((*sizes[:at], 1, *sizes[at:]), places)]


def _without(sizes: Ints, dropped: set[int]) -> Sequence[View]:
    kept = [dim for dim in range(len(sizes)) if dim not in dropped]
    places = tuple(
        (0, _unit(len(kept), kept.index(dim)) if dim in kept else (0,) * len(kept)) for dim in range(len(sizes))
    )
    return [(tuple(sizes[dim] for dim in kept), places)]


@_view("aten::squeeze")
def squeeze(sizes: Ints) -> Sequence[View]:
    return _without(sizes, {dim for dim, size in enumerate(sizes) if size == 1})


@_view("aten::squeeze.dim")
def squeeze_dim(sizes: Ints, dim: int) -> Sequence[View]:
    if not sizes:
        return _without(sizes, set())
    dim = _wrapped(dim, len(sizes))
    return _without(sizes, {dim} if sizes[dim] == 1 else set())


@_view("aten::expand")
def expand(sizes: Ints, size: Sequence[int], implicit: bool) -> Sequence[View]:
    missing = len(size) - len(sizes)
    if missing < 0:
        raise ValueError(size)
    wanted = list(size)
    for at, own in enumerate(sizes, missing):
        if wanted[at] == -1:
            wanted[at] = own
        elif own not in (1, wanted[at]):
            raise ValueError(size)
    if any(each < 0 for each in wanted):
        raise ValueError(size)
    return [(tuple(wanted), broadcast(sizes, tuple(wanted)))]


def broadcast(sizes: Ints, wanted: Ints) -> AffineMap:
    """Return the map from indices of a tensor of the sizes ``wanted`` to those of a tensor of ``sizes``, which
    broadcasts to them."""
    missing, rank = len(wanted) - len(sizes), len(wanted)
    return tuple(
        (0, (0,) * rank if size == 1 and wanted[at] != 1 else _unit(rank, at)) for at, size in enumerate(sizes, missing)
    )


def grouping(rank: int, inner: int) -> AffineMap:
    """Return the map from indices with dimension 1 split in two, the group and the index in a group of size ``inner``,
    to ``rank`` indices without the split."""
    places = [(0, _unit(rank + 1, dim + (dim > 1))) for dim in range(rank)]
    places[1] = (0, tuple(inner if dim == 1 else int(dim == 2) for dim in range(rank + 1)))
    return tuple(places)


def along_channels(size: int, rank: int) -> View:
    """Return the view of a vector of ``size`` elements that broadcasts along dimension 1 of a tensor of ``rank``
    dimensions."""
    return (size, *(1,) * (rank - 2)), ((0, _unit(rank - 1, 0)),)


@_view("aten::detach", "aten::alias")
def same(sizes: Ints) -> Sequence[View]:
    return [(sizes, identity(len(sizes)))]
