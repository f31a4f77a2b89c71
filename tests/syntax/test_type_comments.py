"""Types in comments, in this package's parser and in Python's."""

from __future__ import annotations

import pytest

from rekindle.errors import ParseError, Source
from rekindle.syntax.live_source import source_of
from rekindle.syntax.parser import parse_function
from rekindle.syntax.python_ast import function_def
from rekindle.syntax.views import Assign, Def
from tests.syntax import corpus


def types_of(definition: Def) -> list[str]:
    """The parameters' types and the result's, as they are in the source."""
    every = [*(param.annotation for param in definition.params), definition.return_type]
    return ["-" if annotation is None else annotation.range.text for annotation in every]


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (corpus.type_comment, ["int", "Tensor", "Tensor"]),
        (corpus.type_comment_below_docstring, ["int", "int"]),
        (corpus.type_comment_without_arrow, ["int", "Tensor", "-"]),
        (corpus.type_comment_on_the_head, ["int", "int"]),
        (corpus.type_comment_without_result, ["List[int]", "int", "None"]),
        (
            corpus.type_comment_for_each,
            ["int", "Tuple[Tensor, Optional[int]]", "-", "Tuple[int, int]", "List[int]"],
        ),
        (corpus.type_comment_of_the_rest, ["int", "Tensor", "int"]),
        (corpus.annotation_and_comment, ["int", "str", "float"]),
        (corpus.Klass.commented, ["-", "int", "Tensor", "Tensor"]),
        (corpus.Klass.commented_with_self, ["Any", "int", "int"]),
        (corpus.Klass.static, ["int", "int", "int"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_of_parameters_and_results(fn: object, expected: list[str]) -> None:
    assert types_of(function_def(fn)) == expected  # type: ignore[arg-type]
    assert types_of(parse_function(source_of(fn))) == expected


def test_of_assignments() -> None:
    for definition in (
        function_def(corpus.type_comments_of_assignments),
        parse_function(source_of(corpus.type_comments_of_assignments)),
    ):
        found = {}
        for statement in definition.body:
            if statement.tree.kind == Assign.KIND:
                assign = Assign(statement.tree)
                if assign.annotation is not None:
                    found[assign.targets[0].range.text] = assign.annotation.range.text
        assert found == {"a": "List[int]", "b": "Dict[str, Tensor]", "x.g": "Optional[Tensor]", "k": "List[int]"}


def test_a_comment_behind_the_first_statement_says_nothing() -> None:
    definition = parse_function("def f(a):\n  b = a\n  # type: (int) -> int\n  return b\n")
    assert types_of(definition) == ["-", "-"]


def test_an_ignored_comment_says_nothing() -> None:
    assert types_of(parse_function("def f(a):  # type: ignore\n  # type: ignore[misc]\n  return a\n")) == ["-", "-"]


def test_the_range_of_a_type_is_that_of_the_comment() -> None:
    definition = parse_function(Source("def f(a):\n    # type: (int) -> Tuple[int, int]\n    pass", "f.py"))
    assert definition.return_type is not None
    assert definition.return_type.range.place == "f.py:2:21"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def f(a):\n  # type: (int, int) -> int\n  pass",
            "The number of types in this comment, 2, is not that of the parameters, 1.",
        ),
        (
            "def f(x, a):\n  # type: (int) -> int\n  pass",
            "The number of types in this comment, 1, is not that of the parameters, 2.",
        ),
        ("def f():\n  # type: () -> int int\n  pass", "Expected the end of the expression but found 'int'."),
        ("def f(a):\n  # type: (int) -> \n  pass", "Expected an expression but found the end of the text."),
        ("def f(a):\n  # type: (int -> int\n  pass", "'(' is never closed."),
    ],
)
def test_a_comment_that_is_wrong_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_function(text)
    assert caught.value.message == message
