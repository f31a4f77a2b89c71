"""Context managers are left when an error passes by."""

from __future__ import annotations

from typing import Any, List

import pytest
import torch

import rekindle


class Scope:
    def __init__(self, log: List[str], name: str):
        self.log = log
        self.name = name

    def __enter__(self) -> str:
        self.log.append("enter " + self.name)
        return self.name

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.log.append("exit " + self.name)


def fails_within(log: List[str], n: int):
    with Scope(log, "a"):
        with Scope(log, "b") as name, Scope(log, "c"):
            if n > 1:
                raise ValueError(name)
        log.append("between")
        if n > 0:
            raise KeyError("behind")
    log.append("end")


def calls_what_fails(log: List[str], n: int):
    with Scope(log, "outer"):
        fails_within(log, n)


def fails_in_a_hot_loop(scope: Scope, n: int):
    for i in range(n):
        with scope:
            if i == 400:
                raise ValueError("late")


def run(function: Any, log: List[str], *arguments: Any) -> str:
    try:
        function(*arguments)
    except (ValueError, KeyError) as error:
        log.append(repr(error))
    return "\n".join(log)


@pytest.mark.parametrize("function", [fails_within, calls_what_fails])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_managers_are_left_from_the_inside_out(function: Any, n: int) -> None:
    ours: List[str] = []
    theirs: List[str] = []
    assert run(rekindle.script(function), ours, ours, n) == run(function, theirs, theirs, n)


def test_loops_that_were_compiled() -> None:
    ours, theirs = Scope([], "x"), Scope([], "x")
    mine = run(rekindle.script(fails_in_a_hot_loop), ours.log, ours, 1000)
    assert mine == run(fails_in_a_hot_loop, theirs.log, theirs, 1000)
    assert ours.log.count("exit x") == 401


def without_gradient(x, fails: bool):
    with torch.no_grad():
        if fails:
            raise ValueError("no")
        y = x * 2
    return y


def test_gradient_mode_comes_back() -> None:
    with pytest.raises(ValueError, match=r"^no$"):
        rekindle.script(without_gradient)(torch.ones(1), True)
    assert torch.is_grad_enabled()


class Angry:
    def __init__(self, text: str):
        self.text = text

    def __enter__(self) -> None:
        pass

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        raise KeyError(self.text)


def angry_manager(log: List[str]):
    with Scope(log, "a"):
        with Angry("angry"):
            raise ValueError("first")


def test_what_a_manager_raises_takes_the_place_of_the_error() -> None:
    log: List[str] = []
    with pytest.raises(KeyError, match="angry") as caught:
        rekindle.script(angry_manager)(log)
    assert isinstance(caught.value.__context__, ValueError)
    assert log == ["enter a", "exit a"]
