"""Programs that nest deeply are fine up to a limit that is far off, and a clear error beyond: never a crash."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from rekindle.errors import ParseError, Source
from rekindle.syntax.nesting_limit import MAX_BLOCKS, MAX_DEPTH
from rekindle.syntax.parser import parse_expression, parse_function, parse_module
from rekindle.syntax.views import Expr

TOO_DEEP = "This program is nested too deeply."

NESTED: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "x" + ")" * n,
    "lists": lambda n: "[" * n + "]" * n,
    "tuples": lambda n: "(" * n + "x" + ",)" * n,
    "dicts": lambda n: "{1: " * n + "x" + "}" * n,
    "sets": lambda n: "{" * n + "x" + "}" * n,
    "calls": lambda n: "f(" * n + "x" + ")" * n,
    "keyword arguments": lambda n: "f(a=1 + " * n + "x" + ")" * n,
    "subscripts": lambda n: "x[" * n + "0" + "]" * n,
    "slices": lambda n: "x[1:2 * x[" * (n // 2) + "0" + "]]" * (n // 2),
    "operands": lambda n: "(x + 2 * " * n + "x" + ")" * n,
    "list comprehensions": lambda n: "[" * n + "x" + " for x in y]" * n,
    "minus": lambda n: "-" * n + "x",
    "not": lambda n: "not " * n + "x",
    "powers": lambda n: "x ** " * n + "x",
    "ternaries": lambda n: "x if y else " * n + "x",
    "f-strings": lambda n: "f'{" * n + "x" + "}'" * n,
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_a_hundred_levels_are_fine(text: Callable[[int], str]) -> None:
    assert isinstance(parse_expression(text(100)), Expr)


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_a_hundred_thousand_levels_are_a_clear_error(text: Callable[[int], str]) -> None:
    with pytest.raises(ParseError) as caught:
        parse_expression(text(100_000))
    assert caught.value.message == TOO_DEEP
    assert caught.value.hint is not None


def test_the_whole_text_of_the_error() -> None:
    with pytest.raises(ParseError) as caught:
        parse_expression(Source("(" * (MAX_DEPTH + 1) + ")" * (MAX_DEPTH + 1), "deep.py"))
    line = "(" * (MAX_DEPTH + 1) + ")" * (MAX_DEPTH + 1)
    assert (
        str(caught.value)
        == f"""\
This program is nested too deeply.
  File "deep.py", line 1
    {line}
    {" " * MAX_DEPTH}^
Hint: More than {MAX_DEPTH} brackets and operators, or {MAX_BLOCKS} blocks, within one another are not supported. \
Give names to intermediate results, or move inner blocks into functions of their own."""
    )
    assert parse_expression("(" * MAX_DEPTH + "x" + ")" * MAX_DEPTH).tree.kind == "variable"


def blocks(head: str, depth: int) -> str:
    lines = ["def f(x):", *(" " * i + head for i in range(1, depth + 1)), " " * (depth + 1) + "return x"]
    return "\n".join(lines)


BLOCKS = ["if x:", "while x:", "for i in x:", "with x:"]


@pytest.mark.parametrize("head", BLOCKS)
def test_a_hundred_blocks_are_fine(head: str) -> None:
    tree = parse_function(blocks(head, 100)).tree
    assert sum(1 for t in tree.walk() if t.kind in ("if", "while", "for", "with")) == 100


@pytest.mark.parametrize("head", BLOCKS)
def test_thousands_of_blocks_are_a_clear_error(head: str) -> None:
    # Each level is indented by one more blank, so 5,000 levels already make a text of 13 million characters.
    with pytest.raises(ParseError) as caught:
        parse_function(blocks(head, 5_000))
    assert caught.value.message == TOO_DEEP


def test_a_hundred_brackets_within_eighty_blocks() -> None:
    text = blocks("if x:", 80).replace("return x", "return " + "(" * 100 + "x" + ")" * 100)
    assert isinstance(parse_function(text).name.name, str)


LONG: dict[str, Callable[[int], str]] = {
    "sums": lambda n: "x" + " + x" * n,
    "products of sums": lambda n: "x" + " + x * x" * n,
    "comparisons": lambda n: "x" + " < x" * n,
    "conjunctions": lambda n: "x" + " and x" * n,
    "attributes": lambda n: "x" + ".x" * n,
    "calls of calls": lambda n: "x" + "()" * n,
    "chains of methods": lambda n: "x" + ".f(1)[0]" * n,
    "lists": lambda n: "[" + "x, " * n + "]",
    "strings": lambda n: "'a' " * n,
    "fields": lambda n: "f'" + "{x}" * n + "'",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_what_is_long_need_not_be_deep(text: Callable[[int], str]) -> None:
    assert isinstance(parse_expression(text(5_000)), Expr)


def test_a_long_chain_of_elif() -> None:
    text = "def f(x):\n  if x: return 0\n" + "".join(f"  elif x == {i}: return {i}\n" for i in range(5_000))
    tree = parse_function(text).tree
    assert sum(1 for t in tree.walk() if t.kind == "if") == 5_001


def test_a_long_program() -> None:
    assert len(parse_module("x = 1\n" * 20_000)) == 20_000


def call_from_depth(frames: int, then: Callable[[], object]) -> object:
    return then() if frames == 0 else call_from_depth(frames - 1, then)


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_a_caller_that_has_used_up_the_stack_gets_the_clear_error_too(text: Callable[[int], str]) -> None:
    """However little of Python's stack is left, the outcome is a tree or this error."""
    used = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    outcomes = set()
    for left in (700, 400, 250, 120, 60):
        try:
            call_from_depth(sys.getrecursionlimit() - used - left, lambda: parse_expression(text(150)))
            outcomes.add("tree")
        except ParseError as error:
            outcomes.add(error.message)
    assert TOO_DEEP in outcomes
    assert outcomes <= {"tree", TOO_DEEP}
