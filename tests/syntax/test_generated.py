"""Generated programs: both parsers agree on them, and whatever is done to a text, the outcome is a tree or an error."""

from __future__ import annotations

import ast
import inspect
import random
import warnings

import pytest
from hypothesis import given, settings, strategies as st

from rekindle.errors import CompileError, Source
from rekindle.syntax.lexer import Lexer
from rekindle.syntax.parser import parse_expression, parse_module
from rekindle.syntax.python_expressions import OffsetTable
from rekindle.syntax.python_statements import StatementBuilder
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import BINARY_OPERATORS
from tests.support.shares import portion
from tests.syntax import corpus
from tests.syntax.test_both_paths import assert_same

blank = st.sampled_from(["", "", " ", "  "])
name = st.sampled_from(["a", "b", "x1", "self", "_", "été", "print"])
number = st.sampled_from(["0", "1", "42", "1.", ".5", "1e-5", "2j", "0x1F", "1_000"])
string = st.sampled_from(["'a'", '"b\\n"', "r'\\d'", "'''c\nd'''", "''", "'é'"])
atom = st.one_of(name, number, string, st.sampled_from(["True", "False", "None", "...", "()", "[]", "{}"]))
word = {"and", "or", "in", "not in", "is", "is not", "if", "else", "not", "for"}
binary = st.sampled_from([op.replace("_", " ") for op in BINARY_OPERATORS])


def padded(operator: str, left: str, right: str) -> str:
    return f" {operator} " if operator in word else left + operator + right


def call(callee: str, inputs: list[str], keywords: list[str]) -> str:
    return f"{callee}({', '.join(inputs + [f'k{i}={value}' for i, value in enumerate(keywords)])})"


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of expressions. Operands may be without parentheses: then operators bind as they do."""
    # Outermost operators inside a postfix operand need their parentheses, and a number its own before a dot.
    closed = st.one_of(name, inner.map("({})".format))
    items = st.lists(inner, min_size=0, max_size=3)
    return st.one_of(
        st.builds(lambda e, a, b: f"({a}{e}{b})", inner, blank, blank),
        st.builds(lambda a, op, b, x, y: f"{a}{padded(op, x, y)}{b}", inner, binary, inner, blank, blank),
        st.builds(lambda op, e: f"{op}{e}", st.sampled_from(["-", "+", "~", "- "]), closed),
        st.builds("(not {})".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("{}.{}".format, closed, name),
        st.builds(call, closed, items, items),
        st.builds(lambda v, i: f"{v}[{', '.join(i)}]", closed, st.lists(inner, min_size=1, max_size=3)),
        st.builds("{}[{}:{}, ::{}]".format, closed, inner, inner, inner),
        st.builds(lambda e: f"[{', '.join(e)}]", items),
        st.builds(lambda e: f"({''.join(x + ', ' for x in e)})", items),
        st.builds(lambda e: "{" + ", ".join(f"{x}: {x}" for x in e) + "}", items),
        st.builds("[{} for {} in ({}) if ({})]".format, inner, name, inner, inner),
        st.builds("({} for {}, {} in ({}))".format, inner, name, name, inner),
    )


expressions = st.recursive(atom, grow, max_leaves=12)


def by_python(text: str) -> StatementBuilder:
    source = Source(text, "f.py")
    return StatementBuilder(source, OffsetTable(source))


@given(expressions)
@settings(max_examples=portion(300))
def test_expressions(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ``1 is x`` and the like
        node = ast.parse(text, mode="eval").body
    assert_same(parse_expression(Source(text, "f.py")).tree, by_python(text).expr(node).tree)


def block(statements: list[str]) -> str:
    return "\n".join("    " + line for statement in statements for line in statement.split("\n"))


simple = st.one_of(
    st.builds("{} = ({})".format, name, expressions),
    st.builds("{}, *{} = ({})".format, name, name, expressions),
    st.builds("{}: int = ({})".format, name, expressions),
    st.builds("{} //= ({})".format, name, expressions),
    st.builds("return ({})".format, expressions),
    st.builds("assert ({})".format, expressions),
    st.builds("({})".format, expressions),
    st.sampled_from(["pass", "break", "continue", "return", "del a", "# a comment\npass", "raise a"]),
)


def nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map(block)
    return st.one_of(
        st.builds("if ({}):\n{}".format, expressions, body),
        st.builds("if ({}):\n{}\nelif ({}):\n{}\nelse:\n{}".format, expressions, body, expressions, body, body),
        st.builds("while ({}):\n{}\n".format, expressions, body),
        st.builds("for {} in ({}):\n\n{}".format, name, expressions, body),
        st.builds("with ({}).a as {}:\n{}".format, expressions, name, body),
    )


programs = st.lists(st.recursive(simple, nest, max_leaves=5), min_size=1, max_size=3).map("\n".join)


@given(programs)
@settings(max_examples=portion(100))
def test_programs(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = ast.parse(text).body
    ours = parse_module(Source(text, "f.py"))
    theirs = by_python(text).stmts(body)
    for a, b in zip(ours, theirs, strict=True):
        assert_same(a.tree, b.tree)


TOKENS = [
    *(token.text for token in Lexer(Source(inspect.getsource(corpus))).tokens if token.text),
    *(
        "'",
        '"',
        "f'",
        "{",
        "}",
        "\n",
        "\n    ",
        "\\",
        ":=",
        "!",
        "$",
        "\t",
        "# type: int",
        "# type: (int) -> int",
        "\0",
    ),
]


@pytest.mark.parametrize("seed", range(6))
def test_damaged_programs_give_a_tree_or_an_error(seed: int) -> None:
    """Texts with a few tokens taken out, put in or exchanged. Where Python reads one too, the trees are the same."""
    rng = random.Random(seed)
    functions = [fn for fn in vars(corpus).values() if inspect.isfunction(fn)]
    both = 0
    for _ in range(300):
        text = damaged(inspect.getsource(rng.choice(functions)), rng)
        try:
            theirs = trees_by_python(text)
        except (SyntaxError, ValueError, CompileError):
            theirs = None
        try:
            ours = [statement.tree for statement in parse_module(Source(text, "f.py"))]
        except CompileError as error:
            # Python's parser leaves these to its compiler.
            if theirs is not None and not error.message.startswith(
                ("Two parameters have", "A starred expression is allowed")
            ):
                pytest.fail(f"Python reads this, we do not:\n{text}\n{error}")
            continue
        if theirs is not None:
            both += 1
            for a, b in zip(ours, theirs, strict=True):
                assert_same(a, b)
    assert both > 30


def damaged(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(["", rng.choice(TOKENS)]) + text[at + rng.choice([0, 0, 1, 1, 3, 10]) :]
    return text


def trees_by_python(text: str) -> list[Tree]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = ast.parse(text).body
    builder = by_python(text)
    return [
        (
            builder.function(node)
            if isinstance(node, ast.FunctionDef)
            else builder.class_definition(node)
            if isinstance(node, ast.ClassDef)
            else builder.stmt(node)
        ).tree
        for node in body
    ]
