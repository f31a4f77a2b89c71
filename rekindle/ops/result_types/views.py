"""Views, reshapes, and copies of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rekindle.ops.result_types import dtypes, sizes
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.dtypes import first
from rekindle.ops.result_types.facts import Every, Fact
from rekindle.ops.result_types.rules import SOME, Result, Rule, Rules, SizesRule, each, first_device, tensor
from rekindle.ops.result_types.sizes import axis, product, replaced, unknown_of


def _view(rule: SizesRule) -> Result:
    return tensor(first, rule, device=first_device)


def _reshaped(call: Call) -> Sizes | None:
    """Return the sizes of ``view`` or ``reshape``. A size of -1 is computed if all others and the number of
    elements are known. None if not known."""
    wanted = call.ints("size" if call.has("size") else "shape")
    if wanted is None:
        return None
    found = tuple(size if size is not None and size >= 0 else None for size in wanted)
    count = None if call.first.sizes is None else product(call.first.sizes)
    if wanted.count(-1) == 1 and found.count(None) == 1 and count is not None:
        rest = product([size for size in found if size is not None])
        if rest:
            return tuple(count // rest if size is None else size for size in found)
    return found


def _view_dtype(call: Call) -> Sequence[Fact]:
    """Return the type of ``view(sizes)``, or of ``view(dtype)``, which changes the last size."""
    if not call.has("dtype"):
        return [_view(_reshaped).type(call)]
    return [tensor(dtypes.named(dtypes.unknown), sizes.rank_of_first, device=first_device, flow=SOME).type(call)]


def _permuted(call: Call) -> Sizes | None:
    wanted, known = call.ints("dims"), call.first.sizes
    if wanted is None:
        return unknown_of(call.first.rank)
    places = [axis(dim, len(wanted)) for dim in wanted]
    if known is None or len(known) != len(wanted):
        return (None,) * len(wanted)
    return tuple(None if place is None else known[place] for place in places)


def _transposed(*names: str) -> SizesRule:
    def rule(call: Call) -> Sizes | None:
        known = call.first.sizes
        a, b = (axis(call.int(name), call.first.rank) for name in names)
        if known is None or a is None or b is None or not known:
            return unknown_of(call.first.rank)
        changed = list(known)
        changed[a], changed[b] = known[b], known[a]
        return tuple(changed)

    return rule


def _reversed(call: Call) -> Sizes | None:
    known = call.first.sizes
    return None if known is None else known[::-1]


def _matrix_transposed(call: Call) -> Sizes | None:
    known = call.first.sizes
    return known if known is None or len(known) < 2 else (*known[:-2], known[-1], known[-2])


def _expanded(call: Call) -> Sizes | None:
    wanted, known = call.ints("size"), call.first.sizes
    if wanted is None:
        return None
    padded = (None,) * len(wanted) if known is None else (None,) * (len(wanted) - len(known)) + known
    return tuple(old if size == -1 else size for size, old in zip(wanted, padded, strict=False))


def _squeezed(call: Call) -> Sizes | None:
    """Return the sizes of ``squeeze``: without dimensions of size 1, all or only ``dim``. None if a size on which that
    depends is unknown."""
    known = call.first.sizes
    if known is None:
        return None
    if call.has("dim"):
        chosen = sizes.axes(call.ints("dim"), len(known))
        if chosen is None:
            return () if not known else None
    else:
        chosen = set(range(len(known)))
    if any(known[index] is None for index in chosen if known):
        return None
    return tuple(size for index, size in enumerate(known) if not (index in chosen and size == 1))


def _unsqueezed(call: Call) -> Sizes | None:
    known, dim = call.first.sizes, call.int("dim")
    if known is None:
        return None
    place = axis(dim, len(known) + 1)
    return (None,) * (len(known) + 1) if place is None else (*known[:place], 1, *known[place:])


def _selected(call: Call) -> Sizes | None:
    known = call.first.sizes
    place = axis(call.int("dim"), call.first.rank)
    if known is None or not known:
        return None
    return unknown_of(len(known) - 1) if place is None else (*known[:place], *known[place + 1 :])


def _sliced(call: Call) -> Sizes | None:
    """Return the sizes of ``slice``: the number of selected indices is known if size, bounds and step are. None if not
    known."""
    place, known = axis(call.int("dim"), call.first.rank), call.first.sizes
    if known is None or not known or place is None:
        return unknown_of(call.first.rank)
    return replaced(known, place, _slice_length(call, known[place]))


def _slice_length(call: Call, size: int | None) -> int | None:
    step, start, end = call.int("step"), call.int("start"), call.int("end")
    if size is None or step is None or not call.is_known("start") or not call.is_known("end"):
        return None
    return len(range(*slice(start, end, step).indices(size)))


def _narrowed(call: Call) -> Sizes | None:
    return replaced(call.first.sizes, axis(call.int("dim"), call.first.rank), call.int("length"))


def _flattened(call: Call) -> Sizes | None:
    known = call.first.sizes
    start, end = (axis(call.int(name), call.first.rank) for name in ("start_dim", "end_dim"))
    if known is None:
        return None
    if not known:
        return (1,)
    if start is None or end is None or start > end:
        return None
    return (*known[:start], product(known[start : end + 1]), *known[end + 1 :])


def _unflattened(call: Call) -> Sizes | None:
    known, wanted = call.first.sizes, call.ints("sizes")
    place = axis(call.int("dim"), call.first.rank)
    if known is None or wanted is None:
        return None
    if place is None or not known:
        return (None,) * (len(known) - 1 + len(wanted)) if known else None
    parts = tuple(size if size is not None and size >= 0 else None for size in wanted)
    return (*known[:place], *parts, *known[place + 1 :])


def _moved(call: Call) -> Sizes | None:
    known, rank = call.first.sizes, call.first.rank
    source, target = call.ints("source"), call.ints("destination")
    if known is None or source is None or target is None or None in source or None in target or not known:
        return unknown_of(rank)
    old = [axis(dim, rank) for dim in source]
    new = [axis(dim, rank) for dim in target]
    order: list[int | None] = [None] * len(known)
    for a, b in zip(old, new, strict=False):
        if a is None or b is None:
            return unknown_of(rank)
        order[b] = a
    rest = iter([index for index in range(len(known)) if index not in old])
    return tuple(known[next(rest) if index is None else index] for index in order)


def _diagonal(call: Call) -> Sizes | None:
    rank = call.first.rank
    return None if rank is None or rank < 2 else (None,) * (rank - 1)


def _unfolded(call: Call) -> Sizes | None:
    known = call.first.sizes
    if known is None:
        return None
    place = axis(call.int("dimension"), len(known))
    kept = replaced(known, place, None)
    assert kept is not None
    return (*kept, call.int("size"))


def _at_least(rank: int) -> Rule:
    """Return the rule of ``atleast_1d``, ``atleast_2d`` or ``atleast_3d``, of a tensor or of each tensor in a list."""

    def grown(known: Sizes | None) -> Sizes | None:
        if known is None or len(known) >= rank:
            return known
        if rank == 1 or not known:
            return (1,) * rank
        return (1, *known) if rank == 2 else (1, *known, 1) if len(known) == 1 else (*known, 1)

    def rule(call: Call) -> Sequence[Fact]:
        items = call.list_of_tensors("tensors") if call.has("tensors") else None
        if items is not None:
            return [tuple(replace(item, sizes=grown(item.sizes), strides=None) for item in items)]
        return [] if call.has("tensors") else [_view(lambda call: grown(call.first.sizes)).type(call)]

    return rule


# ------------------------------------------------------------------------------------------------------------ splitting


def _lengths(call: Call, count: int | None) -> Sequence[int | None] | None:
    """Return the sizes of the parts along the dimension that is split; None if their number is not known."""
    if call.has("indices"):
        indices = call.ints("indices")
        return None if indices is None else [None] * (len(indices) + 1)
    if call.has("sections"):
        sections = call.int("sections")
        if sections is None or sections < 1:
            return None
        if count is None:
            return [None] * sections
        return [count // sections + (index < count % sections) for index in range(sections)]
    if call.has("split_sizes") or isinstance(call.fact("split_size"), tuple):
        return call.ints("split_sizes" if call.has("split_sizes") else "split_size")
    if call.has("chunks") or "chunks" in call.attributes:
        return _chunk_lengths(count, call.int("chunks") if call.has("chunks") else call.attributes["chunks"])
    size = call.int("split_size")
    return None if not size or count is None else _split_lengths(count, size)


def _chunk_lengths(count: int | None, chunks: object) -> Sequence[int | None] | None:
    if not isinstance(chunks, int) or chunks < 1 or count is None:
        return None
    return _split_lengths(count, -(-count // chunks)) if count else [0] * chunks


def _split_lengths(count: int, size: int) -> Sequence[int | None]:
    return [min(size, count - start) for start in range(0, count, size)] or [0]


def _split() -> Rule:
    """Return the rule of operators that split a tensor: a list of parts, or the outputs of ``prim::ConstantChunk``."""

    def rule(call: Call) -> Sequence[Fact]:
        whole = _view(sizes.first).type(call)
        dim = call.int("dim") if call.has("dim") else call.attributes.get("dim", 0)
        place = axis(dim, whole.rank) if isinstance(dim, int) else None
        count = whole.sizes[place] if whole.sizes and place is not None else None
        lengths = _lengths(call, count)
        if lengths is None:
            return [Every(replace(whole, sizes=replaced(whole.sizes, place, None)))]
        return [tuple(replace(whole, sizes=replaced(whole.sizes, place, length)) for length in lengths)]

    return rule


def _constant_chunk(call: Call) -> Sequence[Fact]:
    (parts,) = _split()(call)
    chunks = call.attributes["chunks"]
    assert isinstance(chunks, int)
    if isinstance(parts, Every):
        return [parts.item] * chunks
    assert isinstance(parts, tuple)
    return parts if len(parts) == chunks else []


def _side_by_side() -> Rule:
    """Return the rule of ``hsplit``, ``vsplit`` and ``dsplit``: as many parts as there are, each with the rank of the
    input."""

    def rule(call: Call) -> Sequence[Fact]:
        part = _view(sizes.rank_of_first).type(call)
        lengths = _lengths(call, None)
        return [Every(part) if lengths is None else (part,) * len(lengths)]

    return rule


def _unbound(call: Call) -> Sequence[Fact]:
    part = _view(_selected).type(call)
    known, place = call.first.sizes, axis(call.int("dim"), call.first.rank)
    count = known[place] if known and place is not None else None
    return [Every(part) if count is None or count > 1000 else (part,) * count]


def _to_complex(call: Call) -> Sizes | None:
    return None if not call.first.sizes else call.first.sizes[:-1]


def _to_real(call: Call) -> Sizes | None:
    return None if call.first.sizes is None else (*call.first.sizes, 2)


def _repeated(call: Call) -> Sizes | None:
    """Return the sizes of ``repeat`` and ``tile``. Leading dimensions are added as needed. None if not known."""
    known, counts = call.first.sizes, call.ints("repeats" if call.has("repeats") else "dims")
    if known is None or counts is None:
        return None if counts is None or call.has("dims") else (None,) * len(counts)
    rank = max(len(known), len(counts))
    known = (1,) * (rank - len(known)) + known
    counts = (1,) * (rank - len(counts)) + counts
    return tuple(product(pair) for pair in zip(known, counts, strict=True))


def _broadcast_together(call: Call) -> Sequence[Fact]:
    items = call.list_of_tensors("tensors")
    if not items:
        return []
    found: Sizes | None = ()
    for item in items:
        found = sizes.broadcast(found, item.sizes)
    return [tuple(replace(item, sizes=found, strides=None) for item in items)]


def _detached(call: Call) -> Sequence[Fact]:
    return [replace(_view(sizes.first).type(call), requires_grad=False)]


_SAME = _view(sizes.first)

RULES: Final[Rules] = {
    **each(_view_dtype, "view view_copy"),
    **each(_view(_reshaped), "reshape _unsafe_view _reshape_alias _reshape_copy"),
    **each(_view(sizes.like("other")), "view_as reshape_as expand_as"),
    **each(_view(_permuted), "permute permute_copy"),
    **each(_view(_transposed("dim0", "dim1")), "transpose swapdims transpose_copy"),
    "swapaxes": _view(_transposed("axis0", "axis1")),
    **each(_view(_reversed), "t numpy_T t_copy"),
    **each(_view(_matrix_transposed), "mT mH adjoint matrix_H"),
    **each(_view(_expanded), "expand broadcast_to expand_copy"),
    **each(_view(_squeezed), "squeeze squeeze_copy"),
    **each(_view(_unsqueezed), "unsqueeze unsqueeze_copy"),
    **each(_view(_selected), "select select_copy"),
    **each(_view(_sliced), "slice slice_copy"),
    **each(_view(_narrowed), "narrow narrow_copy"),
    "flatten": _view(_flattened),
    "ravel": _view(lambda call: (None if call.first.sizes is None else product(call.first.sizes),)),
    "unflatten": _view(_unflattened),
    **each(_view(_moved), "movedim moveaxis"),
    **each(_view(_diagonal), "diagonal diagonal_copy linalg_diagonal"),
    **each(_view(_unfolded), "unfold unfold_copy"),
    **each(_view(sizes.listed("size")), "as_strided as_strided_copy"),
    **{f"atleast_{rank}d": _at_least(rank) for rank in (1, 2, 3)},
    **each(_split(), "split split_with_sizes split_with_sizes_copy chunk unsafe_chunk unsafe_split"),
    **each(_split(), "tensor_split unsafe_split_with_sizes split_copy"),
    **each(_side_by_side(), "hsplit vsplit dsplit"),
    **each(_unbound, "unbind unbind_copy"),
    "view_as_complex": tensor(dtypes.to_complex(first), _to_complex, device=first_device),
    "view_as_real": tensor(dtypes.real(first), _to_real, device=first_device),
    **each(_view(_repeated), "repeat tile"),
    "broadcast_tensors": _broadcast_together,
    **each(_SAME, "flip fliplr flipud roll channel_shuffle native_channel_shuffle fft_fftshift fft_ifftshift"),
    "rot90": _view(sizes.rank_of_first),
    "detach": _detached,
    "pixel_shuffle": _view(sizes.keep_leading(3)),
    "pixel_unshuffle": _view(sizes.keep_leading(3)),
}

PRIM_RULES: Final[Rules] = {"prim::ConstantChunk": _constant_chunk}
