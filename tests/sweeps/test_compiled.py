"""A fixed sample of the sweep of the operator database through ``torch.compile``; all: ``make sweep-compiled``."""

from __future__ import annotations

import random

import pytest

from tests.sweeps import report
from tests.sweeps.compiled import STEM, committed, sweep_entry

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's own, of samples that it warns of


def sampled() -> list[str]:
    """Entries that passed, drawn with a fixed seed."""
    names = sorted(name for name, result in committed().items() if result.passed)
    return random.Random(20263).sample(names, 6)


@pytest.mark.parametrize("name", sampled())
def test_entry(name: str) -> None:
    assert sweep_entry(name).failures == {}


def test_entry_ahead_of_time() -> None:
    assert sweep_entry("linalg.inv", ahead_of_time=True).failures == {}


@pytest.mark.parametrize("stem", [STEM, f"{STEM}_ahead_of_time"])
def test_committed_results_meet_the_aim(stem: str) -> None:
    summary = report.committed_summary(stem)
    assert summary["denominator"] >= 630
    assert summary["percent"] >= 99.5
