"""Programs answer the same whether the passes run on them or not."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.verifier import verify
from rekindle.passes import BatchMM, CanonicalizeOps, HoistFromIf, LoopInvariantMotion, LoopUnrolling, Pass, Peephole
from rekindle.runtime import executor
from rekindle.runtime.pipelines import OPTIMIZATION
from tests.language.corpus import Program, corpus
from tests.language.gaps import GAPS
from tests.language.running import assert_same_outcome, assert_same_state, outcome

PASSES: tuple[Pass, ...] = (
    BatchMM(),
    CanonicalizeOps(),
    Peephole(),
    HoistFromIf(),
    LoopInvariantMotion(),
    LoopUnrolling(),
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
    monkeypatch.setattr(executor, "OPTIMIZATION", (*OPTIMIZATION, *passes))
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


def grows_in_a_loop(x: Tensor, n: int) -> int:
    found: list[int] = []
    total = 0
    for i in range(n):
        total += len(found) * 10 + x.dim() + i
        found.append(total)
        x.unsqueeze_(0)
    return total


def ends_early(x: Tensor, n: int) -> Tensor:
    for i in range(5):
        x = x * 2 + i
        if i == n:
            break
    for j in range(3):
        for k in range(2):
            x = x + j * k
    return x


def never_comes_to_it(x: Tensor, n: int) -> int:
    total = n
    for _ in range(n - 3):
        total += n * x.dim() + n // (n - n)
    return total


def branches_begin_alike(x: Tensor, n: int) -> Tensor:
    if n > 2:
        y = x.mul_(2) + 1
        z = y * n
    else:
        y = x.mul_(2) + 1
        z = y - n
    if n > 2:
        return z + x.neg()
    return z + y.neg()


def answers_minus_zero(x: Tensor, n: int) -> tuple[Tensor, float, int, bool]:
    zero = -0.0 * n
    number = float("nan") * n
    return x + 0, zero + 0, (n * 1 + 0) // 1, not (number < 1.0) and not (number == 1.0)


def wants_another_number_of_chunks(x: Tensor, n: int) -> Tensor:
    a, b, c = x.chunk(3, 0)
    d, e = x.chunk(3, n - n)
    return a + b + c + d + e


def multiplies_matrices(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Sums of products that broadcast, and products that share a factor on either side."""
    weight = torch.outer(x, x + 1)
    rows = torch.stack([x, x * 2, x - 1])
    first = x.unsqueeze(0) if n > 2 else rows
    total = first.mm(weight) + rows.mm(weight + 1) + (rows + n).mm(weight) + (rows - 1).mm(weight * 2)
    shared = weight * n
    steps = (rows + 1).mm(shared).relu() + (rows + 2).mm(shared).relu()
    steps = steps - (rows * 3).mm(shared).relu() * (rows - steps).mm(shared).relu() + (first * 5).mm(shared).relu()
    left = torch.stack([x.flip(0), x])
    columns = rows.t()
    views = left.mm(columns).view(-1) + left.mm(columns * 2).view(-1) * left.mm(columns + 1).view(-1)
    views = views - left.mm(columns - n).view(-1)
    return total + steps, views


PROGRAMS_OF_ITS_OWN = [
    multiplies_matrices,
    grows_in_a_loop,
    ends_early,
    never_comes_to_it,
    branches_begin_alike,
    answers_minus_zero,
    wants_another_number_of_chunks,
]


@pytest.mark.parametrize("program", PROGRAMS_OF_ITS_OWN)
def test_answers_of(program: Callable[..., object], verification: _Verification) -> None:
    function = rekindle.script(program)
    for length, n in itertools.product((1, 3, 4, 6), (-1, 1, 2, 3, 4)):
        inputs = (torch.linspace(-1, 1, length), n)
        where = f"{program.__name__} (length {length}, n {n})"
        found = outcome(function, inputs)
        with rekindle.optimized_execution(False):
            assert_same_outcome(found, outcome(function, inputs), where)
        assert_same_outcome(found, outcome(program, inputs), where)
    assert verification.runs > 0
