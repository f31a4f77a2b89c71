"""What is decided while a program runs that keeps no more of its loops than it may: how many turns run at once, which
of them are kept, and how those that are not run again.

A loop of :math:`n` turns runs in segments of :math:`s` turns. What it carries is kept at the start of each segment, and
all that the way back reads of the turns in as many segments as there is room for. The others run again on the way back,
one at a time. With :math:`k` bytes a turn and :math:`c` bytes that are carried, a segment that runs again takes
:math:`sk` bytes, the starts of all take :math:`cn/s`, and both together least where :math:`s` is the root of
:math:`nc/k`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.ops.registration.declare import implements

_UNKNOWN: Final = 2**62
"""A loop of such a trip count ends by its condition."""


@implements("autodiff::segment_length(int limit, int trip_count, int saved, int carried) -> int")
def segment_length(limit: int, trip_count: int, saved: int, carried: int) -> int:
    """Return the number of iterations of a segment, of ``trip_count``, if ``limit`` bytes may be taken. An iteration
    saves ``saved`` bytes, the start of a segment ``carried``.

    It is all, if there is room. If the trip count is unknown, a quarter of the room is for a segment that runs again,
    one for starts, and one half for iterations that are saved.
    """
    if trip_count < _UNKNOWN and trip_count * saved <= limit:
        return max(1, trip_count)
    if saved == 0:
        return max(1, trip_count)
    if trip_count >= _UNKNOWN:
        return max(1, limit // (4 * saved))
    return max(1, min(trip_count, math.isqrt(trip_count * carried // saved)))


@implements("autodiff::is_kept(int limit, int trip_count, int saved, int carried, int at_once, int segment) -> bool")
def saves_segment(limit: int, trip_count: int, saved: int, carried: int, at_once: int, segment: int) -> bool:
    """Return whether there is room to keep this segment, of ``at_once`` iterations; see :func:`segment_length`."""
    size = at_once * saved
    if trip_count >= _UNKNOWN:
        return (segment + 1) * size <= limit // 2
    if trip_count * saved <= limit:
        return True
    segments = -(-trip_count // at_once)
    return (segment + 2) * size + segments * carried <= limit


@implements("autodiff::storage_bytes(...) -> int")
def storage_bytes(*values: Any) -> int:
    """Return the bytes of memory behind all tensors in ``values``, which may be containers."""
    sizes: dict[int, int] = {}
    for tensor in _tensors(values):
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


@implements("autodiff::bytes_per_iteration(...) -> int")
def bytes_per_iteration(*saved: list[Any]) -> int:
    """Return the bytes that one more iteration saves, if ``saved`` is what the first two saved, or the first alone:
    what one takes over from the one before is there already."""
    first = storage_bytes([items[:1] for items in saved])
    both = storage_bytes(saved)
    return both - first if any(len(items) > 1 for items in saved) else first


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


@implements("autodiff::generator_state() -> Tensor[]", side_effects=True, nondeterministic=True)
def generator_state() -> list[Tensor]:
    """Return where PyTorch's generators of random numbers stand: the CPU's, and those of GPUs if there are any in
    use."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return states


@implements("autodiff::set_generator_state(Tensor[] states) -> ()", side_effects=True, nondeterministic=True)
def set_generator_state(states: Sequence[Tensor]) -> None:
    """Have the generators go on from there."""
    torch.set_rng_state(states[0])
    for index, state in enumerate(states[1:]):
        torch.cuda.set_rng_state(state, index)
