"""Calls of a compiled function next to the same calls of Python's."""

from __future__ import annotations

from typing import Any

import rekindle
from tests.language.running import assert_same_outcome, outcome


def assert_calls_agree(function: Any, *calls: tuple[Any, ...], times: int = 3) -> None:
    """Each call, several times over, so that kernels and specialized versions run, has Python's outcome: the result and
    its types, or the exception's class and text; what is printed; what becomes of the inputs."""
    compiled = rekindle.script(function)
    for time in range(times):
        for inputs in calls:
            where = f"{function.__name__}{inputs}, call {time}"
            assert_same_outcome(outcome(compiled, inputs), outcome(function, inputs), where)
