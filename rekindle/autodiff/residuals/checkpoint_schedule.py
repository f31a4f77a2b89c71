"""Run-time schedule of loop checkpointing under a memory limit: the segment length, which segments are saved, and how
the others are recomputed.

A loop of :math:`n` iterations runs in segments of :math:`s` iterations. The carried values are saved at the start of
each segment. All residuals are saved for as many segments as fit into the limit. The backward recomputes the others,
one at a time. With :math:`k` bytes of residuals per iteration and :math:`c` bytes of carried values, a recomputed
segment takes :math:`sk` bytes, and the starts of all segments take :math:`cn/s`. Their sum is minimal where :math:`s`
is the square root of :math:`nc/k`.
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
    """Return the number of iterations of a segment of a loop with ``trip_count`` iterations, for a limit of memory of
    ``limit`` bytes. An iteration saves ``saved`` bytes, and the start of a segment ``carried`` bytes.

    The result is the trip count if the residuals of all iterations fit; otherwise the one that takes the least memory,
    which may exceed the limit. If the trip count is unknown, a quarter of ``limit`` is for a recomputed segment, a
    quarter for the starts of segments, and half for saved iterations.
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
    """Return whether the residuals of segment number ``segment`` can be saved within ``limit`` bytes; otherwise
    backward recomputes them. A segment has ``at_once`` iterations; for the others see :func:`segment_length`."""
    size = at_once * saved
    if trip_count >= _UNKNOWN:
        return (segment + 1) * size <= limit // 2
    if trip_count * saved <= limit:
        return True
    segments = -(-trip_count // at_once)
    return (segment + 2) * size + segments * carried <= limit


@implements("autodiff::storage_bytes(...) -> int")
def storage_bytes(*values: Any) -> int:
    """Return the bytes of storage of all tensors in ``values``, which may be containers. A storage that several tensors
    share is counted once."""
    sizes: dict[int, int] = {}
    for tensor in _tensors(values):
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


@implements("autodiff::bytes_per_iteration(...) -> int")
def bytes_per_iteration(*saved: list[Any]) -> int:
    """Return the bytes that one more iteration saves. ``saved`` is what the first two iterations saved, or the first
    alone. Tensors that both have are counted once."""
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
    """Return the states of PyTorch's random number generators: of the CPU, and of GPUs that are in use."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return states


@implements("autodiff::set_generator_state(Tensor[] states) -> ()", side_effects=True, nondeterministic=True)
def set_generator_state(states: Sequence[Tensor]) -> None:
    """Restore the states of the generators."""
    torch.set_rng_state(states[0])
    for index, state in enumerate(states[1:]):
        torch.cuda.set_rng_state(state, index)
