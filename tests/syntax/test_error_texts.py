"""The whole text of what a person reads when a program cannot be read."""

from __future__ import annotations

import pytest

from rekindle.errors import CompileError, ParseError, Source, UnsupportedError
from rekindle.syntax.parser import parse_expression, parse_function, parse_module

STATEMENTS = [
    pytest.param(
        "f(",
        ParseError,
        """\
'(' is never closed.
  File "program.py", line 2
    def f():
        f(
         ^""",
    ),
    pytest.param(
        "f)",
        ParseError,
        """\
')' closes nothing.
  File "program.py", line 2
    def f():
        f)
         ^""",
    ),
    pytest.param(
        "f(]",
        ParseError,
        """\
']' does not close '(' of line 2.
  File "program.py", line 2
    def f():
        f(]
          ^""",
    ),
    pytest.param(
        "a b",
        ParseError,
        """\
Expected the end of the statement but found 'b'.
  File "program.py", line 2
    def f():
        a b
          ^""",
    ),
    pytest.param(
        "x =",
        ParseError,
        """\
Expected an expression but found the end of the line.
  File "program.py", line 2
    def f():
        x =
           ^""",
    ),
    pytest.param(
        "f(x) = 1",
        ParseError,
        """\
This cannot be assigned to.
  File "program.py", line 2
    def f():
        f(x) = 1
        ^^^^
Hint: Assign to a name, an attribute, an item, or a tuple of them.""",
    ),
    pytest.param(
        "a, 1 = c",
        ParseError,
        """\
This cannot be assigned to.
  File "program.py", line 2
    def f():
        a, 1 = c
           ^
Hint: Assign to a name, an attribute, an item, or a tuple of them.""",
    ),
    pytest.param(
        "a, b += 1",
        ParseError,
        """\
'+=' has one target, not several.
  File "program.py", line 2
    def f():
        a, b += 1
        ^^^^
Hint: Write one statement for each.""",
    ),
    pytest.param(
        "(a, b): int = 1",
        ParseError,
        """\
This cannot have a type annotation.
  File "program.py", line 2
    def f():
        (a, b): int = 1
        ^^^^^^
Hint: Annotate a name, an attribute or an item.""",
    ),
    pytest.param(
        "'abc",
        ParseError,
        """\
This string is never closed.
  File "program.py", line 2
    def f():
        'abc
        ^^^^""",
    ),
    pytest.param(
        'f"{x',
        ParseError,
        """\
This string is never closed.
  File "program.py", line 2
    def f():
        f"{x
        ^^^^""",
    ),
    pytest.param(
        'f"{}"',
        ParseError,
        """\
A field of this f-string is empty.
  File "program.py", line 2
    def f():
        f"{}"
          ^^""",
    ),
    pytest.param(
        'f"{x!q}"',
        ParseError,
        """\
A conversion in an f-string is one of !r, !s and !a.
  File "program.py", line 2
    def f():
        f"{x!q}"
            ^^""",
    ),
    pytest.param(
        'f"a}"',
        ParseError,
        """\
An f-string has a single '}'.
  File "program.py", line 2
    def f():
        f"a}"
           ^
Hint: Write '}}' for the character itself.""",
    ),
    pytest.param(
        'f"{x y}"',
        ParseError,
        """\
Expected the end of the expression but found 'y'.
  File "program.py", line 2
    def f():
        f"{x y}"
             ^""",
    ),
    pytest.param(
        'f"{x:{y:{z}}}"',
        UnsupportedError,
        """\
Format specifications within format specifications are not supported.
  File "program.py", line 2
    def f():
        f"{x:{y:{z}}}"
                 ^
Hint: Format in two steps.""",
    ),
    pytest.param(
        'b"abc"',
        UnsupportedError,
        """\
Byte strings are not supported.
  File "program.py", line 2
    def f():
        b"abc"
        ^^^^^^
Hint: Use a str, or a list of int.""",
    ),
    pytest.param(
        't"abc"',
        UnsupportedError,
        """\
Template strings are not supported.
  File "program.py", line 2
    def f():
        t"abc"
        ^^^^^^
Hint: Use an f-string.""",
    ),
    pytest.param(
        r'"\x4"',
        ParseError,
        """\
The escape '\\x' is cut short.
  File "program.py", line 2
    def f():
        "\\x4"
         ^^^""",
    ),
    pytest.param(
        r'"\N{NO SUCH THING}"',
        ParseError,
        """\
No character is named 'NO SUCH THING'.
  File "program.py", line 2
    def f():
        "\\N{NO SUCH THING}"
         ^^^^^^^^^^^^^^^^^""",
    ),
    pytest.param(
        "12abc",
        ParseError,
        """\
'12abc' is neither a number nor a name.
  File "program.py", line 2
    def f():
        12abc
        ^^^^^""",
    ),
    pytest.param(
        "012",
        ParseError,
        """\
A decimal integer cannot begin with a zero: '012'.
  File "program.py", line 2
    def f():
        012
        ^^^
Hint: Octal numbers begin with 0o.""",
    ),
    pytest.param(
        "a $ b",
        ParseError,
        """\
The character '$' has no meaning here.
  File "program.py", line 2
    def f():
        a $ b
          ^""",
    ),
    pytest.param(
        "x = await y",
        UnsupportedError,
        """\
'await' is not supported.
  File "program.py", line 2
    def f():
        x = await y
            ^^^^^
Hint: Use fork and wait to run work at the same time.""",
    ),
    pytest.param(
        "x = yield y",
        UnsupportedError,
        """\
Generators ('yield') are not supported.
  File "program.py", line 2
    def f():
        x = yield y
            ^^^^^
Hint: Append to a list and return it.""",
    ),
    pytest.param(
        "f(a=1, 2)",
        ParseError,
        """\
A positional argument follows a keyword argument.
  File "program.py", line 2
    def f():
        f(a=1, 2)
               ^""",
    ),
    pytest.param(
        "f(1, x for x in y)",
        ParseError,
        """\
A generator beside other arguments needs parentheses of its own.
  File "program.py", line 2
    def f():
        f(1, x for x in y)
             ^""",
    ),
    pytest.param(
        "[x async for x in y]",
        UnsupportedError,
        """\
Asynchronous comprehensions are not supported.
  File "program.py", line 2
    def f():
        [x async for x in y]
           ^^^^^""",
    ),
    pytest.param(
        "x = *a",
        ParseError,
        """\
A starred expression is allowed in a list, a tuple, a set or a call only.
  File "program.py", line 2
    def f():
        x = *a
            ^^""",
    ),
    pytest.param(
        "a if b",
        ParseError,
        """\
Expected 'else' but found the end of the line.
  File "program.py", line 2
    def f():
        a if b
              ^""",
    ),
    pytest.param(
        "a not b",
        ParseError,
        """\
Expected 'in' but found 'b'.
  File "program.py", line 2
    def f():
        a not b
              ^""",
    ),
    pytest.param(
        "a + not b",
        ParseError,
        """\
'not' needs parentheses here.
  File "program.py", line 2
    def f():
        a + not b
            ^^^""",
    ),
    pytest.param(
        "x[]",
        ParseError,
        """\
Expected an expression but found ']'.
  File "program.py", line 2
    def f():
        x[]
          ^""",
    ),
    pytest.param(
        "x.1",
        ParseError,
        """\
Expected the end of the statement but found '.1'.
  File "program.py", line 2
    def f():
        x.1
         ^^""",
    ),
    pytest.param(
        "x.if",
        ParseError,
        """\
Expected a name but found 'if'.
  File "program.py", line 2
    def f():
        x.if
          ^^""",
    ),
    pytest.param(
        "if x",
        ParseError,
        """\
Expected ':' but found the end of the line.
  File "program.py", line 2
    def f():
        if x
            ^""",
    ),
    pytest.param(
        "if x: for y in z: pass",
        ParseError,
        """\
'for' must begin a line of its own.
  File "program.py", line 2
    def f():
        if x: for y in z: pass
              ^^^""",
    ),
    pytest.param(
        """if x:
pass""",
        ParseError,
        """\
Expected an indented block after this colon.
  File "program.py", line 2
    def f():
        if x:
            ^""",
    ),
    pytest.param(
        """if x:
    a
  b""",
        ParseError,
        """\
This line is indented like no block around it.
  File "program.py", line 4
    def f():
        if x:
            a
          b
          ^
Hint: Indent it like the line that it belongs with.""",
    ),
    pytest.param(
        """x = 1
    y = 2""",
        ParseError,
        """\
This line is indented, but nothing before it opens a block.
  File "program.py", line 3
    def f():
        x = 1
            y = 2
            ^""",
    ),
    pytest.param(
        "for 1 in y: pass",
        ParseError,
        """\
This cannot be assigned to.
  File "program.py", line 2
    def f():
        for 1 in y: pass
            ^
Hint: Assign to a name, an attribute, an item, or a tuple of them.""",
    ),
    pytest.param(
        "async for x in y: pass",
        UnsupportedError,
        """\
Asynchronous for loops are not supported.
  File "program.py", line 2
    def f():
        async for x in y: pass
        ^^^^^
Hint: Use fork and wait to run work at the same time.""",
    ),
    pytest.param(
        "async with x: pass",
        UnsupportedError,
        """\
Asynchronous with statements are not supported.
  File "program.py", line 2
    def f():
        async with x: pass
        ^^^^^""",
    ),
    pytest.param(
        "@d\ndef g(): pass",
        UnsupportedError,
        """\
Decorators of functions within functions are not supported.
  File "program.py", line 2
    def f():
        @d
         ^
Hint: Move this function out, to the level of its module.""",
    ),
    pytest.param(
        "x := 1",
        ParseError,
        """\
An assignment expression needs parentheses here.
  File "program.py", line 2
    def f():
        x := 1
        ^^^^^^""",
    ),
    pytest.param(
        "(x.y := 1)",
        ParseError,
        """\
':=' assigns to a name.
  File "program.py", line 2
    def f():
        (x.y := 1)
         ^^^""",
    ),
    pytest.param(
        "class C: pass",
        UnsupportedError,
        """\
Classes within functions are not supported.
  File "program.py", line 2
    def f():
        class C: pass
        ^^^^^
Hint: Move this class out, to the level of its module.""",
    ),
    pytest.param(
        """@g
x = 1""",
        ParseError,
        """\
Expected a definition after the decorator but found 'x'.
  File "program.py", line 3
    def f():
        @g
        x = 1
        ^""",
    ),
    pytest.param(
        """try:
    x
except* E:
    y""",
        UnsupportedError,
        """\
Groups of exceptions ('except*') are not supported.
  File "program.py", line 4
    def f():
        try:
            x
        except* E:
              ^
Hint: Catch one exception with 'except'.""",
    ),
    pytest.param(
        """try:
    x
y""",
        ParseError,
        """\
Expected 'except' or 'finally' after this block.
  File "program.py", line 2
    def f():
        try:
        ^^^""",
    ),
    pytest.param(
        "global x",
        UnsupportedError,
        """\
'global' is not supported.
  File "program.py", line 2
    def f():
        global x
        ^^^^^^
Hint: Return the new value, or keep it in an attribute of a module.""",
    ),
    pytest.param(
        """match x:
    case 1: pass""",
        UnsupportedError,
        """\
match statements are not supported.
  File "program.py", line 2
    def f():
        match x:
        ^^^^^
Hint: Use if and elif.""",
    ),
    pytest.param(
        "type X = int",
        UnsupportedError,
        """\
type statements are not supported.
  File "program.py", line 2
    def f():
        type X = int
        ^^^^
Hint: Assign the type to a name outside of the function.""",
    ),
    pytest.param(
        "return return",
        ParseError,
        """\
Expected an expression but found 'return'.
  File "program.py", line 2
    def f():
        return return
               ^^^^^^
Hint: 'return' is a keyword of Python.""",
    ),
    pytest.param(
        "pass pass",
        ParseError,
        """\
Expected the end of the statement but found 'pass'.
  File "program.py", line 2
    def f():
        pass pass
             ^^^^""",
    ),
]


FUNCTIONS = [
    pytest.param(
        "def f(a, a): pass",
        ParseError,
        """\
Two parameters have the name 'a'.
  File "program.py", line 1
    def f(a, a): pass
             ^""",
    ),
    pytest.param(
        "def f(a=1, b): pass",
        ParseError,
        """\
The parameter 'b' needs a default, as the one before it has one.
  File "program.py", line 1
    def f(a=1, b): pass
               ^""",
    ),
    pytest.param(
        "def f(*, a, *, b): pass",
        ParseError,
        """\
A lone '*' is allowed once, before a parameter.
  File "program.py", line 1
    def f(*, a, *, b): pass
                ^""",
    ),
    pytest.param(
        "def f(a, /, b, /): pass",
        ParseError,
        """\
'/' is allowed once, after a parameter.
  File "program.py", line 1
    def f(a, /, b, /): pass
                   ^""",
    ),
    pytest.param(
        """def f(a)
    pass""",
        ParseError,
        """\
Expected ':' but found the end of the line.
  File "program.py", line 1
    def f(a)
            ^""",
    ),
    pytest.param(
        """def f(a):
""",
        ParseError,
        """\
Expected an indented block after this colon.
  File "program.py", line 1
    def f(a):
            ^""",
    ),
    pytest.param(
        """def f(x): pass
def g(): pass""",
        ParseError,
        """\
Expected one function and nothing after it, but found 'def'.
  File "program.py", line 2
    def f(x): pass
    def g(): pass
    ^^^""",
    ),
    pytest.param(
        "x = 1",
        ParseError,
        """\
Expected 'def' but found 'x'.
  File "program.py", line 1
    x = 1
    ^""",
    ),
    pytest.param(
        "def f[T](x): pass",
        UnsupportedError,
        """\
Type parameters are not supported.
  File "program.py", line 1
    def f[T](x): pass
         ^
Hint: Write one function for each type.""",
    ),
    pytest.param(
        "async def f(): pass",
        UnsupportedError,
        """\
Asynchronous functions are not supported.
  File "program.py", line 1
    async def f(): pass
    ^^^^^
Hint: Use fork and wait to run work at the same time.""",
    ),
    pytest.param(
        """def f(a):
  # type: (int, int) -> int
  pass""",
        ParseError,
        """\
The number of types in this comment, 2, is not that of the parameters, 1.
  File "program.py", line 2
    def f(a):
      # type: (int, int) -> int
              ^^^^^^^^^^^^^^^^^
Hint: Write one type for each parameter, or (...) where they have comments of their own.""",
    ),
    pytest.param(
        """def f(a):
  # type: (int) ->
  pass""",
        ParseError,
        """\
Expected an expression but found the end of the text.
  File "program.py", line 2
    def f(a):
      # type: (int) ->
                      ^""",
    ),
    pytest.param(
        """def f(a,  # type: int int
  ): pass""",
        ParseError,
        """\
Expected the end of the expression but found 'int'.
  File "program.py", line 1
    def f(a,  # type: int int
                          ^^^""",
    ),
    pytest.param(
        """def f(a):
  # type: (int) -> int
  # type: (int) -> int
  pass""",
        ParseError,
        """\
This function has a second type comment for its whole signature.
  File "program.py", line 3
    def f(a):
      # type: (int) -> int
      # type: (int) -> int
              ^^^^^^^^^^^^""",
    ),
    pytest.param(
        "",
        ParseError,
        """\
Expected 'def' but found the end of the text.
  File "program.py", line 1

    ^""",
    ),
]


MODULES = [
    pytest.param(
        "from x import y",
        UnsupportedError,
        """\
'from … import' is not supported in program text.
  File "program.py", line 1
    from x import y
    ^^^^
Hint: Use 'import' with the whole name.""",
    ),
    pytest.param(
        "class A(metaclass=B): pass",
        UnsupportedError,
        """\
Keyword arguments of a class (such as a metaclass) are not supported.
  File "program.py", line 1
    class A(metaclass=B): pass
            ^^^^^^^^^""",
    ),
    pytest.param(
        """class A:
  class B: pass""",
        UnsupportedError,
        """\
Classes within classes are not supported.
  File "program.py", line 2
    class A:
      class B: pass
      ^^^^^
Hint: Move this class out, to the level of its module.""",
    ),
    pytest.param(
        "class A[T]: pass",
        UnsupportedError,
        """\
Type parameters are not supported.
  File "program.py", line 1
    class A[T]: pass
           ^
Hint: Write one function for each type.""",
    ),
    pytest.param(
        """class A:
  import b""",
        UnsupportedError,
        """\
Imports within classes are not supported.
  File "program.py", line 2
    class A:
      import b
      ^^^^^^
Hint: Import at the top of the file.""",
    ),
    pytest.param(
        "import a as b",
        ParseError,
        """\
Expected the end of the statement but found 'as'.
  File "program.py", line 1
    import a as b
             ^^""",
    ),
]


@pytest.mark.parametrize(("text", "kind", "expected"), STATEMENTS)
def test_statements(text: str, kind: type[CompileError], expected: str) -> None:
    """Each text is the body of ``def f():`` in ``program.py``."""
    body = "\n".join("    " + line for line in text.split("\n"))
    with pytest.raises(kind) as caught:
        parse_function(Source("def f():\n" + body, "program.py"))
    assert str(caught.value) == expected
    assert type(caught.value) is kind


@pytest.mark.parametrize(("text", "kind", "expected"), FUNCTIONS)
def test_functions(text: str, kind: type[CompileError], expected: str) -> None:
    with pytest.raises(kind) as caught:
        parse_function(Source(text, "program.py"))
    assert str(caught.value) == expected
    assert type(caught.value) is kind


@pytest.mark.parametrize(("text", "kind", "expected"), MODULES)
def test_modules(text: str, kind: type[CompileError], expected: str) -> None:
    with pytest.raises(kind) as caught:
        parse_module(Source(text, "program.py"))
    assert str(caught.value) == expected
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "Expected an expression but found the end of the text.\n\n    ^"),
        ("a b", "Expected the end of the expression but found 'b'.\n    a b\n      ^"),
        ("a = 1", "Expected the end of the expression but found '='.\n    a = 1\n      ^"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_expression(text)
    assert str(caught.value) == expected
