"""Random programs with guards that fail though their conditions hold: their results are those of unoptimized code."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st

import rekindle
from rekindle.passes import EliminateGuards
from rekindle.runtime.strategies.bailouts import failing_guards
from tests.property.programs import programs
from tests.property.test_programs import ARGUMENTS, _outcome, load, unload
from tests.support.equality import assert_same
from tests.support.profiled import Profiled
from tests.support.shares import portion


@settings(max_examples=portion(60), suppress_health_check=list(HealthCheck))
@given(
    text=programs(),
    calls=st.lists(ARGUMENTS, min_size=2, max_size=2),
    failing=st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True),
    keeps_all=st.booleans(),
)
def test_any_guard_may_fail(
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    calls: list[tuple[Any, ...]],
    failing: list[int],
    keeps_all: bool,
) -> None:
    note(text)
    module = load(text, tmp_path_factory.getbasetemp())
    profiled = Profiled(guarding=() if keeps_all else (EliminateGuards(),), patience=1 << 30)
    try:
        compiled = rekindle.script(module.f)
        with failing_guards() as faults, profiled.calls():
            for at in (-1, *failing):
                for arguments in calls:
                    note(f"f{arguments}, guard {at} fails")
                    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
                    faults.begin(at)
                    assert_same(_outcome(compiled, ours), _outcome(module.f, theirs))
                    assert_same(ours, theirs, "arguments")
    finally:
        unload(module)
