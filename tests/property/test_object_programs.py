"""Scripted equals eager, on programs over objects, containers, strings, exceptions and with statements."""

from __future__ import annotations

import contextlib
import copy
import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st

import rekindle
from tests.property.object_programs import object_programs
from tests.property.test_programs import load, unload
from tests.support.equality import assert_same
from tests.support.shares import portion


@settings(max_examples=portion(60), suppress_health_check=list(HealthCheck))
@given(text=object_programs(), choices=st.lists(st.integers(0, 5), min_size=2, max_size=3))
def test_scripted_is_eager(tmp_path_factory: pytest.TempPathFactory, text: str, choices: list[int]) -> None:
    note(text)
    module = load(text, tmp_path_factory.getbasetemp())
    try:
        compiled = rekindle.script(module.f)
        for choice in choices:
            note(f"f(*make({choice}))")
            ours, theirs = module.make(choice), module.make(choice)
            assert_same(_outcome(compiled, ours), _outcome(module.f, theirs))
            assert_same(ours, theirs, "arguments")
            assert _sharing(ours) == _sharing(theirs)
    finally:
        unload(module)


def _outcome(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What comes of a call, the message of an exception and what is printed included."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            told: tuple[Any, ...] = ("returned", copy.deepcopy(function(*arguments)))
        except Exception as error:
            told = ("raised", type(error).__name__, str(error))
    return (*told, printed.getvalue())


def _sharing(value: Any) -> list[int]:
    """Which of the objects and containers within ``value`` are the same: their numbers, in the order of a walk."""
    numbers: dict[int, int] = {}
    walk: list[int] = []
    left = [value]
    while left:
        item = left.pop()
        inner = list(item.values()) if isinstance(item, dict) else item if isinstance(item, (list, tuple)) else []
        inner = list(vars(item).values()) if type(item).__name__ in ("Cell", "Holder") else inner
        if not isinstance(item, (int, float, str, tuple)):
            walk.append(numbers.setdefault(id(item), len(numbers)))
        left += inner
    return walk
