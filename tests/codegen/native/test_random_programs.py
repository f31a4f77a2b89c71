"""Machine code and the plan agree on random programs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st

from tests.codegen.native.programs import ARGUMENTS, programs
from tests.codegen.native.support import assert_same_outcome, compiled, function_of, outcome
from tests.support.shares import portion


@settings(max_examples=portion(100), suppress_health_check=list(HealthCheck))
@given(text=programs(), calls=st.lists(ARGUMENTS, min_size=4, max_size=8))
def test_code_is_the_plan(tmp_path_factory: pytest.TempPathFactory, text: str, calls: list[tuple[Any, ...]]) -> None:
    note(text)
    function = function_of(text, tmp_path_factory.getbasetemp())
    both = compiled(function)
    for arguments in calls:
        note(f"f{arguments}")
        assert_same_outcome(outcome(both.native, arguments), outcome(both.plan, arguments))
        u, rows = arguments[4], arguments[8]
        shared = (*arguments[:5], u, *arguments[6:8], [u, *rows, *rows])  # u, v and a row are one list
        assert_same_outcome(outcome(both.native, shared), outcome(both.plan, shared))
