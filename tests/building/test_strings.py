"""Methods of strings in libraries, compared with Python's: Unicode, bounds, limits, errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

import rekindle
from tests.building.c_process import memory_checker, run
from tests.building.corpus import same


def cases(s: str) -> tuple[str, str, str, str, str, str]:
    return s.upper(), s.lower(), s.title(), s.capitalize(), s.swapcase(), s.casefold()


def predicates(s: str) -> list[bool]:
    return [
        s.isalpha(),
        s.isdigit(),
        s.isdecimal(),
        s.isnumeric(),
        s.isalnum(),
        s.isspace(),
        s.isprintable(),
        s.isupper(),
        s.islower(),
        s.istitle(),
        s.isidentifier(),
    ]


def spaces(s: str, n: int) -> tuple[list[str], list[str], list[str], list[str], str, str, str]:
    return s.split(), s.split(None, n), s.splitlines(), s.splitlines(True), s.strip(), s.lstrip(), s.rstrip()


def escapes(s: str, items: list[str]) -> tuple[str, str]:
    return repr(s), str(items)


def searches(s: str, t: str, i: int, j: int) -> tuple[list[int], list[bool], list[str], list[str]]:
    numbers = [s.find(t), s.rfind(t), s.count(t), s.find(t, i), s.rfind(t, i, j), s.count(t, i, j), s.count(t, i)]
    flags = [s.startswith(t), s.endswith(t), s.startswith(t, i), s.endswith(t, i, j), s.startswith(t, i, j)]
    texts = [s.replace(t, "<>"), s.replace(t, "", i), s.replace("", t, j), s.strip(t), s.lstrip(t), s.rstrip(t)]
    parts: list[str] = []
    if len(t) > 0:
        parts = s.split(t, i) + s.rsplit(t, i) + s.rsplit(t)
        parts.extend(s.partition(t))
        parts.extend(s.rpartition(t))
    return numbers, flags, texts, parts


def justified(s: str, n: int, fill: str) -> tuple[str, str, str, str, str, str]:
    return s.ljust(n, fill), s.rjust(n, fill), s.center(n, fill), s.center(n), s.zfill(n), s.expandtabs(n)


def based(n: int) -> tuple[str, str, str]:
    return hex(n), oct(n), bin(n)


def found_or_not(s: str, t: str, i: int) -> tuple[int, int]:
    return s.index(t, i), s.rindex(t)


def int_of(s: str) -> int:
    return int(s)


def float_of(s: str) -> float:
    return float(s)


@pytest.fixture(scope="module")
def library_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Any]:
    known: dict[Any, Any] = {}

    def build(program: Any) -> Any:
        if program not in known:
            folder = tmp_path_factory.mktemp(program.__name__)
            rekindle.build(rekindle.script(program), folder, freestanding=True)
            known[program] = rekindle.NativeLibrary(folder)
        return known[program]

    return build


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (ValueError, TypeError, OverflowError) as error:
        return type(error)


SPECIAL = (
    "aZ 9_-'\"\\\u00df\u03a3\u03c3\u0130\u0149\u01c5\u0345\u00ad\u00b2\u00bd\u0661\u4e2d"
    "\u2028\u0085\x1c\x7f\t\r\n\U0001f600\U00010400"
)
TEXTS = st.text(alphabet=SPECIAL, max_size=8) | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
PARTS = st.text(alphabet="ab\u00df", max_size=2)
LONGER = st.text(alphabet="ab\u00df", max_size=8)
BOUNDS = st.integers(-9, 9)
_SETTINGS = settings(max_examples=300, deadline=None)


@given(TEXTS)
@example("A\u03a3 A\u0345\u03a3. A\u03a3a \u03a3 .\u03a3 \u00ad\u03a3")
@example("\u01c6\u01c5\u01c4 \ufb03x \u1e9e")
@_SETTINGS
def test_cases_and_classes(library_of: Callable[[Any], Any], s: str) -> None:
    assert library_of(cases)(s) == cases(s)
    assert library_of(predicates)(s) == predicates(s)


def test_classes_of_every_character(library_of: Callable[[Any], Any]) -> None:
    of_classes, of_cases = library_of(predicates), library_of(cases)
    points = [*range(0x3100), *range(0xA000, 0xD800), *range(0xF900, 0x11000), *range(0x1D400, 0x1F100), 0x10FFFF]
    for point in points[::7]:
        assert of_classes(chr(point)) == predicates(chr(point)), hex(point)
        text = f"a{chr(point)}\u03a3{chr(point)}a"
        assert of_cases(text) == cases(text), hex(point)


@given(TEXTS, BOUNDS)
@_SETTINGS
def test_spaces_and_lines(library_of: Callable[[Any], Any], s: str, n: int) -> None:
    assert library_of(spaces)(s, n) == spaces(s, n)


@given(TEXTS)
@_SETTINGS
def test_escapes(library_of: Callable[[Any], Any], s: str) -> None:
    assert library_of(escapes)(s, [s, ""]) == escapes(s, [s, ""])


@given(LONGER, PARTS, BOUNDS, BOUNDS)
@_SETTINGS
def test_searches(library_of: Callable[[Any], Any], s: str, t: str, i: int, j: int) -> None:
    if j == -1:
        j = 0  # an end of -1 is that of the text, as in TorchScript
    assert library_of(searches)(s, t, i, j) == rekindle.script(searches)(s, t, i, j)
    assert outcome(library_of(found_or_not), s, t, i) == outcome(found_or_not, s, t, i)


@given(TEXTS, st.integers(-3, 12), st.sampled_from(["*", "\u00df", "", "ab"]))
@_SETTINGS
def test_justified(library_of: Callable[[Any], Any], s: str, n: int, fill: str) -> None:
    assert outcome(library_of(justified), s, n, fill) == outcome(justified, s, n, fill)


@pytest.mark.parametrize("n", [0, 1, -1, 255, -256, 2**63 - 1, -(2**63)])
def test_bases(library_of: Callable[[Any], Any], n: int) -> None:
    assert library_of(based)(n) == based(n)


NUMBERS = st.text(alphabet="0123456789_+-. e", max_size=6) | st.integers(-(2**63), 2**63 - 1).map(str)


@given(NUMBERS)
@example(" \x1f1_000\n")
@example("9223372036854775807")
@example("-9223372036854775808")
@example("1__0")
@example("_1")
@example("infinity")
@example("-nan")
@example("0x1p3")
@example("1e_5")
@example("1_0.0_1e1_0")
@_SETTINGS
def test_numbers(library_of: Callable[[Any], Any], s: str) -> None:
    assert outcome(library_of(int_of), s) == outcome(int_of, s)
    found, expected = outcome(library_of(float_of), s), outcome(float_of, s)
    assert found is expected if isinstance(expected, type) else same(found, expected)


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "1" * 30])
def test_ints_beyond_64_bits(library_of: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(OverflowError, match=r"^int\(\) of a string with more than 64 bits"):
        library_of(int_of)(text)


def test_digits_beyond_ascii_are_refused(library_of: Callable[[Any], Any]) -> None:
    for program in (int_of, float_of):
        with pytest.raises(rekindle.LibraryError, match="of a string with characters beyond ASCII"):
            library_of(program)("\u0661")


@pytest.mark.skipif(memory_checker() is None, reason="this machine has no valgrind")
@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (cases, [("A\u03a3 \u0130\u01c5 \ufb03",), ("",)]),
        (predicates, [("a\u00df",), ("",)]),
        (spaces, [(" a\u2028 b\r\n", 1), ("", 0)]),
        (escapes, [("a'\u00ad\U0001f600\n", ["\x07"]), ("", [])]),
        (searches, [("abab\u00df", "b", 1, 4), ("", "", 0, 0), ("ab", "\u00df", -3, 9)]),
        (justified, [("-\u00df\t\n", 9, "\u00df"), ("a", 2, "ab")]),
        (based, [(-255,)]),
        (int_of, [(" 1_0 ",), ("x",), ("1__0",)]),
        (float_of, [("1_0.5",), ("x",)]),
    ],
)
def test_memory(program: Any, calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """No access outside of an object, and no leak, on paths that return and on those that raise."""
    built = rekindle.build(rekindle.script(program), tmp_path, cpu="x86-64-v3", freestanding=True)
    answers = run(built, "call", calls, tmp_path, prefix=memory_checker() or ())
    for call, answer in zip(calls, answers, strict=True):
        expected = outcome(program, *call)
        assert answer.code != 0 if isinstance(expected, type) else answer.value == expected
