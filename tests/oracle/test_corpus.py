"""Every program of the corpus: compiled as torch.jit compiles it, and answering as eager does."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from tests.oracle.corpus import Program, Sample, corpus, fresh
from tests.oracle.known_differences import KNOWN_DIFFERENCES, WRONG_ANSWERS
from tests.support.equality import assert_same
from tests.support.oracle import compare

PROGRAMS = corpus()
NAMES = [program.name for program in PROGRAMS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "program" in metafunc.fixturenames:
        metafunc.parametrize("program", PROGRAMS, ids=NAMES)


def test_graph_is_that_of_torch_jit(program: Program) -> None:
    try:
        comparison = compare(program.subject(), rekindle.script)
        difference = comparison.differences
    except rekindle.errors.RekindleError as error:
        difference = f"{type(error).__name__}: {error}"
    if program.name in KNOWN_DIFFERENCES:
        assert difference, f"{program.name} has torch.jit's graph now: take it off the list of known differences"
        return
    assert not difference, difference


def test_answers_are_those_of_eager(program: Program) -> None:
    failure: Exception | None = None
    try:
        _check_answers(program)
    except Exception as error:
        failure = error
    if program.name in WRONG_ANSWERS:
        assert failure is not None, f"{program.name} agrees with eager now: remove it from the list of wrong answers"
        return
    if failure is not None:
        raise failure


def test_lists_name_programs() -> None:
    assert set(KNOWN_DIFFERENCES) <= set(NAMES)
    assert set(WRONG_ANSWERS) <= set(NAMES)


def test_readme_counts_them() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    same = len(PROGRAMS) - len(KNOWN_DIFFERENCES)
    assert f"- Of {len(PROGRAMS)} programs written for the comparison, {same} have the same graph" in readme


def test_differences_are_few() -> None:
    assert len(PROGRAMS) >= 160
    assert len(KNOWN_DIFFERENCES) <= 0.05 * len(PROGRAMS)


def _check_answers(program: Program) -> None:
    for sample in program.samples:
        compiled = rekindle.script(program.subject())
        eager = program.subject()
        for call in range(3):
            ours, theirs = fresh(sample), fresh(sample)
            _assert_same_outcome(
                _outcome(compiled, ours), _outcome(eager, theirs), f"call {call + 1} of {program.name}"
            )
            assert_same(ours, theirs, f"arguments after call {call + 1} of {program.name}")
        if isinstance(eager, torch.nn.Module):
            assert_same(dict(compiled.state_dict()), dict(eager.state_dict()), f"state of {program.name}")


def _outcome(function: Any, arguments: Sample) -> Any:
    """What a call gives, or what it raises."""
    torch.manual_seed(1)
    try:
        return _plain(copy.deepcopy(function(*arguments)))
    except Exception as error:
        return error


def _assert_same_outcome(actual: Any, expected: Any, where: str) -> None:
    """The same result; or an exception of the same class, with the same text where it is the program that raises it."""
    if not isinstance(expected, Exception):
        if isinstance(actual, Exception):
            raise actual
        assert_same(actual, expected, where)
        return
    assert isinstance(actual, type(expected)), f"{where} gives {actual!r}, not {expected!r}"
    if not isinstance(actual, rekindle.RekindleError):
        assert str(actual) == str(expected), f"{where} raises {actual!r}, not {expected!r}"


def _plain(value: Any) -> Any:
    """Results without what carries no meaning: a size is a list of ints."""
    if isinstance(value, torch.Size):
        return list(value)
    if isinstance(value, tuple) and type(value) is not tuple:
        return tuple(_plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    return value
