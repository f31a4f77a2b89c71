"""A fixed sample of the sweep over the operator database; all of it: ``make sweep-ops``, ``make sweep-traces``."""

from __future__ import annotations

import random

import pytest

from tests.sweeps import report
from tests.sweeps.cases import cases_of, digest
from tests.sweeps.op_db import STEM, database, load_record, sweep_entry
from tests.sweeps.ways import EVERY, SCRIPT, TRACE, Way

SAMPLES = {SCRIPT.suffix: 60, TRACE.suffix: 24}
RECORDS = {way.suffix: load_record(way) for way in (SCRIPT, TRACE)} | {EVERY.suffix: {}}


def sampled(way: Way) -> list[str]:
    """Entries of which torch.jit takes a case, drawn with a fixed seed."""
    names = sorted(name for name, entry in RECORDS[way.suffix].items() if entry["taken"])
    return random.Random(20260).sample(names, SAMPLES[way.suffix])


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


@pytest.mark.parametrize("way", [SCRIPT, TRACE], ids=["script", "trace"])
def test_record_is_of_these_texts(way: Way) -> None:
    """Where PyTorch's samples change, what torch.jit takes of them must be recorded again (--record)."""
    name = sampled(way)[0]
    assert RECORDS[way.suffix][name]["texts"] == digest(list(cases_of(database()[name])))


@pytest.mark.parametrize(("way", "entries", "percent"), [(SCRIPT, 600, 97), (TRACE, 600, 98)], ids=["script", "trace"])
def test_committed_result_meets_the_aim(way: Way, entries: int, percent: float) -> None:
    summary = report.committed_summary(STEM + way.suffix)
    assert summary["denominator"] >= entries
    assert summary["percent"] >= percent


REST = sorted(set(report.committed_entries(STEM + EVERY.suffix)) - set(report.committed_entries(STEM)))
"""Entries of which torch.jit takes no case."""


@pytest.mark.parametrize("name", random.Random(20260).sample(REST, 12))
def test_entry_that_torch_jit_refuses(name: str) -> None:
    check_entry(name, EVERY)


def test_all_that_eager_runs() -> None:
    """Of all entries of which a program can say a case that eager runs, whatever torch.jit does with them."""
    summary = report.committed_summary(STEM + EVERY.suffix)
    assert summary["denominator"] >= 679
    assert summary["percent"] >= 99
    assert set(report.known_failures(EVERY.known_failures(STEM))) <= set(database())
