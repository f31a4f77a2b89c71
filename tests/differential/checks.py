"""A program in two ways of executing it, through one sequence of calls."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any

import torch

from tests.differential.arguments import Kind, kinds_of
from tests.differential.calls import Effects, assert_same_effects, call
from tests.differential.subjects import Subject
from tests.differential.ways import REFERENCE, Way, forget_plans
from tests.support.equality import assert_same


def sequence(subject: Subject, most: int | None, seed: str) -> list[Kind]:
    """The calls to make: each sample three times at first, then what was made of it in any order, ``most`` of each
    sample, with the sample itself in between up to its tenth call; and the others a second time, in another order."""
    chance = random.Random(seed)
    kinds = [
        [kind for kind in kinds_of(*sample) if not kind.name.startswith(subject.without)] for sample in subject.samples
    ]
    firsts = [found[0] for found in kinds]
    others = list(chain.from_iterable(_chosen(found[1:], most, chance) for found in kinds))
    again = list(others)
    chance.shuffle(others)
    chance.shuffle(again)
    between = [first for first in firsts for _ in range(7)]
    chance.shuffle(between)
    mixed = [kind for pair in zip_longest([*others, *again], between) for kind in pair if kind is not None]
    return [first for first in firsts for _ in range(3)] + mixed


def _chosen(kinds: Sequence[Kind], most: int | None, chance: random.Random) -> Sequence[Kind]:
    return kinds if most is None or len(kinds) <= most else chance.sample(kinds, most)


@dataclass(slots=True)
class Expected:
    """What comes of a sequence of calls in the reference."""

    kinds: Sequence[Kind]
    effects: list[Effects]
    """Those of each call."""
    state: dict[str, Any]
    """Parameters and buffers after the last of them."""


def expect(subject: Subject, kinds: Sequence[Kind]) -> Expected:
    """Call ``subject`` in the reference, once for all ways that are compared with it."""
    reference = subject.compiled()
    kinds = answered(reference, kinds)
    with REFERENCE.entered(), _filled_memory() if subject.filled else nullcontext():
        effects = [call(reference, kind.make()) for kind in kinds]
    for each in effects:
        for error in (each.error, each.gradient_error):
            if error is not None:
                error.__traceback__ = None  # it holds all that was in the frames
    return Expected(kinds, effects, _state(reference))


def answered(compiled: Any, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Return the kinds of arguments for which PyTorch has an answer: what operators do with tensors of two devices is
    not said."""
    return [kind for kind in kinds if kind.name != "meta" or not isinstance(compiled, torch.nn.Module)]


def check(subject: Subject, way: Way, expected: Expected) -> int:
    """Call ``subject`` in ``way`` and compare; how many calls were compared."""
    compiled = subject.compiled()
    forget_plans(compiled)
    with way.entered(), _filled_memory() if subject.filled else nullcontext():
        for number, (kind, wanted) in enumerate(zip(expected.kinds, expected.effects, strict=True), 1):
            found = call(compiled, kind.make())
            if kind.name.startswith("not_a_number"):
                # The gradients of what is computed once are added up before they meet infinity, or after.
                found.gradients = None
                wanted = replace(wanted, gradients=None)
            if kind.name == "autocast" and found.gradients is not None and wanted.gradients is not None:
                # What is computed once instead of twice has its gradients added up before they are rounded to bfloat16.
                _assert_close_in_bfloat16(found.gradients, wanted.gradients)
                found.gradients = None
                wanted = replace(wanted, gradients=None)
            assert_same_effects(found, wanted, f"call {number} of {subject.name} ({kind.name}), {way.name},")
    assert_same(_state(compiled), expected.state, f"state of {subject.name}")
    return len(expected.kinds)


def _assert_close_in_bfloat16(actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """Sums whose terms were rounded: where these cancel each other, what they were rounded by is left."""
    for ours, theirs in zip(actual, expected, strict=True):
        if isinstance(theirs, torch.Tensor) and theirs.numel():
            largest = theirs.detach().abs().nan_to_num(posinf=0.0).max().item()
            atol = max(1e-5, largest * torch.finfo(torch.bfloat16).eps)
            torch.testing.assert_close(ours, theirs, rtol=1.6e-2, atol=atol, equal_nan=True)
        else:
            assert_same(ours, theirs)


@contextmanager
def _filled_memory() -> Iterator[None]:
    """New memory holds NaN, or the largest integer, until it is written to."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def _state(compiled: Any) -> dict[str, Any]:
    state = compiled.state_dict() if isinstance(compiled, torch.nn.Module) else {}
    return {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in state.items()}
