"""A fixed sample of the sweep over the operator database. The whole of it: ``make sweep-ops``."""

from __future__ import annotations

import random

import pytest

import rekindle
from tests.sweeps import report
from tests.sweeps.cases import cases_of, digest
from tests.sweeps.op_db import KNOWN_FAILURES, database, load_record, sweep_entry

SAMPLE = 60
RECORD = load_record()


def sampled_names() -> list[str]:
    """Entries of which torch.jit.script takes a case, drawn with a fixed seed."""
    names = sorted(name for name, entry in RECORD.items() if entry["taken"])
    return random.Random(20260).sample(names, SAMPLE)


@pytest.mark.parametrize("name", sampled_names())
def test_entry(name: str) -> None:
    result = sweep_entry(name, rekindle.script, RECORD)
    problems = report.check_against_known({name: result}, report.known_failures(KNOWN_FAILURES))
    assert not problems, report.causes({name: result}) or "\n".join(problems)


def test_known_failures_name_entries() -> None:
    assert set(report.known_failures(KNOWN_FAILURES)) <= set(database())


def test_record_is_of_these_texts() -> None:
    """Where PyTorch's samples change, what torch.jit.script takes of them must be recorded anew (--record)."""
    name = sampled_names()[0]
    assert RECORD[name]["texts"] == digest(list(cases_of(database()[name])))


def test_committed_result_meets_the_aim() -> None:
    summary = report.committed_summary("op_db")
    assert summary["denominator"] >= 600
    assert summary["percent"] >= 97
