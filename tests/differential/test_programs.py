"""Both corpora, the overview's programs and whole models, in every way of executing them."""

from __future__ import annotations

import random

import pytest

from tests.differential.checks import check, sequence
from tests.differential.subjects import GROUPS, names, of
from tests.differential.ways import WAYS, Way

KINDS = 8
SHARES = {"programs": 10, "modules": 20, "operators": 30}
"""How many kinds of arguments for each sample, and one subject in so many; the rest: ``make sweep-execution``."""


def sampled(group: str) -> list[str]:
    """Names of subjects, drawn with a fixed seed."""
    found = names(group)
    return random.Random(20260).sample(found, len(found) // SHARES[group])


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", [name for group in GROUPS for name in sampled(group)])
def test_answers_are_those_without_optimisation(name: str, way: Way) -> None:
    for subject in of(name):
        calls = sequence(subject.samples, KINDS, random.Random(subject.name))
        assert check(subject, way, calls) >= 10 * len(subject.samples)
