"""A fixed sample of the sweep over the module database. The whole: ``make sweep-modules``, ``make sweep-traces``."""

from __future__ import annotations

import random

import pytest

from tests.sweeps import report
from tests.sweeps.module_db import STEM, database, load_record, sweep_entry, taken_names
from tests.sweeps.ways import SCRIPT, TRACE, Way

SAMPLES = {SCRIPT.suffix: (20260, 24), TRACE.suffix: (20264, 10)}
"""Seeds and how many."""
RECORDS = {way.suffix: load_record(way) for way in (SCRIPT, TRACE)}


def sampled(way: Way) -> list[str]:
    """Entries of which torch.jit takes a case, drawn with a fixed seed."""
    seed, count = SAMPLES[way.suffix]
    return random.Random(seed).sample(taken_names(way), count)


def check_entry(name: str, way: Way) -> None:
    result = sweep_entry(name, way, RECORDS[way.suffix])
    problems = report.check_against_known({name: result}, report.known_failures(way.known_failures(STEM)))
    assert not problems, report.causes({name: result}) or "\n".join(problems)


@pytest.mark.parametrize("name", sampled(SCRIPT))
def test_entry(name: str) -> None:
    check_entry(name, SCRIPT)


@pytest.mark.parametrize("name", sampled(TRACE))
def test_traced_entry(name: str) -> None:
    check_entry(name, TRACE)


@pytest.mark.parametrize("way", [SCRIPT, TRACE], ids=["script", "trace"])
def test_known_failures_name_entries(way: Way) -> None:
    assert set(report.known_failures(way.known_failures(STEM))) <= set(database())


@pytest.mark.parametrize(("way", "percent"), [(SCRIPT, 95), (TRACE, 97)], ids=["script", "trace"])
def test_committed_result_meets_the_aim(way: Way, percent: float) -> None:
    summary = report.committed_summary(STEM + way.suffix)
    assert summary["denominator"] >= 95
    assert summary["percent"] >= percent
