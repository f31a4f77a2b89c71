"""A fixed sample of the sweep of the operator database through ``torch.compile``; all: ``make sweep-compiled``."""

from __future__ import annotations

import random

import pytest

from tests.sweeps import report
from tests.sweeps.compiled import STEM, committed, sweep_entry

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's own, of samples that it warns of


def sampled() -> list[str]:
    """Entries that passed, drawn with a fixed seed."""
    names = sorted(name for name, result in committed(f"{STEM}_ahead_of_time").items() if result.passed)
    return random.Random(20263).sample(names, 6)


@pytest.mark.parametrize("name", sampled())
def test_entry(name: str) -> None:
    assert sweep_entry(name).failures == {}


def test_entry_ahead_of_time() -> None:
    assert sweep_entry("linalg.inv", ahead_of_time=True).failures == {}


def test_committed_result_meets_the_aim() -> None:
    summary = report.committed_summary(f"{STEM}_ahead_of_time")
    assert summary["denominator"] >= 630
    assert summary["percent"] >= 99.5
