"""What raises in Python raises in a program, though its result is not used."""

from __future__ import annotations

import math
from typing import Any, Dict, List

import pytest
import torch

import rekindle


def missing_key(d: Dict[str, int], l: List[int]):
    d["q"]
    return 1


def missing_item(d: Dict[str, int], l: List[int]):
    l[7]
    return 1


def divided_number_of_a_tensor(d: Dict[str, int], l: List[int]):
    n = torch.ones(1).item()
    n // 0
    return 1


def power_of_a_number_of_a_tensor(d: Dict[str, int], l: List[int]):
    torch.full((1,), 1e200, dtype=torch.float64).item() ** 2
    return 1


def power_of_floats(d: Dict[str, int], l: List[int]):
    (1e300 + len(l)) ** 2
    return 1


def power_of_math(d: Dict[str, int], l: List[int]):
    math.pow(1e300, 2)
    return 1


def no_number(d: Dict[str, int], l: List[int]):
    int("a")
    return 1


def no_logarithm(d: Dict[str, int], l: List[int]):
    n = math.log(float(len(d)))
    return 1


def divided(d: Dict[str, int], l: List[int]):
    k = 1 // len(l)
    return 1


def powers(d: Dict[str, int], l: List[int]):
    if 0.0 ** (-1):
        pass
    return 1


def removed_from_a_list_of_its_own(d: Dict[str, int], l: List[int]):
    c: List[int] = []
    c.remove(1)
    return 1


def changed_item_of_a_list_of_its_own(d: Dict[str, int], l: List[int]):
    c: List[int] = []
    c[0] *= 2
    return 1


def too_few(d: Dict[str, int], l: List[int]):
    a, b = l
    return 1


def greatest_of_nothing(d: Dict[str, int], l: List[int]):
    a = max(l)
    return 1


def in_a_loop(d: Dict[str, int], l: List[int]):
    for i in range(3):
        l[i]
    return 1


def in_order(d: Dict[str, int], l: List[int]):
    a = math.log(0)
    d["q"] += 1
    return 1


def without_a_step(d: Dict[str, int], l: List[int]):
    for i in range(3, 7, len(l)):
        pass
    return 1


PROGRAMS = (
    *(missing_key, missing_item, no_number, no_logarithm, divided, powers, removed_from_a_list_of_its_own),
    *(changed_item_of_a_list_of_its_own, too_few, greatest_of_nothing, in_a_loop, in_order, without_a_step),
    *(divided_number_of_a_tensor, power_of_a_number_of_a_tensor, power_of_floats, power_of_math),
)


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_raises_as_python_does(program: Any, optimized: bool) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - its class and text are what is compared
        program({}, [])
    compiled = rekindle.script(program)
    for _ in range(2):
        with rekindle.optimized_execution(optimized), pytest.raises(type(expected.value)) as raised:
            compiled({}, [])
        assert str(raised.value) == str(expected.value)


def writes_before_it_fails(x: torch.Tensor, d: Dict[str, int]):
    y = (x * 2 + x).relu()
    x += 1
    v = d["a"]
    w = y.exp() * y * v
    x += 1
    return w


@pytest.mark.parametrize("optimized", [False, True])
def test_what_was_written_before_the_error_is_seen(optimized: bool) -> None:
    compiled = rekindle.script(writes_before_it_fails)
    for _ in range(3):
        x = torch.ones(2)
        with rekindle.optimized_execution(optimized), pytest.raises(KeyError):
            compiled(x, {})
        assert x.tolist() == [2.0, 2.0]


def counts(l: List[int], d: Dict[str, int], x: torch.Tensor):
    n = 0
    for v in l:
        n += 1
    for i, v in enumerate(l):
        n += i
    for v, w in zip(l, [1, 2, 3]):
        n += 1
    for k, v in d.items():
        n += 1
    a, b = x.shape
    half = n // 2
    return n


def test_what_cannot_raise_goes() -> None:
    compiled = rekindle.script(counts)
    assert compiled([4, 5], {"a": 1}, torch.ones(2, 2)) == 6
    kinds = {node.kind for node in compiled.graph.all_nodes()}
    assert not kinds & {"aten::__getitem__", "aten::floordiv", "prim::ListUnpack"}
