"""Sets as Python's user sees them: in results of several types, in arguments that a program writes to, and refusals
where Python would see the dict that a set is to a program."""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Deque, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple, Union

import pytest

import rekindle
from rekindle.errors import ArgumentError, CompileError


class Pair(NamedTuple):
    first: Set[int]
    second: int


@dataclass
class Holder:
    items: Set[int]


def in_tuples_of_several_lengths(n: int):
    if n:
        return (1, {7}, [0.5])
    return (1.0, {7, 8})


def in_tuples_of_several_types(n: int) -> Union[Tuple[Set[int], int], Tuple[int, Set[int]]]:
    if n:
        return ({n}, 1)
    return (1, {n})


def of_several_elements(n: int):
    if n:
        return (1, {7})
    return (1, {"a"})


def in_a_dict_or_alone(n: int) -> Union[Dict[str, Set[int]], Set[str]]:
    if n:
        return {"a": {1}}
    return {"a"}


def in_lists_of_several_types(n: int) -> Union[List[Set[int]], List[Set[str]]]:
    return [{n}] if n else [{"1"}]


def in_an_empty_list(n: int) -> Union[List[Set[int]], List[Set[str]]]:
    made: List[Set[int]] = []
    return made if n else [{"1"}]


def named_or_plain(n: int):
    if n:
        return Pair({1}, 1)
    return ({1}, 1)


@pytest.mark.parametrize(
    "program",
    [
        in_tuples_of_several_lengths,
        in_tuples_of_several_types,
        of_several_elements,
        in_a_dict_or_alone,
        in_lists_of_several_types,
        in_an_empty_list,
        named_or_plain,
    ],
)
def test_results_of_several_types(program: Callable[[int], Any]) -> None:
    compiled = rekindle.script(program)
    for n in (1, 0, 1, 0):
        assert repr(compiled(n)) == repr(program(n))


def in_a_defaultdict(n: int):
    found = defaultdict(set)
    found["a"].add(n)
    return found


def test_a_defaultdict_makes_sets() -> None:
    found = rekindle.script(in_a_defaultdict)(3)
    assert repr(found) == repr(in_a_defaultdict(3))
    found["b"].add(1)


def set_or_frozenset(n: int) -> Union[Set[int], FrozenSet[int]]:
    return {n} if n else frozenset([n])


def set_or_dict(n: int):
    if n:
        return (1, {7})
    return (1, {7: True})


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (set_or_frozenset, "a Set[int] or a FrozenSet[int]"),
        (set_or_dict, "a Tuple[int, Set[int]] or a Tuple[int, Dict[int, bool]]"),
    ],
)
def test_what_is_not_told_apart_raises(program: Callable[[int], Any], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        rekindle.script(program)(1)
    assert str(caught.value) == (
        f"the result is {text}, which a program does not distinguish\nHint: return values of one class"
    )


def joined(n: int):
    return {n} if n else {n: True}


def joined_kinds(n: int):
    return frozenset([n]) if n else {n}


def joined_lists(n: int):
    return deque([n]) if n else [n]


@pytest.mark.parametrize(
    ("program", "types"),
    [
        (joined, "Set[int] if the condition holds, Dict[int, bool] if not"),
        (joined_kinds, "FrozenSet[int] if the condition holds, Set[int] if not"),
        (joined_lists, "Deque[int] if the condition holds, List[int] if not"),
    ],
)
def test_values_of_several_classes_are_not_joined(program: Callable[[int], Any], types: str) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.script(program)
    assert str(caught.value).startswith(f"the branches of this expression have different types: {types}\n")


def adds_to_optional(s: Optional[Set[int]]):
    if s is not None:
        s.add(4)
    return s


def adds_to_optional_deque(s: Optional[Deque[int]]):
    if s is not None:
        s.append(4)
    return s


@pytest.mark.parametrize(
    ("program", "given"),
    [(adds_to_optional, {1}), (adds_to_optional, None), (adds_to_optional_deque, deque([1]))],
)
def test_optional_arguments_are_written_to(program: Callable[[Any], Any], given: Any) -> None:
    mine, theirs = copy.deepcopy(given), copy.deepcopy(given)
    assert repr(rekindle.script(program)(mine)) == repr(program(theirs))
    assert repr(mine) == repr(theirs)


def adds_in_a_tuple(pair: Tuple[Set[int], int]):
    pair[0].add(4)
    return pair[1]


def adds_in_a_named_tuple(pair: Pair):
    pair.first.add(4)
    return pair.second


def reads_in_a_named_tuple(pair: Pair):
    return 1 in pair.first


def test_sets_within_arguments() -> None:
    with pytest.raises(ArgumentError) as caught:
        rekindle.script(adds_in_a_tuple)(({1}, 2))
    assert str(caught.value) == (
        "adds_in_a_tuple() argument 'pair' (position 1) takes Tuple[Set[int], int], but got a tuple: ({1}, 2): the "
        "function writes to the argument, and would write to copies of the sets and deques within it\n"
        "Signature: adds_in_a_tuple(pair: Tuple[Set[int], int]) -> int\n"
        "Hint: pass a set: {1} as an argument of its own"
    )
    with pytest.raises(ArgumentError, match="would write to copies of the sets"):
        rekindle.script(adds_in_a_named_tuple)(Pair({1}, 2))
    assert rekindle.script(reads_in_a_named_tuple)(Pair({1}, 2)) is True


@rekindle.ignore
def is_a_set(s: Set[int]) -> bool:
    return isinstance(s, set)


def gives_to_python(n: int):
    return is_a_set({n})


def kept_in_an_object(n: int):
    return 1 in Holder({n}).items


def as_any(n: int) -> List[Any]:
    return [{n}, 1]


def as_any_in_a_dict(n: int) -> Dict[str, Any]:
    return {"a": {n}, "b": 1}


def raised(n: int):
    raise ValueError({n})


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (gives_to_python, "the Python function 'is_a_set' would be given a dict in place of the Set[int]"),
        (
            kept_in_an_object,
            (
                "attribute 'items' of 'Holder' is a Set[int]; objects hold no sets, "
                "since Python would see something else in them"
            ),
        ),
        (as_any, "expected Any here, and a Set[int] would be a dict to Python as Any"),
        (as_any_in_a_dict, "expected Any here, and a Set[int] would be a dict to Python as Any"),
        (raised, "the text of a set depends on the order of its elements, which is known only to Python"),
    ],
)
def test_refused_where_python_would_see_a_dict(program: Callable[[int], Any], text: str) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.script(program)
    assert str(caught.value).partition("\n")[0] == text
