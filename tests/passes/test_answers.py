"""Programs answer the same whether the passes run on them or not."""

from __future__ import annotations

import pytest

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.verifier import verify
from rekindle.passes import CanonicalizeOps, HoistFromIf, LoopInvariantMotion, LoopUnrolling, Pass, Peephole
from rekindle.runtime import executor
from rekindle.runtime.pipelines import OPTIMIZATION
from tests.language.corpus import Program, corpus
from tests.language.gaps import GAPS
from tests.language.running import assert_same_outcome, assert_same_state, outcome

PASSES: tuple[Pass, ...] = (CanonicalizeOps(), Peephole(), HoistFromIf(), LoopInvariantMotion(), LoopUnrolling())
"""Passes that must be right for every input, whether calls run them or not."""

PROGRAMS = [program for program in corpus() if program.refusal is None and program.name not in GAPS]


class _Verification:
    """A pass that verifies, and counts how often it did."""

    name = "verification"

    def __init__(self) -> None:
        self.runs = 0

    def run(self, graph: Graph) -> bool:
        verify(graph)
        self.runs += 1
        return False


@pytest.fixture
def verification(monkeypatch: pytest.MonkeyPatch) -> _Verification:
    """Let calls run :data:`PASSES` too, between two rounds of the usual ones, and verify the graph after each."""
    found = _Verification()
    passes = [step for each in (*PASSES, *OPTIMIZATION) for step in (each, found)]
    monkeypatch.setattr(executor, "OPTIMIZATION", (*OPTIMIZATION, *passes))
    return found


@pytest.mark.parametrize("program", [pytest.param(program, id=program.name) for program in PROGRAMS])
def test_programs_answer_as_without_passes(program: Program, verification: _Verification) -> None:
    optimized, plain = rekindle.script(program.subject()), rekindle.script(program.subject())
    for index, inputs in enumerate(program.inputs):
        found = outcome(optimized, inputs)
        with rekindle.optimized_execution(False):
            expected = outcome(plain, inputs)
        assert_same_outcome(found, expected, f"{program.name} (inputs {index + 1})")
    assert verification.runs > 0
    assert_same_state(optimized, plain, program.name)
