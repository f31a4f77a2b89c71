"""Characters that are compared as numbers: the same values and errors as strings of one character."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Tuple

import pytest

import rekindle
from rekindle.building.internal_operators import LETTER_AT
from rekindle.building.letters import compare_letters
from rekindle.ir.verifier import verify


def compared(a: str, i: int, b: str, j: int) -> Tuple[bool, bool, bool, bool, int]:
    x = a[i]
    return x == b[j], a[i] != b[j], x == "é", " " != b[j], ord(a[i])


def kept(a: str, i: int, b: str) -> Tuple[bool, bool, bool, str]:
    x = a[i]
    return x == "ab", x == b, x < "c", a[i]


def found(a: str, i: int) -> int:
    try:
        if a[i] == "b":
            return 1
    except IndexError:
        return -1
    return 0


def letters(function: Any) -> Tuple[int, int]:
    """Return how many characters are numbers, and how many are strings."""
    graph = rekindle.script(function).graph.copy()
    compare_letters(graph)
    verify(graph)
    kinds = [node.kind for node in graph.all_nodes()]
    return kinds.count(LETTER_AT), kinds.count("aten::__getitem__")


def test_which_characters_are_numbers() -> None:
    assert letters(compared) == (6, 0)
    assert letters(kept) == (0, 2)


TEXTS = ["abc", "éa€", "😀é x", "\x00b", "ab"]


def arguments_of(function: Any) -> List[Tuple[Any, ...]]:
    places = range(-5, 5)
    if function is found:
        return [(a, i) for a in TEXTS for i in places]
    if function is kept:
        return [(a, i, b) for a in TEXTS for b in TEXTS for i in places]
    return [(a, i, b, j) for a in TEXTS for b in TEXTS for i in places for j in (0, 1, i)]


@pytest.mark.parametrize("function", [compared, kept, found], ids=lambda function: function.__name__)
def test_values_and_errors(function: Any, tmp_path: Path) -> None:
    rekindle.build(rekindle.script(function), tmp_path, freestanding=True)
    library = rekindle.NativeLibrary(tmp_path)
    for arguments in arguments_of(function):
        try:
            expected = function(*arguments)
        except IndexError as error:
            with pytest.raises(IndexError, match=f"^{error}"):
                library(*arguments)
        else:
            assert library(*arguments) == expected
