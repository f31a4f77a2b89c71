"""Programs that nest deeply or are long compile and run; what nests too deeply is refused, without a crash."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rekindle.errors import UNKNOWN_RANGE, CompileError, UnsupportedError
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.program.sources.compilation_unit import CompilationUnit


def blocks(head: str, depth: int, last: str) -> str:
    lines = ["def f(x: int):", "    y = 0", *("    " + " " * i + head for i in range(depth))]
    return "\n".join([*lines, "    " + " " * depth + last, "    return y", ""])


def returned(expression: str, parameter: str = "x: int") -> str:
    return f"def f({parameter}):\n    return {expression}\n"


NESTED: dict[str, tuple[Callable[[int], str], Any, Any]] = {
    "if": (lambda n: blocks("if x > 0:", n, "y = y + 1"), 1, 1),
    "if that returns": (lambda n: blocks("if x > 0:", n, "return x"), 1, 1),
    "while": (lambda n: blocks("while y < 1:", n, "y = y + 1"), 1, 1),
    "for": (lambda n: blocks("for i in range(1):", n, "y = y + 1"), 1, 1),
    "for that breaks": (lambda n: blocks("for i in range(1):", n, "break"), 1, 0),
    "for that returns": (lambda n: blocks("for i in range(1):", n, "return x"), 1, 1),
    "parentheses": (lambda n: returned("(" * n + "x" + ")" * n), 1, 1),
    "sums": (lambda n: returned("(1 + " * n + "x" + ")" * n), 1, None),
    "negatives": (lambda n: returned("-" * n + "x"), 1, 1),
    "calls": (lambda n: returned("abs(" * n + "x" + ")" * n), -1, 1),
    "lists": (lambda n: returned("len(" + "[" * n + "x" + "]" * n + ")"), 1, 1),
    "tuples": (lambda n: returned("len([" + "(" * n + "x" + ",)" * n + "])"), 1, 1),
    "ternaries": (lambda n: returned("x if x > 1 else " * n + "-x"), 1, -1),
    "conditions": (lambda n: returned("(x and " * n + "x" + ")" * n, "x: bool"), True, True),
    "subscripts": (lambda n: returned("x[" * n + "0" + "]" * n, "x: List[int]"), [0], 0),
    "comprehensions": (lambda n: returned("len(" + "[" * n + "0" + " for i in x]" * n + ")", "x: List[int]"), [0], 1),
}


def called(text: str, argument: Any) -> Any:
    return CompilationUnit(text).f(argument)


@pytest.mark.parametrize("name", NESTED)
def test_a_hundred_levels_compile_and_run(name: str) -> None:
    text, argument, expected = NESTED[name]
    assert called(text(96), argument) == (97 if name == "sums" else expected)


@pytest.mark.parametrize("name", NESTED)
def test_a_hundred_levels_compile_far_down_on_the_stack(name: str) -> None:
    text, argument, expected = NESTED[name]
    program = text(96)
    used = stack_depth()

    def at(frames: int) -> Any:
        return at(frames - 1) if frames else called(program, argument)

    # Reading takes four of Python's frames a level, for which the parser needs room of its own.
    limit = sys.getrecursionlimit()
    assert at(limit - used - 520) == (97 if name == "sums" else expected)
    assert sys.getrecursionlimit() == limit


def stack_depth() -> int:
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("depth", [1_000, 4_000])
def test_thousands_of_levels_are_a_clear_error(name: str, depth: int) -> None:
    text, argument, _ = NESTED[name]
    with pytest.raises(CompileError) as caught:
        called(text(depth), argument)
    assert caught.value.message == "This program is nested too deeply."


def test_a_hundred_thousand_parentheses_are_a_clear_error() -> None:
    with pytest.raises(CompileError) as caught:
        called(NESTED["parentheses"][0](100_000), 1)
    assert caught.value.message == "This program is nested too deeply."


LONG: dict[str, tuple[str, Any, Any]] = {
    "a sum": (returned("x" + " + 1" * 5_000), 1, 5_001),
    "a conjunction": (returned("x" + " and x" * 1_000, "x: bool"), True, True),
    "a comparison": (returned("x" + " <= x" * 500), 1, True),
    "a chain of methods": (returned("x" + ".t()" * 500, "x: Tensor"), torch.ones(1, 1), torch.ones(1, 1)),
    "statements": ("def f(x: int):\n" + "    x = x + 1\n" * 5_000 + "    return x\n", 1, 5_001),
    "a list": (returned(f"len([{'x, ' * 5_000}])"), 1, 5_000),
    "elif": (
        "def f(x: int):\n    if x == 0:\n        return 0\n"
        + "".join(f"    elif x == {i}:\n        return {i}\n" for i in range(1, 300))
        + "    return -1\n",
        299,
        299,
    ),
    "early returns": (
        "def f(x: int):\n" + "".join(f"    if x == {i}:\n        return {i}\n" for i in range(300)) + "    return -1\n",
        299,
        299,
    ),
    "variables": (
        "def f(x: int):\n"
        + "".join(f"    y{i} = x + {i}\n" for i in range(1_000))
        + "    while x > 0:\n        x -= 1\n"
        + "".join(f"        y{i} = y{i} + y{i + 1}\n" for i in range(200))
        + "    return y0\n",
        1,
        3,
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_long_programs_compile_and_run(name: str) -> None:
    text, argument, expected = LONG[name]
    assert called(text, argument) == expected


def test_the_whole_text_of_the_error() -> None:
    text = "def f(x: int):\n    if x == 0:\n        return 0\n"
    text += "".join(f"    elif x == {i}:\n        return {i}\n" for i in range(1, 3_000))
    with pytest.raises(UnsupportedError) as caught:
        called(text + "    return -1\n", 1)
    assert (
        str(caught.value)
        == """\
this function nests too deeply to be compiled
    def f(x: int):
        ^
Hint: move inner blocks into functions of their own; a chain of hundreds of elif or of early returns counts as well"""
    )


def test_the_limit_is_put_back() -> None:
    limit = sys.getrecursionlimit()
    with room_to_recurse(UNKNOWN_RANGE):
        raised = sys.getrecursionlimit()
        with room_to_recurse(UNKNOWN_RANGE):
            assert sys.getrecursionlimit() >= raised
        assert sys.getrecursionlimit() > limit
    assert sys.getrecursionlimit() == limit
    with pytest.raises(ValueError, match="anything"), room_to_recurse(UNKNOWN_RANGE):
        raise ValueError("anything")
    assert sys.getrecursionlimit() == limit
