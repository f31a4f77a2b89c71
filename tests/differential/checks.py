"""A program in two ways of executing it, through one sequence of calls."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain, zip_longest
from typing import Any

import torch

from tests.differential.arguments import Kind, kinds_of
from tests.differential.calls import assert_same_effects, call
from tests.differential.subjects import Subject
from tests.differential.ways import REFERENCE, Way, forget_plans
from tests.support.equality import assert_same


def sequence(subject: Subject, most: int | None, seed: str) -> list[Kind]:
    """The calls to make: each sample three times at first, then what was made of it in any order, ``most`` of each
    sample, with the sample itself in between up to its tenth call; and the others a second time, in another order."""
    chance = random.Random(seed)
    kinds = [
        [kind for kind in kinds_of(*sample) if not (subject.without and kind.name.startswith(subject.without))]
        for sample in subject.samples
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


def check(subject: Subject, way: Way, kinds: Sequence[Kind]) -> int:
    """Call ``subject`` in ``way`` and in the reference, and compare; how many calls were compared."""
    compiled, reference = subject.compiled(), subject.compiled()
    forget_plans(compiled)
    with way.entered(), _filled_memory() if subject.filled else nullcontext():
        for number, kind in enumerate(kinds, 1):
            if kind.name == "meta" and isinstance(compiled, torch.nn.Module):
                continue  # what operators do with tensors of two devices is not said
            found = call(compiled, kind.make())
            with REFERENCE.entered():
                expected = call(reference, kind.make())
            if kind.name.startswith("not_a_number"):
                # The gradients of what is computed once are added up before they meet infinity, or after.
                found.gradients = expected.gradients = None
            if kind.name == "autocast" and found.gradients is not None and expected.gradients is not None:
                # What is computed once instead of twice has its gradients added up before they are rounded to bfloat16.
                torch.testing.assert_close(found.gradients, expected.gradients, rtol=1.6e-2, atol=1e-5)
                found.gradients = expected.gradients = None
            assert_same_effects(found, expected, f"call {number} of {subject.name} ({kind.name}), {way.name},")
    if isinstance(compiled, torch.nn.Module):
        assert_same(_state(compiled), _state(reference), f"state of {subject.name}")
    return len(kinds)


@contextmanager
def _filled_memory() -> Iterator[None]:
    """New memory holds NaN, or the largest integer, until it is written to."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def _state(module: torch.nn.Module) -> dict[str, Any]:
    state = module.state_dict()
    return {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in state.items()}
