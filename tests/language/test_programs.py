"""Every program of the corpus of the language: what it does here, in eager Python, and in torch.jit."""

from __future__ import annotations

import io

import pytest

import rekindle
from rekindle.errors import ProgramErrors, RekindleError, SaveError
from tests.language.corpus import Program, corpus
from tests.language.gaps import GAPS, OTHERWISE_IN_TORCH, RESULT_TYPES, RUNS_HERE_ONLY
from tests.language.running import (
    answers_alike,
    assert_same_outcome,
    assert_same_state,
    outcome,
    result_type,
    torch_loaded,
    torch_result_type,
    torch_state,
)

PROGRAMS = corpus()
COMPILED = [program for program in PROGRAMS if program.refusal is None]
REFUSED = [program for program in PROGRAMS if program.refusal is not None]


def _named(programs: list[Program]) -> list[object]:
    return [pytest.param(program, id=program.name) for program in programs]


@pytest.mark.parametrize("program", _named(COMPILED))
def test_does_what_eager_does(program: Program) -> None:
    """Three calls on each of two sets of inputs, the second of them without optimization."""
    assert len(program.inputs) == 2
    if program.name in GAPS:
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is that does not work yet
            _compare_with_eager(program)
    else:
        _compare_with_eager(program)


def _compare_with_eager(program: Program) -> None:
    compiled, eager = rekindle.script(program.subject()), program.subject()
    for index, inputs in enumerate(program.inputs):
        for call in range(3):
            where = f"{program.name} (inputs {index + 1}, call {call + 1})"
            with rekindle.optimized_execution(call != 1):
                found = outcome(compiled, inputs)
            assert_same_outcome(found, outcome(eager, inputs), where)
    assert_same_state(compiled, eager, program.name)


@pytest.mark.parametrize("program", _named(REFUSED))
def test_is_refused(program: Program) -> None:
    assert program.refusal is not None
    error, message = program.refusal
    with pytest.raises(RekindleError) as caught:
        rekindle.script(program.subject())
    problems = caught.value.errors if isinstance(caught.value, ProgramErrors) else [caught.value]
    assert {type(problem) for problem in problems} == {error}
    assert message in str(caught.value)


@pytest.mark.parametrize("program", _named(PROGRAMS))
def test_torch_jit_does_what_is_said_of_it(program: Program) -> None:
    assert torch_state(program) == program.torch


@pytest.mark.parametrize("program", _named([p for p in COMPILED if p.torch != "refuses" and p.name not in GAPS]))
def test_result_type_is_that_of_torch_jit(program: Program) -> None:
    same = result_type(rekindle.script(program.subject())) == torch_result_type(program)
    assert same != (program.name in RESULT_TYPES)


def test_lists_name_programs() -> None:
    compiled = {program.name for program in COMPILED}
    assert set(GAPS) <= compiled
    assert set(RESULT_TYPES) <= compiled - set(GAPS)


def test_there_are_many() -> None:
    assert len(COMPILED) >= 300
    assert len(COMPILED) - len(GAPS) >= 300


@pytest.mark.parametrize("program", _named([p for p in COMPILED if p.is_past_torch and p.name not in RUNS_HERE_ONLY]))
def test_saved_programs_run_in_torch_jit(program: Program) -> None:
    """What torch.jit does not compile is ordinary TorchScript all the same: what is saved here runs there."""
    loaded = torch_loaded(rekindle.script(program.subject()))
    eager = program.subject()
    same = all(answers_alike(loaded, eager, inputs, is_archive=True) for inputs in program.inputs)
    assert same != (program.name in OTHERWISE_IN_TORCH)


@pytest.mark.parametrize("name", RUNS_HERE_ONLY)
def test_saving_refuses_what_runs_here_only(name: str) -> None:
    (program,) = (program for program in COMPILED if program.name == name)
    with pytest.raises(SaveError) as caught:
        rekindle.save(rekindle.script(program.subject()), io.BytesIO())
    assert RUNS_HERE_ONLY[name] in str(caught.value)
