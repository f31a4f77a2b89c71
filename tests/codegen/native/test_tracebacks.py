"""Errors within regions show the program's own lines."""

import traceback
from typing import List

import pytest

import rekindle
from rekindle.codegen.native import FormNativeRegions
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.runtime.strategies import simple_strategy


def total(xs: List[int], n: int) -> int:
    result = 0
    for i in range(n):
        result += xs[i]
    return result


def outer(xs: List[int], n: int) -> int:
    k = 2
    k += total(xs, n)
    return k


def test_the_functions_and_lines_of_the_program(monkeypatch):
    monkeypatch.setattr(simple_strategy, "OPTIMIZATION", (*OPTIMIZATION, FormNativeRegions()))
    compiled = rekindle.script(outer)
    assert compiled([1, 2, 3], 3) == 8
    assert "prim::NativeRegion" in str(rekindle.last_executed_graph())
    with pytest.raises(IndexError, match="list index out of range") as raised:
        compiled([1, 2, 3], 4)
    frames = traceback.extract_tb(raised.value.__traceback__)[-2:]
    assert [(frame.name, frame.line) for frame in frames] == [
        ("outer", "k += total(xs, n)"),
        ("total", "result += xs[i]"),
    ]
