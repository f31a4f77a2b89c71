"""Programs answer the same whether the passes run on them or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.verifier import verify
from rekindle.passes import (
    BatchMM,
    CanonicalizeOps,
    ConstantTensors,
    FoldArithmetic,
    FoldBatchNorm,
    HoistFromIf,
    LoopInvariantMotion,
    LoopUnrolling,
    Pass,
    Peephole,
    RankOfOperands,
    RemoveDropout,
    RemoveMutation,
)
from rekindle.runtime import specializing
from rekindle.runtime.pipelines import OPTIMIZATION
from tests.language.corpus import Program, corpus
from tests.language.gaps import GAPS
from tests.language.running import assert_same_outcome, assert_same_state, outcome
from tests.passes import programs
from tests.passes.answers import INPUTS, disagreements

PASSES: tuple[Pass, ...] = (
    CanonicalizeOps(),
    Peephole(),
    HoistFromIf(),
    LoopInvariantMotion(),
    LoopUnrolling(),
    RemoveMutation(),
    BatchMM(),
    RankOfOperands(),
    FoldBatchNorm(),
    FoldArithmetic(),
    ConstantTensors(),
    RemoveDropout(),
)
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
    monkeypatch.setattr(specializing, "OPTIMIZATION", (*OPTIMIZATION, *passes))
    return found


def _forget_plans(compiled: rekindle.Function | rekindle.ScriptModule) -> None:
    """Have the next call run the passes: what was compiled before in this process has plans already."""
    if isinstance(compiled, rekindle.ScriptModule):
        records = list(compiled.script_type.methods.values())
    else:
        records = [compiled._record]
    for record in records:
        record.executable = None


@pytest.mark.parametrize("program", [pytest.param(program, id=program.name) for program in PROGRAMS])
def test_programs_answer_as_without_passes(program: Program, verification: _Verification) -> None:
    optimized, plain = rekindle.script(program.subject()), rekindle.script(program.subject())
    _forget_plans(optimized)
    for index, inputs in enumerate(program.inputs):
        found = outcome(optimized, inputs)
        with rekindle.optimized_execution(False):
            expected = outcome(plain, inputs)
        assert_same_outcome(found, expected, f"{program.name} (inputs {index + 1})")
    assert verification.runs > 0
    assert_same_state(optimized, plain, program.name)


# --------------------------------------------------------------------------------- what broken passes would get wrong


@pytest.mark.parametrize("program", programs.PROGRAMS)
def test_answers_of(program: Callable[..., object], verification: _Verification) -> None:
    function = rekindle.script(program)
    for inputs in INPUTS:
        where = f"{program.__name__} (length {len(inputs[0])}, n {inputs[1]})"
        found = outcome(function, inputs)
        with rekindle.optimized_execution(False):
            assert_same_outcome(found, outcome(function, inputs), where)
        assert_same_outcome(found, outcome(program, inputs), where)
    assert verification.runs > 0


@pytest.mark.parametrize("program", programs.PROGRAMS)
def test_answers_of_specialised(program: Callable[..., object]) -> None:
    """Passes use what is known of the tensors."""
    assert disagreements(program, (*PASSES, *OPTIMIZATION), specialised=True) == []
