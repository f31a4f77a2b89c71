"""Whichever guard fails, and wherever: programs answer as they do without any."""

from __future__ import annotations

import copy
import random

import pytest

import rekindle
from rekindle.passes import EliminateGuards
from rekindle.runtime.strategies.bailouts import failing_guards
from tests.language.corpus import Program, corpus
from tests.language.gaps import GAPS
from tests.language.running import assert_same_outcome, outcome
from tests.support.profiled import Profiled

PROGRAMS = [program for program in corpus() if program.refusal is None and program.name not in GAPS]
MOST_FAILURES = 12
"""How many guards of a call are made to fail, one after the other; of more, some are drawn."""


@pytest.mark.parametrize("program", [pytest.param(program, id=program.name) for program in PROGRAMS])
def test_every_guard_may_fail(program: Program) -> None:
    """The first call is watched. In each that follows another guard fails though it holds: of all guards, then of
    those that are left when others imply the rest."""
    compiled = rekindle.script(program.subject())
    for guarding in ((), (EliminateGuards(),)):
        for number, inputs in enumerate(program.inputs):
            where = f"{program.name} (inputs {number + 1})"
            with rekindle.optimized_execution(False):
                expected = outcome(copy.deepcopy(compiled), inputs)
            profiled = Profiled(guarding=guarding, patience=1 << 30)
            with failing_guards() as faults, profiled.calls():
                assert_same_outcome(outcome(copy.deepcopy(compiled), inputs), expected, f"{where}, watched")
                faults.begin()
                assert_same_outcome(outcome(copy.deepcopy(compiled), inputs), expected, f"{where}, guarded")
                for guard in _some(faults.queries):
                    faults.begin(guard)
                    found = outcome(copy.deepcopy(compiled), inputs)
                    assert_same_outcome(found, expected, f"{where}, guard {guard} fails")
                    assert profiled.taken > 0, where


def _some(count: int) -> list[int]:
    return sorted(random.Random(0).sample(range(count), min(count, MOST_FAILURES)))
