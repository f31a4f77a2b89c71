"""``script`` of lists, dicts and objects: programs and Python share them, and they stay of one type."""

from __future__ import annotations

import copy
import pickle
from typing import Dict, List

import pytest
import torch

import rekindle
from rekindle.errors import NotScriptableError
from tests.support.messages import message_of


@rekindle.script
def grown(xs: List[int], n: int) -> List[int]:
    xs.append(n)
    return xs


@rekindle.script
def counted(d: Dict[str, float], key: str) -> int:
    d[key] = 0.5
    return len(d)


class Point:
    def __init__(self, x: int) -> None:
        self.x = x

    def moved(self, by: int) -> int:
        self.x += by
        return self.x


@rekindle.script
def move(point: Point) -> int:
    return point.moved(10)


def test_what_programs_write_python_sees() -> None:
    xs = rekindle.script([1, 2])
    assert grown(xs, 3) is xs
    assert xs == [1, 2, 3]
    assert rekindle.script(xs) is xs
    d = rekindle.script({"a": 1.0})
    assert (counted(d, "b"), d) == (2, {"a": 1.0, "b": 0.5})


def test_they_are_copies_with_pythons_methods() -> None:
    given = [3, 1, 2]
    xs = rekindle.script(given)
    xs.sort()
    xs[0:1] = [7, 8]
    xs += [9]
    xs.insert(0, 0)
    xs.extend(range(2))
    del xs[1]
    assert (xs, given) == ([0, 8, 2, 3, 9, 0, 1], [3, 1, 2])
    assert (xs.count(0), xs.index(9), 5 in xs, xs.pop(), xs[1:3]) == (2, 4, False, 1, [8, 2])
    xs.remove(9)
    assert repr(xs) == "[0, 8, 2, 3, 0]"
    d = rekindle.script({"a": 1.0})
    d |= {"b": 2}
    assert (d.setdefault("c", 3), d.setdefault("a", 9.0)) == (3.0, 1.0)
    assert d.setdefault("a") == 1.0
    d.update(d=4.0)
    del d["b"]
    assert repr(d) == "{'a': 1.0, 'c': 3.0, 'd': 4.0}"
    for made in (xs, d):
        for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):  # noqa: S301 (our own)
            assert (other, type(other), other.script_type) == (made, type(made), made.script_type)


def test_values_of_other_types_are_refused() -> None:
    xs, d = rekindle.script([1]), rekindle.script({"a": 1.0})
    assert message_of(TypeError, lambda: xs.append("b")) == "an item of the list takes int, but got a str: 'b'"
    assert message_of(TypeError, lambda: d.update({1: 2.0})) == "a key of the dict takes str, but got an int: 1"
    assert (
        message_of(TypeError, lambda: d.setdefault("b", [1])) == "a value of the dict takes float, but got a list: [1]"
    )
    for change in (
        lambda: xs.insert(0, None),
        lambda: xs.extend([2, "c"]),
        lambda: xs.remove("c"),
        lambda: xs.index("c"),
        lambda: xs.count("c"),
        lambda: xs.__setitem__(0, "c"),
        lambda: xs.__setitem__(slice(0, 1), ["c"]),
        lambda: "c" in xs,
        lambda: d.__setitem__("a", "c"),
        lambda: d.__delitem__(1),
    ):
        with pytest.raises(TypeError):
            change()
    assert (xs, d) == ([1], {"a": 1.0})
    with pytest.raises(KeyError):
        d["b"]


def test_containers_of_several_types_have_none() -> None:
    text = message_of(NotScriptableError, lambda: rekindle.script([1, object()]))
    assert text.startswith("a list cannot be compiled: ")
    assert rekindle.script([]).script_type.annotation == "List[Tensor]"
    rekindle.script([]).append(torch.ones(1))


def test_objects_of_classes() -> None:
    point = Point(1)
    assert rekindle.script(point) is point
    assert (move(point), point.x) == (11, 11)
    with rekindle.installed():
        assert torch.jit.script(point) is point
