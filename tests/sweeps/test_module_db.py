"""A fixed sample of the sweep over the module database. The whole of it: ``make sweep-modules``."""

from __future__ import annotations

import random

import pytest

import rekindle
from tests.sweeps import report
from tests.sweeps.module_db import KNOWN_FAILURES, database, load_record, sweep_entry

SAMPLE = 24
RECORD = load_record()


def sampled_names() -> list[str]:
    """Entries of which torch.jit.script takes a case, drawn with a fixed seed."""
    return random.Random(20260).sample(sorted(name for name, taken in RECORD.items() if taken), SAMPLE)


@pytest.mark.parametrize("name", sampled_names())
def test_entry(name: str) -> None:
    result = sweep_entry(name, rekindle.script, RECORD)
    problems = report.check_against_known({name: result}, report.known_failures(KNOWN_FAILURES))
    assert not problems, report.causes({name: result}) or "\n".join(problems)


def test_known_failures_name_entries() -> None:
    assert set(report.known_failures(KNOWN_FAILURES)) <= set(database())


def test_committed_result_meets_the_aim() -> None:
    summary = report.committed_summary("module_db")
    assert summary["denominator"] >= 95
    assert summary["percent"] >= 95
