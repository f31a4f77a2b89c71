"""Problems gathered while compilation continues: one is raised as it is, several together."""

from __future__ import annotations

from pathlib import Path

import pytest

import rekindle
from rekindle.errors import (
    CascadingError,
    Cause,
    CompileError,
    Diagnostics,
    Edit,
    InternalError,
    ProgramErrors,
    Source,
    SourceRange,
    TypeMismatchError,
    UndefinedNameError,
)
from tests.errors.test_wrong_programs import load

SOURCE = Source("def f(x):\n    return y\n", "program.py")


def test_one_problem_is_raised_as_it_is() -> None:
    diagnostics = Diagnostics()
    error = TypeMismatchError("it does not fit")
    with pytest.raises(TypeMismatchError) as caught, diagnostics.reporting():
        raise error
    assert caught.value is error
    assert error.errors == (error,)


def test_several_are_told_in_the_order_of_the_source_and_none_twice() -> None:
    diagnostics = Diagnostics()
    for _ in range(2):
        diagnostics.add(UndefinedNameError("the name 'y' is not defined", SOURCE.range(21, 22)))
        diagnostics.add(
            TypeMismatchError("it does not fit", SOURCE.range(6, 7), edit=Edit(SOURCE.range(6, 7), "x: int"))
        )
    with pytest.raises(ProgramErrors) as caught:
        diagnostics.raise_all()
    assert [error.cause for error in caught.value.errors] == [Cause.TYPE_MISMATCH, Cause.UNDEFINED_NAME]
    assert caught.value.message == "it does not fit (and 1 more problem)"
    assert (
        str(caught.value)
        == """\
2 problems keep this from being compiled.

1. type mismatch: it does not fit
  File "program.py", line 1
    def f(x):
          ^
Hint: convert the value to the type that is needed, or declare the type that is meant
Edit: line 1: def f(x: int):

2. undefined name: the name 'y' is not defined
  File "program.py", line 2
    def f(x):
        return y
               ^
Hint: give it a value on every path that leads here, or correct the name"""
    )


def test_what_needs_what_failed_is_no_problem_of_its_own() -> None:
    diagnostics = Diagnostics()
    with diagnostics.recovering():
        raise TypeMismatchError("it does not fit")
    with diagnostics.recovering():
        raise CascadingError("it needs the other")
    with diagnostics.recovering():
        raise InternalError("it needs the other, too")
    with pytest.raises(TypeMismatchError, match="it does not fit"):
        diagnostics.raise_all()


def test_an_internal_error_without_a_problem_comes_through() -> None:
    with pytest.raises(InternalError), Diagnostics().recovering():
        raise InternalError("a bug")


def test_long_lists_are_cut() -> None:
    errors = [CompileError("\n".join([f"problem {number}", *["…"] * 20])) for number in range(23)]
    told = str(ProgramErrors(errors))
    assert told.startswith("23 problems keep this from being compiled.\n\n1. unsupported construct: problem 0\n")
    assert told.endswith(
        "\n  … (18 more lines)\n"
        "Hint: say it in another way, or leave it to Python in a function marked with @ignore\n"
        "\n… and 3 more: 'errors' of this exception holds them all."
    )
    assert "problem 19" in told
    assert "problem 20" not in told


def broken(x):  # type: ignore[no-untyped-def]
    return x.nope()


def calls_it_twice(x):  # type: ignore[no-untyped-def]
    y = broken(x)
    return broken(y) + broken(x + y)


def test_what_fails_fails_again() -> None:
    """Nothing of a failure is kept for the next compilation."""
    texts = []
    for _ in range(2):
        with pytest.raises(UndefinedNameError) as caught:
            rekindle.script(calls_it_twice)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    with pytest.raises(UndefinedNameError, match="'nope'"):
        rekindle.script(broken)


def test_the_same_problem_in_many_places_is_told_once(tmp_path: Path) -> None:
    body = "".join(f"    a{number} = x + nowhere\n" for number in range(6))
    module = load("many", f"\ndef f(x):\n{body}    b = elsewhere\n    return b\n", tmp_path)
    with pytest.raises(CompileError) as caught:
        rekindle.script(module.f)
    assert len(caught.value.errors) == 7
    first, _, problem, *_ = str(caught.value).splitlines()
    assert first == "2 problems, in 7 places, keep this from being compiled."
    assert problem == "1. undefined name: the name 'nowhere' is not defined"
    file = tmp_path / "many.py"
    assert f"The same in 5 other places: {file}:4, {file}:5, {file}:6, and 2 more" in str(caught.value)
    assert "2. undefined name: the name 'elsewhere' is not defined" in str(caught.value)


def test_hints_for_files_of_packages_address_their_authors() -> None:
    text = "def f(x):\n    return y\n"
    for file, hint in {
        "/usr/lib/python3.11/site-packages/somewhere/net.py": "Hint for the authors of 'somewhere': give it a value",
        "/usr/lib/python3/dist-packages/single.py": "Hint for the authors of 'single': give it a value",
        "/home/me/site-packages": "Hint: give it a value",
        "mine.py": "Hint: give it a value",
    }.items():
        error = UndefinedNameError("no y", SourceRange(Source(text, file), 21, 22), hint="give it a value")
        assert str(error).splitlines()[-1] == hint
