"""Programs answer the same whether the passes run on them or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from rekindle.passes import (
    BatchMM,
    CanonicalizeOps,
    DecomposeOps,
    FillElements,
    FoldArithmetic,
    FoldBatchNorm,
    FoldConstantTensors,
    ForwardRankQueries,
    HoistFromIf,
    LayOutFactors,
    LoopInvariantMotion,
    LoopPeeling,
    LoopUnrolling,
    PackWeights,
    Parallelize,
    PartialEvaluation,
    Pass,
    Peephole,
    RemoveDropout,
    RemoveMutation,
    SelectAttention,
)
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.runtime.strategies import simple_strategy
from tests.language.corpus import Program, corpus
from tests.language.gaps import GAPS
from tests.language.running import assert_same_outcome, assert_same_state, outcome
from tests.passes import programs
from tests.passes.answers import INPUTS, disagreements

PASSES: tuple[Pass, ...] = (
    CanonicalizeOps(),
    PartialEvaluation(),
    Peephole(),
    HoistFromIf(),
    LoopInvariantMotion(),
    LoopPeeling(),
    LoopUnrolling(),
    RemoveMutation(),
    DecomposeOps(),
    BatchMM(),
    ForwardRankQueries(),
    FoldBatchNorm(),
    FoldArithmetic(),
    FoldConstantTensors(),
    RemoveDropout(),
    Parallelize(least=1),
    PackWeights(),
    SelectAttention(),
    LayOutFactors(),
    FillElements(),
)
"""Passes that must be right for every input, whether calls run them or not."""

PROGRAMS = [program for program in corpus() if program.refusal is None and program.name not in GAPS]


@dataclass(slots=True)
class _Watched:
    """Runs a pass, and checks what every pass promises: a valid graph, a true answer to whether anything changed, and
    that it leaves nothing for itself to do."""

    inner: Pass
    runs: list[str]

    @property
    def name(self) -> str:
        return self.inner.name

    def run(self, graph: Graph) -> bool:
        before = print_graph(graph, ranges=False)
        changed = self.inner.run(graph)
        verify(graph)
        after = print_graph(graph, ranges=False)
        assert changed == (before != after), f"{self.name} says {changed} of\n{before}\n{after}"
        if self.name not in LEAVES_SOME:
            again = self.inner.run(graph)
            assert not again, f"{self.name} changes it again:\n{before}\n{after}\n{print_graph(graph, ranges=False)}"
        self.runs.append(self.name)
        return changed


LEAVES_SOME: dict[str, str] = {}
"""Passes that may find more to do when they run again, and why."""


@pytest.fixture
def verification(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let calls run :data:`PASSES` too, between two rounds of the usual ones, and watch each; the names of those that
    ran."""
    runs: list[str] = []
    passes = [_Watched(each, runs) for each in (*OPTIMIZATION, *PASSES, *OPTIMIZATION)]
    monkeypatch.setattr(simple_strategy, "OPTIMIZATION", passes)
    return runs


def _forget_plans(compiled: rekindle.Function | rekindle.ScriptModule) -> None:
    """Have the next call run the passes: what was compiled before in this process has plans already."""
    if isinstance(compiled, rekindle.ScriptModule):
        records = list(compiled.script_type.methods.values())
    else:
        records = [compiled._record]
    for record in records:
        record.executable = None


@pytest.mark.parametrize("program", [pytest.param(program, id=program.name) for program in PROGRAMS])
def test_programs_answer_as_without_passes(program: Program, verification: list[str]) -> None:
    optimized, plain = rekindle.script(program.subject()), rekindle.script(program.subject())
    _forget_plans(optimized)
    for index, inputs in enumerate(program.inputs):
        found = outcome(optimized, inputs)
        with rekindle.optimized_execution(False):
            expected = outcome(plain, inputs)
        assert_same_outcome(found, expected, f"{program.name} (inputs {index + 1})")
    assert len(verification) >= len(PASSES)
    assert_same_state(optimized, plain, program.name)


# --------------------------------------------------------------------------------- what broken passes would get wrong


ANOTHER_ERROR_FIRST = {
    "wants_another_number_of_chunks": "a kernel runs where its last operator was: the other error comes first"
}
"""Programs in which two operators raise, and with kernels it is not the first of them that does."""


def test_programs_in_which_another_error_comes_first() -> None:
    (name,) = ANOTHER_ERROR_FIRST
    function = rekindle.script(getattr(programs, name))
    found = outcome(function, INPUTS[0])
    with rekindle.optimized_execution(False):
        expected = outcome(function, INPUTS[0])
    assert type(found.error) is type(expected.error) is ValueError
    assert str(found.error) != str(expected.error)


@pytest.mark.parametrize(
    "program", [program for program in programs.PROGRAMS if program.__name__ not in ANOTHER_ERROR_FIRST]
)
def test_answers_of(program: Callable[..., object], verification: list[str]) -> None:
    function = rekindle.script(program)
    for inputs in INPUTS:
        where = f"{program.__name__} (length {len(inputs[0])}, n {inputs[1]})"
        found = outcome(function, inputs)
        with rekindle.optimized_execution(False):
            assert_same_outcome(found, outcome(function, inputs), where)
        assert_same_outcome(found, outcome(program, inputs), where)
    assert len(verification) >= len(PASSES)


@pytest.mark.parametrize("program", programs.PROGRAMS)
def test_answers_of_specialized(program: Callable[..., object]) -> None:
    """Passes use what is known of the tensors."""
    assert disagreements(program, (*PASSES, *OPTIMIZATION), specialized=True) == []
