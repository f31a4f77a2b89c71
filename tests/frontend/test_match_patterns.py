"""``match``: patterns that bind the name of the subject, and patterns whose outcome the type does not determine."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union

import pytest

import rekindle
from rekindle.errors import TypeMismatchError, UnsupportedError


class Pair:
    def __init__(self, first: int, second: List[int]) -> None:
        self.first = first
        self.second = second


def class_into_its_name(n: int):
    pair = Pair(n, [n, 2])
    match pair:
        case Pair(first=pair, second=rest):
            return pair, rest
    return 0, [0]


def rest_into_its_name(d: Dict[str, int]):
    match d:
        case {"a": first, **d}:
            return first, len(d)
    return 0, len(d)


def empty_mapping(xs: List[int], d: Dict[str, int], n: int):
    kinds = [0, 0, 0]
    match xs:
        case {}:
            kinds[0] = 1
    match d:
        case {}:
            kinds[1] = 1
    match n:
        case {}:
            kinds[2] = 1
    return kinds


def number_or_list(x: Union[int, List[int]]):
    match x:
        case int():
            return x
        case [first, *rest]:
            return first + len(rest)
    return -1


def list_or_none(x: Optional[List[int]]):
    match x:
        case [a, b]:
            return a + b
        case [a, 2, *rest]:
            return a + len(rest) + 100
        case None:
            return -1
        case [first, *_]:
            return first
    return 0


def tuple_or_none(x: Optional[Tuple[int, str]], n: int):
    match x:
        case (5, text):
            return text
        case (k, text) if k < n:
            return text * k
        case None:
            return "nothing"
    return "other"


def looked_up(d: Dict[str, List[int]], key: str):
    match d.get(key):
        case [only]:
            return only
        case None:
            return -1
    return 0


def bound_though_the_guard_fails(n: int):
    k = 0
    match n:
        case k if k > 5:
            return k, 1
        case _:
            pass
    return k, 2


def bound_in_each_iteration(pair: Tuple[int, int], d: Dict[str, int]):
    last = -1
    for i in range(3):
        match pair:
            case (last, k) if k > i:
                continue
            case (_, last):
                pass
    match d:
        case {"a": first, **rest} if first > 5:
            return rest, first
        case _:
            pass
    return last, k, rest, first


def bound_for_a_nested_function(n: int):
    k = 0

    def inner() -> int:
        return k

    match n:
        case k if k > 5:
            return inner()
        case _:
            return inner() + 100


def guards_with_scopes(pair: Tuple[int, int], xs: List[int]):
    match pair:
        case (x, y) if any(x > y for x in xs):
            return x
        case (x, y) if sum([x + y for x in [x, *xs]]) > 7:
            return y
        case (x, y) if (lambda x, k=x: x + k + y)(3) > 2:
            return x + y
        case _:
            return 0


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        *((bound_though_the_guard_fails, (n,)) for n in (3, 7)),
        *((bound_in_each_iteration, (pair, {"a": a})) for pair in ((1, 2), (3, 0), (5, 5)) for a in (3, 7)),
        *((bound_for_a_nested_function, (n,)) for n in (3, 7)),
        *((guards_with_scopes, (pair, xs)) for pair in ((1, -2), (-9, 2), (2, 3)) for xs in ([1], [5, 3], [])),
        *((list_or_none, (x,)) for x in (None, [], [4], [1, 3], [1, 2], [1, 2, 3])),
        *((tuple_or_none, arguments) for arguments in (((5, "a"), 1), ((2, "b"), 3), ((4, "c"), 3), (None, 3))),
        *((looked_up, ({"a": [1], "b": []}, key)) for key in "abc"),
        (class_into_its_name, (3,)),
        (rest_into_its_name, ({"a": 1, "b": 2},)),
        (rest_into_its_name, ({"b": 2},)),
        (empty_mapping, ([1], {"a": 1}, 2)),
        (number_or_list, (3,)),
        (number_or_list, ([3, 4],)),
        (number_or_list, ([],)),
    ],
)
def test_patterns_match_as_in_python(function, arguments) -> None:
    assert rekindle.script(function)(*arguments) == function(*arguments)


def of_any(x: Any) -> int:
    match x:
        case [_, _]:
            return 1
    return 0


def of_optional(x: Optional[Union[List[int], str]]) -> int:
    match x:
        case [_, *_]:
            return 1
    return 0


@pytest.mark.parametrize(("function", "type"), [(of_any, "Any"), (of_optional, "Union(int[], NoneType, str)")])
def test_a_sequence_pattern_needs_a_known_type(function, type: str) -> None:
    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(function)
    assert caught.value.message == f"a sequence pattern cannot match a value of type {type}"
    assert caught.value.suggestion == "check it first: if isinstance(x, T) and T is a list or tuple"


def guard_that_assigns(n: int) -> int:
    match n:
        case k if (k := k + 1) > 5:
            return k
    return 0


def test_a_guard_assigns_no_name_of_its_pattern() -> None:
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(guard_that_assigns)
    assert caught.value.message == "A guard that assigns a name of its pattern is not supported."
    assert caught.value.suggestion == "Give the new value another name."
