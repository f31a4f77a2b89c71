"""Machine code finds the values that need no conversion, and no others."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch

from rekindle.codegen.plan_runtime.library import plan_library
from rekindle.ir.text.type_parser import parse_type
from rekindle.runtime.calls.type_checks import is_checkable, type_check


class Pair(NamedTuple):
    left: int
    right: float


class Text(str):
    pass


PARAMETER = torch.nn.Parameter(torch.ones(1))
CASES: list[tuple[str, list[Any], list[Any]]] = [
    ("int[]", [[], [1, 2**80]], [[1, True], [1.0], (1, 2), None, [None]]),
    ("float[]", [[1.5, float("nan")]], [[1.5, 2], [torch.tensor(1.0)]]),
    ("str[]", [["a", ""]], [["a", b"b"], "ab", [Text("a")]]),
    ("bool[][]", [[], [[]], [[True], [False, True]]], [[[True], [0]], [[True], (False,)], [True]]),
    ("Tensor[]", [[torch.ones(1)], []], [[PARAMETER], [torch.ones(1), 1]]),
    ("(int, float)[]", [[(1, 2.0)]], [[(1, 2.0, 3)], [(1, 2)], [[1, 2.0]], [Pair(1, 2.0)], [(1,)]]),
    ("int[]?", [None, [1]], [[None], 0, [1.0]]),
    ("Dict(str, int[])", [{}, {"a": [1]}], [{"a": [1.0]}, {1: [1]}, {"a": None}, OrderedDict(a=[1]), [("a", [1])]]),
    ("(int, (str, Tensor?)[])", [(1, [("a", None), ("b", torch.ones(1))])], [(1, [("a", 1)]), (1, ["ab"])]),
    ("Device[]", [[torch.device("cpu")]], [["cpu"]]),
]


@pytest.mark.skipif(plan_library() is None, reason="native plans are made for CPython and x86-64 on Linux")
@pytest.mark.parametrize(("text", "fitting", "others"), CASES, ids=[text for text, _, _ in CASES])
def test_values_that_are_of_a_type(text: str, fitting: list[Any], others: list[Any]) -> None:
    type = parse_type(text)
    assert is_checkable(type)
    check = type_check(type)
    assert check is not None
    assert [check(value) for value in fitting] == [True] * len(fitting)
    assert [check(value) for value in others] == [False] * len(others)


@pytest.mark.parametrize("text", ["Any[]", "Union(int, str)[]", "Tensor(*, 2)[]"])
def test_types_that_python_checks(text: str) -> None:
    assert not is_checkable(parse_type(text))
