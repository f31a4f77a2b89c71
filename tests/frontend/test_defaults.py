"""Defaults of other types than the values of a dict, and extremes of other values than numbers: Python's results."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Dict, List, Optional

import pytest
import torch
from torch import Tensor, nn

import rekindle


def got_number(d: Dict[str, float], k: str):
    return d.get(k, 0), d.get(k, None), d.get(k), d.get(k, "none"), d.get(k, 2.5)


def got_optional(d: Dict[str, float], k: str) -> Optional[float]:
    found = d.get(k, None)
    return None if found is None else found * 2


def popped(d: Dict[str, float], k: str):
    return d.pop(k, None), d.pop(k, 0), d.pop("b", 7), d


def of_literals(d: Dict[str, float], k: str):
    numbers = {"a": 1.5}
    numbers["b"] = 1
    lists = {"a": [1]}
    return numbers, numbers.get(k, 0), numbers.pop(k, None), lists.get(k, []), lists.get(k, None), lists.pop(k, [2])


def of_tensors(d: Dict[str, float], k: str):
    tensors = {"a": torch.ones(2)}
    return tensors.get(k, 0), tensors.get("zz", None), tensors.pop(k, torch.zeros(1)) + 1


def of_ints(d: Dict[str, float], k: str):
    names = {1: 2}
    return names.get(1, 0.5), names.get(3, 0.5), names.pop(1, 0.5), names.pop(7, 0.5), names.get(9, "a")


def of_tuples(d: Dict[str, float], k: str):
    places = {(1, "a"): 2.0}
    return places.get((1, k), 0), places.pop((1, k), None), len(places)


def counted(d: Dict[str, float], k: str):
    counts = {}
    for letter in k + "ab":
        counts[letter] = counts.get(letter, 0) + 0.5
    return counts


def of_open_numbers(d: Dict[str, float], k: str):
    counts, flags, odd = {"a": 1}, {"a": 7}, {1: 2}
    number = torch.tensor(d["b"]).item()
    least = min(number, len(k), 9)
    found = counts.get(k, number), counts.pop(k, least), flags.get(k, k == "q"), odd.get(number, number)
    return found, counts, flags.pop(k, number) * 2


def extremes(d: Dict[str, float], k: str):
    return max(k, "b"), min("a", k, "c"), max((1, 2), (1, 3)), min([1, 2], [0, 5], [3]), max((1, k), (1, "b"))


PROGRAMS = (
    *(got_number, got_optional, popped, of_literals, of_tensors, of_ints, of_tuples, of_open_numbers, counted),
    extremes,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("key", ["a", "q"])
def test_programs(program: Callable[..., Any], key: str) -> None:
    given = {"a": 1.5, "b": 2.0}, {"a": 1.5, "b": 2.0}
    compiled = rekindle.script(program)
    for _ in range(3):
        assert repr(compiled(copy.deepcopy(given[0]), key)) == repr(program(copy.deepcopy(given[1]), key))


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.table = {"a": 1}

    def forward(self, w: Dict[str, int]):
        self.count += w.get("b", self.count)
        found = self.table.get("b", self.count)
        self.count -= 2.5
        return found


def test_the_default_is_an_attribute_that_becomes_a_float() -> None:
    module, compiled = Table(), rekindle.script(Table())
    for given in ({"b": 3}, {}, {"b": -1}, {}):
        assert repr(compiled(given)) == repr(module(given))
        assert repr(compiled.count) == repr(module.count)


def put_float(ns: List[int], x: Tensor) -> None:
    ns.append(0.5)


def test_a_float_in_a_list_of_ints_is_refused() -> None:
    with pytest.raises(rekindle.errors.CompileError, match=r"type variable 't' cannot be both int and float"):
        rekindle.script(put_float)
