"""A fixed sample of the sweep over batches; all of it: ``make sweep-vmap``."""

from __future__ import annotations

import random

import pytest

from tests.sweeps import report
from tests.sweeps.vmap import STEM, committed, database, sweep_entry
from tests.versions.differences import RELEASE

KNOWN = report.known_failures(report.known_failures_path(STEM))


def sampled() -> list[str]:
    """Entries that count, drawn with a fixed seed."""
    names = sorted(name for name, result in committed().items() if result.counts)
    return random.Random(20261).sample(names, 16)


@pytest.mark.parametrize("name", sampled())
def test_entry(name: str) -> None:
    result = sweep_entry(name)
    assert result.passed != (name in KNOWN), f"{result.failures} (known: {KNOWN.get(name)})"
    assert result.looped == committed()[name].looped


def test_known_failures_are_those_of_the_committed_result() -> None:
    assert set(KNOWN) == {name for name, result in committed().items() if result.counts and not result.passed}


@pytest.mark.skipif(RELEASE != (2, 13), reason="the result is that of PyTorch 2.13, other releases have other entries")
def test_every_entry_is_in_the_committed_result() -> None:
    assert set(committed()) == set(database())


def test_committed_result_meets_the_aim() -> None:
    summary = report.committed_summary(STEM)
    assert summary["denominator"] >= 550
    assert summary["percent"] >= 90
    assert summary["percent_by_rules"] >= 80
