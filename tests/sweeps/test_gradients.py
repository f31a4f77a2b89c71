"""A fixed sample of the sweep over gradients; all of it: ``make sweep-gradients``."""

from __future__ import annotations

import random

import pytest

from tests.sweeps import report
from tests.sweeps.gradients import STEM, _committed, asserted, database, sweep_entry
from tests.versions.differences import RELEASE

KNOWN = report.known_failures(report.known_failures_path(STEM))


def sampled() -> list[str]:
    """Entries that count, drawn with a fixed seed."""
    names = sorted(name for name, result in _committed().items() if result.cases)
    return random.Random(20260).sample(names, 24)


@pytest.mark.parametrize("name", sampled())
def test_entry(name: str) -> None:
    result = sweep_entry(name)
    assert result.passed != (name in KNOWN), f"{result.failures} (known: {KNOWN.get(name)})"
    assert result.by_autograd == _committed()[name].by_autograd


def test_known_failures_are_those_of_the_committed_result() -> None:
    assert set(KNOWN) == {name for name, result in _committed().items() if result.cases and not result.passed}


@pytest.mark.skipif(RELEASE != (2, 13), reason="the result is that of PyTorch 2.13, other releases have other entries")
def test_every_entry_is_in_the_committed_result() -> None:
    assert set(_committed()) == set(database())


def test_committed_result_meets_the_aim() -> None:
    summary = report.committed_summary(STEM)
    assert summary["denominator"] >= 450
    assert summary["percent"] >= 98
    assert summary["percent_by_formulas"] >= 60
    assert set(asserted()) <= set(database())


def test_all_that_pytorch_asserts_goes_through_formulas() -> None:
    """PyTorch's table says of 89 entries that a differentiable graph holds them."""
    assert len(asserted()) == 89
    assert [name for name in asserted() if not _committed()[name].by_formulas] == []
