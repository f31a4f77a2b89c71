"""Live functions and classes: where their text comes from, the places that it gives, and what is refused."""

from __future__ import annotations

import functools
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from rekindle.errors import CompileError, NotScriptableError, ParseError, UnsupportedError
from rekindle.syntax.live_source import source_of
from rekindle.syntax.python_ast import class_def, function_def
from tests.syntax import corpus


def load(tmp_path: Path, text: str) -> types.ModuleType:
    """A module of this text in a file."""
    path = tmp_path / "module.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------------------------------------- sources


def test_the_source_is_cut_out_of_its_file(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        "import functools\n\n\ndef outer():\n"
        "    @functools.lru_cache\n"
        "    # about f\n"
        "    @functools.wraps(\n"
        "        print)\n"
        "    def f(\n"
        "        x,\n"
        "    ):\n"
        '        """Text\n'
        "at the margin\n"
        '        """\n'
        "# a comment at the margin\n"
        "        if x: return [\n"
        "1]\n"
        "\n"
        "        return x\n"
        "    # after it\n"
        "    return f\n\n\ndef one_line(x): return x\nx = 1\n",
    )
    source = source_of(next(c for c in module.outer.__code__.co_consts if isinstance(c, types.CodeType)))
    assert source.text.startswith("    @functools.lru_cache\n")
    assert source.text.endswith("        return x\n")
    assert (source.first_line, source.filename) == (5, str(tmp_path / "module.py"))
    assert source_of(module.one_line).text == "def one_line(x): return x\n"


@pytest.mark.parametrize(
    ("first", "line", "last"),
    [
        ("    x = [", "1,", "    ]"),
        ('    x = """', "text", '    """'),
        ('    x = f"""', "{1}", '    """'),
        ("    # a comment", "# at the margin", "    x = 1"),
        ("    x = 1", "", "    x = 2"),
        ("    x = (", "    1 + ", "1)"),
    ],
)
def test_definitions_may_be_longer_than_the_lines_that_are_searched_first(
    tmp_path: Path, first: str, line: str, last: str
) -> None:
    lines = ["def long(x):", first, *[line] * 400, last, "    return x", "", "# after it", "y = 1", *["# more"] * 3000]
    module = load(tmp_path, "\n".join(lines) + "\n")
    assert source_of(module.long).text.splitlines() == lines[: lines.index("    return x") + 1]


def test_columns_are_those_of_the_file_in_characters(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        'class A:\n    class B:\n        def f(self, é):\n            s = "ü∀"; return é.f("ö", self.xß + (1))\n',
    )
    definition = function_def(module.A.B.f)
    assert definition.range.place == f"{tmp_path / 'module.py'}:3:8"
    places = {tree.range.text: (tree.range.line, tree.range.column) for tree in definition.tree.walk()}
    assert places['é.f("ö", self.xß + (1))'] == (4, 29)
    assert places["self.xß"] == (4, 38)
    assert places["self.xß + (1)"] == (4, 38)
    assert places["1"] == (4, 49)


def test_literals_over_several_lines_keep_their_text() -> None:
    tree = function_def(corpus.Klass.method).tree
    literals = [t.string(0) for t in tree.walk() if t.kind == "string_literal"]
    assert literals == [corpus.Klass.method.__doc__, "kept\n    as it is"] or literals == [
        # Python 3.13 strips the indentation off docstrings; the tree holds what the source says.
        "Over\n        two lines.\n        ",
        "kept\n    as it is",
    ]


def test_decorators_are_seen_through() -> None:
    assert function_def(corpus.decorated).name.name == "decorated"

    @functools.wraps(corpus.arithmetic)
    def wrapper(*args: Any) -> Any:
        return corpus.arithmetic(*args)

    assert function_def(wrapper).name.name == "arithmetic"


def test_a_method_can_be_bound() -> None:
    bound = corpus.Klass(1).method
    assert function_def(bound).tree.same_as(function_def(corpus.Klass.method).tree)


def test_names_can_be_given() -> None:
    assert function_def(corpus.arithmetic, "forward").name.name == "forward"
    assert class_def(corpus.Klass.Inner, "Other").name.name == "Other"


class Private:
    def method(self, xs: list[int]) -> int:
        __count = 0
        try:
            __count += xs[0]
        except IndexError as __error:
            __count = len(str(__error))
        match xs:
            case [_, *__rest]:
                __count += len(__rest)
            case __whole:
                __count += len(__whole)

        def add() -> None:
            nonlocal __count
            __count += 1

        add()
        return __count


def test_private_names_are_mangled_wherever_they_stand() -> None:
    text = str(function_def(Private.method).tree)
    assert "_Private__error" in text
    assert text.count("__count") == text.count("_Private__count")


def test_only_the_signature() -> None:
    def ignored(a: int, *args: Any, b: str = "c", **kwargs: Any) -> int:
        async def later() -> int:
            return len(args)

        return 0

    definition = function_def(ignored, signature_only=True)
    assert [param.name.name for param in definition.params] == ["a", "b"]
    assert definition.body == []
    assert str(definition.return_type) == "(variable (ident int))"
    with pytest.raises(UnsupportedError):
        function_def(ignored)


def test_a_class_without_some_of_its_methods() -> None:
    class Local:
        x: int = 1

        def kept(self) -> int:
            return self.x

        def skipped(self, *args: Any) -> None: ...

        async def skipped_too(self) -> None: ...

    definition = class_def(Local, skip={"skipped", "skipped_too"})
    assert [statement.tree.kind for statement in definition.body] == ["assign", "def"]
    with pytest.raises(UnsupportedError, match="Asynchronous functions"):
        class_def(Local, skip={"skipped"})


# ------------------------------------------------------------------------------------------------- what cannot be read


def error_of(obj: Any) -> str:
    with pytest.raises(NotScriptableError) as caught:
        function_def(obj)
    return str(caught.value)


def test_no_source() -> None:
    namespace: dict[str, Any] = {"__name__": "made_up"}
    exec("def f(x): return x", namespace)
    assert error_of(namespace["f"]) == (
        "The source of 'made_up.f' cannot be had, and without it there is nothing to compile.\n"
        "Hint: Define it in a file or in IPython, or give the text of a function to CompilationUnit: code that was "
        "typed at Python's prompt, or made by exec() or eval(), has no source."
    )
    assert error_of(len) == (
        "'builtins.len' has no Python source: it is built in, or written in another language.\n"
        "Hint: Wrap what it does in a Python function, or mark the call as ignored."
    )
    assert error_of(torch.Tensor.add).endswith(
        "has no Python source: it is built in, or written in another language.\n"
        "Hint: Wrap what it does in a Python function, or mark the call as ignored."
    )


def test_lambdas(tmp_path: Path) -> None:
    module = load(tmp_path, "f, g = (lambda x: x + 1), (lambda y: y)\nh = eval('lambda x: x')\n")
    assert function_def(module.f).range.text == "lambda x: x + 1"
    assert function_def(module.g).range.text == "lambda y: y"
    assert error_of(module.h) == (
        "'module.<lambda>' is a lambda expression whose source cannot be found.\nHint: Write a named function with def."
    )


def test_a_class_is_no_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(tmp_path, "class A:\n    pass\n\n\ndef f(): pass\n")
    assert error_of(module.A).startswith("The source of 'module.A' cannot be had,"), "its module is not registered"
    monkeypatch.setitem(sys.modules, "module", module)
    assert error_of(module.A) == (
        f"""\
The source of 'module.A' is not a function definition.
  File "{tmp_path / "module.py"}", line 1
    class A:
    ^^^^^^^^
Hint: Compile a function that is written with def."""
    )
    with pytest.raises(NotScriptableError, match=r"The source of 'module\.f' is not a class definition\."):
        class_def(module.f)


def test_a_file_that_has_changed(tmp_path: Path) -> None:
    module = load(tmp_path, "\n\n\ndef f(x):\n    return x\n")
    (tmp_path / "module.py").write_text("\n\n\ndef f(x)):\n    return x\n", encoding="utf-8")
    assert (
        error_of(module.f)
        == f"""\
The source of 'module.f' does not stand alone as a definition: unmatched ')'.
  File "{tmp_path / "module.py"}", line 4
    def f(x)):
    ^^^^^^^^^^
Hint: If the file has changed since it was imported, import it again. \
Write functions with def, on lines of their own."""
    )


def test_a_file_whose_lines_have_moved(tmp_path: Path) -> None:
    """Python finds a function by its line, where another one may be now."""
    module = load(tmp_path, "def f(x):\n    return x\n")
    for text in ("def g(x):\n    return -x\n", "def f(y):\n    return -y\n"):
        (tmp_path / "module.py").write_text(text, encoding="utf-8")
        name, head = text[4], text.splitlines()[0]
        assert (
            error_of(module.f)
            == f"""\
The source of 'module.f' is not where it was: there is the function '{name}' now.
  File "{tmp_path / "module.py"}", line 1
    {head}
    {"^" * len(head)}
Hint: The file has changed since it was imported: import it again."""
        )


REFUSED = {
    "yield": ("    yield x\n", "Generators ('yield') are not supported.", "yield x"),
    "yield from": ("    yield from x\n", "Generators ('yield') are not supported.", "yield from x"),
    "bytes": ("    b'a'\n", "Byte strings are not supported.", "b'a'"),
    "try": (
        "    try:\n        x\n    except* E:\n        x\n",
        "Groups of exceptions ('except*') are not supported.",
        "try:",
    ),
    "decorated def": (
        "    @d\n    def g(): pass\n",
        "Decorators of functions within functions are not supported.",
        "d",
    ),
    "async def": ("    async def g(): pass\n", "Asynchronous functions are not supported.", "async def g(): pass"),
    "class": (
        "    class A: b = x\n",
        "A class within a function that reads the function's variables is not supported.",
        "class A: b = x",
    ),
    "global": ("    global y\n    y = x\n", "'global' is not supported.", "global y"),
}


if sys.version_info < (3, 11):
    del REFUSED["try"]  # Python itself does not know `except*`


@pytest.mark.parametrize(("body", "message", "marked"), REFUSED.values(), ids=REFUSED)
def test_refusals_say_what_and_where_and_what_to_do(tmp_path: Path, body: str, message: str, marked: str) -> None:
    module = load(tmp_path, "def f(x):\n" + body)
    with pytest.raises(UnsupportedError) as caught:
        function_def(module.f)
    error = caught.value
    line = body.split("\n")[0]
    column = line.index(marked)
    assert str(error) == (
        f'{message}\n  File "{tmp_path / "module.py"}", line 2\n    def f(x):\n    {line}\n'
        f"    {' ' * column}{'^' * len(marked)}\nHint: {error.hint}"
    )
    assert error.hint


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("async def f(x)", "Asynchronous functions are not supported."),
    ],
)
def test_heads_that_are_refused(tmp_path: Path, head: str, message: str) -> None:
    module = load(tmp_path, f"{head}:\n    return 1\n")
    with pytest.raises(UnsupportedError) as caught:
        function_def(module.f)
    assert caught.value.message == message


# ----------------------------------------------------------------------------------------------------------- deep ones


@pytest.mark.parametrize(
    "expression",
    ["x" + " + x" * 900, "x" + ".x" * 900, "x" + "()" * 900, "x" + " and x" * 900, "(" * 90 + "x" + ")" * 90],
    ids=["sum", "attributes", "calls", "conjunction", "parentheses"],
)
def test_long_and_deep_functions(tmp_path: Path, expression: str) -> None:
    module = load(tmp_path, f"def f(x):\n    return {expression}\n")
    assert function_def(module.f).body[0].tree.kind == "return"


def test_what_nests_too_deeply_is_a_clear_error(tmp_path: Path) -> None:
    module = load(tmp_path, "def f(x):\n    return " + "not " * 600 + "x\n")
    with pytest.raises(ParseError) as caught:
        function_def(module.f)
    assert caught.value.message == "This program is nested too deeply."
    assert isinstance(caught.value, CompileError)
