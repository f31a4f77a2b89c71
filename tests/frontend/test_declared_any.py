"""Variables that are declared ``Any`` or as a ``Union`` may hold values of several types in turn."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Union

import pytest
import torch

import rekindle
from rekindle.errors import TypeMismatchError


def branch_then_loop(c: bool) -> Any:
    y: Any = 1
    if c:
        y = "a"
    else:
        y = 2.0
    for _ in range(2):
        y = [1]
    return y


def equal_branches_then_loop(c: bool) -> Any:
    y: Any = 1
    if c:
        y = "a"
    else:
        y = "b"
    for _ in range(2):
        y = [1]
    return y


def assigned_then_loop(c: bool) -> Any:
    y: Any = 1
    y = "a"
    while c:
        y = [1]
        c = False
    return y


def parameter(c: bool, y: Any = 3) -> Any:
    if c:
        y = "a"
    for _ in range(2):
        y = [1]
    return y


def branch_then_branch(c: bool) -> Any:
    y: Any = 1
    if c:
        y = "a"
    else:
        y = 2.0
    if not c:
        y = [1]
    return y


def union_of_three(c: bool) -> Union[int, str, float]:
    y: Union[int, str, float] = 1
    if c:
        y = "a"
    else:
        y = "b"
    for _ in range(int(c)):
        y = 2.0
    return y


def refined_loop(c: bool) -> Any:
    y: Any = 1
    if c:
        y = "a"
    else:
        y = 2.0
    while isinstance(y, str):
        y = [1]
    return y


def nested_loops(c: bool) -> Any:
    y: Any = 1
    for i in range(2):
        if c:
            y = "a"
        else:
            y = 2.0
        for _ in range(1):
            if i == 1:
                y = [1]
    return y


PROGRAMS = [
    branch_then_loop,
    equal_branches_then_loop,
    assigned_then_loop,
    parameter,
    branch_then_branch,
    union_of_three,
    refined_loop,
    nested_loops,
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_as_python(function: Callable[[bool], Any]) -> None:
    compiled = rekindle.script(function)
    for condition in (True, False):
        expected, actual = function(condition), compiled(condition)
        assert (actual, type(actual)) == (expected, type(expected))


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("function", PROGRAMS)
def test_in_archives(function: Callable[[bool], Any]) -> None:
    buffer = io.BytesIO()
    rekindle.save(rekindle.script(function), buffer)
    for load in (rekindle.load, torch.jit.load):
        buffer.seek(0)
        loaded = load(buffer)
        for condition in (True, False):
            expected = function(condition)
            assert loaded(condition) == expected


def test_what_is_not_a_member_of_the_union_is_refused() -> None:
    def assigns(c: bool) -> Union[int, str]:
        y: Union[int, str] = 1
        if c:
            y = "a"
        for _ in range(2):
            y = [1]  # type: ignore[assignment]
        return y

    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(assigns)
    assert str(caught.value).splitlines()[0] == (
        "variable 'y' is Union[int, str], but is assigned a value of type List[int] here"
    )
