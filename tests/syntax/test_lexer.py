"""Tokens: what the lexer injects, what it leaves alone, and its three dialects."""

from __future__ import annotations

import pytest

from rekindle.errors import ParseError, Source
from rekindle.syntax.lexer import EOF, GRAPH, IDENT, PYTHON, SCHEMA, Dialect, Lexer


def kinds(text: str, dialect: Dialect | None = None) -> str:
    lexer = Lexer(Source(text)) if dialect is None else Lexer(Source(text), dialect)
    return " ".join(token.kind for token in lexer.tokens)


def texts(text: str, dialect: Dialect) -> list[str]:
    return [token.text for token in Lexer(Source(text), dialect).tokens[:-1]]


def test_the_overviews_stream() -> None:
    """The technical overview's example, and what it says of it."""
    assert kinds("if\n  .\n  .\n") == "if NEWLINE INDENT . NEWLINE . NEWLINE DEDENT EOF"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "EOF"),
        ("\n\n  # only a comment\n\n", "EOF"),
        ("x", "IDENT NEWLINE EOF"),
        ("x\n", "IDENT NEWLINE EOF"),
        ("x # comment", "IDENT NEWLINE EOF"),
        ("x\ny", "IDENT NEWLINE IDENT NEWLINE EOF"),
        ("x\r\ny\rz", "IDENT NEWLINE IDENT NEWLINE IDENT NEWLINE EOF"),
        ("f(\n  x,\n\n # c\n    y\n)\nz", "IDENT ( IDENT , IDENT ) NEWLINE IDENT NEWLINE EOF"),
        ("[(\n{\n}\n)\n]", "[ ( { } ) ] NEWLINE EOF"),
        ("a \\\n  + b", "IDENT + IDENT NEWLINE EOF"),
        ("if:\n x\n\n # c\n# d\n y\nz", "if : NEWLINE INDENT IDENT NEWLINE IDENT NEWLINE DEDENT IDENT NEWLINE EOF"),
        (
            "if:\n x\n if:\n  y\nz",
            "if : NEWLINE INDENT IDENT NEWLINE if : NEWLINE INDENT IDENT NEWLINE DEDENT DEDENT IDENT NEWLINE EOF",
        ),
        ("if:\n\tx\n        y", "if : NEWLINE INDENT IDENT NEWLINE IDENT NEWLINE DEDENT EOF"),
        ("  x\n  y\n", "IDENT NEWLINE IDENT NEWLINE EOF"),
        ("  if:\n    x\n  y", "if : NEWLINE INDENT IDENT NEWLINE DEDENT IDENT NEWLINE EOF"),
        ("a **= b ** c // d //= e", "IDENT **= IDENT ** IDENT // IDENT //= IDENT NEWLINE EOF"),
        ("a->b...c.d:=e!=f", "IDENT -> IDENT ... IDENT . IDENT := IDENT != IDENT NEWLINE EOF"),
        ("x.1.e5", "IDENT NUMBER . IDENT NEWLINE EOF"),
        ("1..real", "NUMBER . IDENT NEWLINE EOF"),
        ("not in is None Nonesuch", "not in is None IDENT NEWLINE EOF"),
        ("match type print _", "IDENT IDENT IDENT IDENT NEWLINE EOF"),
        ("r'a' rb'b' f'c' u'd' \"\"\"e\n'f\"\"\" ''", "STRING STRING STRING STRING STRING STRING NEWLINE EOF"),
    ],
)
def test_programs(text: str, expected: str) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "f'{x}'",
        "f'{{'",
        "f'}}'",
        "f'{x!r:>{y}}'",
        "f'{d[\"a\"]}'",
        "f'{d['a']}'",
        "f'{f'{f'{x}'}'}'",
        "f'{ {1: {2: 3}}[1] }'",
        "f'''{\nx\n}\n'''",
        "rf'\\{x}'",
        "f'\\N{EN DASH}{x}'",
        "f'{x:\\n}'",
        "f'a\\\nb'",
        "'\\''",
        "'''a''b'''",
        '"""a"b\\""""',
    ],
)
def test_a_string_literal_is_one_token(text: str) -> None:
    tokens = Lexer(Source(text + " + 1")).tokens
    assert tokens[0].kind == "STRING"
    assert tokens[0].text == text
    assert tokens[1].kind == "+"


def test_ranges_point_into_the_source() -> None:
    source = Source("a = (b +\n     cde)\n", "file.py", first_line=10)
    token = next(token for token in Lexer(source).tokens if token.text == "cde")
    assert (token.start, token.end) == (14, 17)
    assert token.range.place == "file.py:11:5"


def test_the_interface() -> None:
    lexer = Lexer(Source("a + 1"))
    assert lexer.cur.text == "a"
    assert lexer.lookahead().text == "+"
    assert lexer.lookahead(2).text == "1"
    assert lexer.lookahead(99).kind == EOF
    assert lexer.next_if("+") is None
    assert lexer.next().text == "a"
    assert lexer.end == 1
    taken = lexer.next_if("+")
    assert taken is not None
    assert taken.text == "+"
    with pytest.raises(ParseError, match=r"Expected a name but found '1'\."):
        lexer.expect(IDENT)
    assert lexer.expect("NUMBER").text == "1"
    assert lexer.next().kind == "NEWLINE"
    assert lexer.next().kind == EOF
    assert lexer.next().kind == EOF, "the end stays"


def test_a_part_of_a_source() -> None:
    source = Source("before; a + (\nb) after")
    tokens = Lexer(source, start=8, end=16, layout=False).tokens
    assert [token.text for token in tokens] == ["a", "+", "(", "b", ")", ""]
    assert source.text[tokens[3].start] == "b"


def test_type_comments_are_kept_aside() -> None:
    lexer = Lexer(
        Source(
            "def f(x,  # type: int\n"
            "      y,  # type: ignore\n"
            "      ):\n"
            "  # type: (...) -> int  # more\n"
            "  # no type: int\n"
            "  a = []  #type:List[int]\n"
            "  b = '# type: str'  # type: ignore[assignment]\n"
            "  # type: Tuple[int, str]"
        )
    )
    assert [token.text for token in lexer.type_comments] == ["int", "(...) -> int", "List[int]", "Tuple[int, str]"]
    assert all(token.kind == "TYPE_COMMENT" for token in lexer.type_comments)
    assert all(token.range.text == token.text for token in lexer.type_comments)
    assert lexer.type_comment_between(0, 22) is lexer.type_comments[0]
    assert lexer.type_comment_between(22, 40) is None


def test_schemas() -> None:
    text = (
        "aten::add_.Tensor(Tensor(a!) self, Tensor? other, *, Scalar alpha=-1e-05, int[2] pad=[0,1], str mode='mean', "
        "...) -> (Tensor(a!), Tensor(a -> *)[])"
    )
    assert texts(text, SCHEMA) == (
        "aten :: add_ . Tensor ( Tensor ( a ! ) self , Tensor ? other , * , Scalar alpha = - 1e-05 , "
        "int [ 2 ] pad = [ 0 , 1 ] , str mode = 'mean' , ... ) -> ( Tensor ( a ! ) , Tensor ( a -> * ) [ ] )"
    ).split(" ")


def test_schemas_have_no_keywords_and_no_lines() -> None:
    assert kinds("from in\n   None\n lambda", SCHEMA) == "IDENT IDENT IDENT IDENT EOF"
    assert kinds("Tensor?[] add.1 $0 a|b", SCHEMA) == "IDENT ? [ ] IDENT . NUMBER $ NUMBER IDENT | IDENT EOF"


def test_graphs() -> None:
    text = (
        "graph(%x.1 : Tensor,\n      %3 : int[]):\n"
        '  %4 : str = prim::Constant[value="a\\n%b"]() # my file.py:3:4\n'
        "  %y : Float(2, *, strides=[1, 1]) = ^PythonOp(%x.1) # <string>:1:0\n"
        "  return (%y)\n"
    )
    tokens = Lexer(Source(text), GRAPH).tokens
    assert [t.text for t in tokens if t.kind == "VALUE"] == ["%x.1", "%3", "%4", "%y", "%x.1", "%y"]
    assert [t.text for t in tokens if t.kind == "COMMENT"] == ["# my file.py:3:4", "# <string>:1:0"]
    assert [t.text for t in tokens if t.kind == "STRING"] == ['"a\\n%b"']
    assert "^" in [t.kind for t in tokens]
    assert not {"NEWLINE", "INDENT", "DEDENT"} & {t.kind for t in tokens}


def test_a_hundred_thousand_brackets_side_by_side() -> None:
    assert len(Lexer(Source("()" * 100_000)).tokens) == 200_002


@pytest.mark.parametrize("dialect", [PYTHON, SCHEMA, GRAPH], ids=lambda dialect: dialect.name)
def test_a_hundred_thousand_brackets_within_one_another(dialect: Dialect) -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        Lexer(Source("(" * 100_000 + ")" * 100_000), dialect)
