"""``isinstance`` of classes that are not types of programs: what compiles returns what Python returns."""

from __future__ import annotations

import collections
import collections.abc
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Dict, List, Optional, Set, Tuple, Union

import pytest
import torch

import rekindle
from rekindle.errors import CompileError


def list_of_any(x: Any) -> bool:
    return isinstance(x, List)


def tuple_of_any(x: Any) -> bool:
    return isinstance(x, Tuple)


def list_by_its_full_name(x: Any) -> bool:
    return isinstance(x, typing.List)


def list_by_torch(x: Any) -> bool:
    return rekindle.isinstance(x, List)


def tuple_by_torch(x: Any) -> bool:
    return rekindle.isinstance(x, Tuple)


def list_or_int(x: Any) -> bool:
    return isinstance(x, (List, int))


def declared_list(x: list[int]) -> tuple[bool, bool, bool, bool]:
    return isinstance(x, List), isinstance(x, Sequence), isinstance(x, dict), isinstance(x, Hashable)


def declared_dict(x: dict[str, int]) -> tuple[bool, bool, bool, bool]:
    return isinstance(x, Dict), isinstance(x, dict), isinstance(x, Mapping), isinstance(x, set)


def declared_set(x: set[int]) -> tuple[bool, bool, bool]:
    return isinstance(x, Set), isinstance(x, dict), isinstance(x, Mapping)


def declared_tuple(x: tuple[int, int]) -> tuple[bool, bool, bool]:
    return isinstance(x, Tuple), isinstance(x, List), isinstance(x, Sequence)


def one_of_two(x: Union[list[int], int]) -> tuple[bool, bool, bool]:
    return isinstance(x, (List, str)), isinstance(x, Sequence), isinstance(x, collections.abc.Hashable)


def dict_or_tensor(x: Union[dict[str, torch.Tensor], torch.Tensor]) -> torch.Tensor:
    if isinstance(x, dict):
        return x["a"]
    return x


def refined(x: Optional[list[int]]) -> int:
    if isinstance(x, List):
        return x[0]
    return 0


def list_as_tuple_of_any_length(x: Optional[list[int]]) -> bool:
    return rekindle.isinstance(x, Tuple[int, ...])


def tuple_of_any_length(x: Tuple[int, ...]) -> tuple[bool, bool, bool]:
    return rekindle.isinstance(x, List[int]), rekindle.isinstance(x, Tuple[int, ...]), isinstance(x, tuple)


def pair_as_tuple_of_any_length(x: Union[Tuple[int, str], Tuple[int, int], List[int], int]) -> int:
    if rekindle.isinstance(x, Tuple[int, ...]):
        return 1
    if rekindle.isinstance(x, (int, List[int])):
        return 3
    return len(x)


PROGRAMS: list[tuple[Callable[[Any], Any], list[Any]]] = [
    (list_of_any, [[1], (1,), 1, None, "a"]),
    (tuple_of_any, [[1], (1,), 1]),
    (list_by_its_full_name, [[1], (1,)]),
    (list_by_torch, [[1], [], (1,)]),
    (tuple_by_torch, [[1], (), ("1", "2")]),
    (list_or_int, [[1], 1, 1.0]),
    (declared_list, [[1], []]),
    (declared_dict, [{"a": 1}]),
    (declared_set, [{1}]),
    (declared_tuple, [(1, 2)]),
    (one_of_two, [[1], 1]),
    (dict_or_tensor, [{"a": torch.ones(2)}, torch.zeros(2)]),
    (refined, [[5], None]),
    (list_as_tuple_of_any_length, [[1], [], None]),
    (tuple_of_any_length, [(1,), ()]),
    (pair_as_tuple_of_any_length, [(1, "a"), (1, 2), [1], 7]),
]


@pytest.mark.parametrize(("function", "inputs"), PROGRAMS, ids=lambda item: getattr(item, "__name__", ""))
def test_as_python(function: Callable[[Any], Any], inputs: list[Any]) -> None:
    compiled = rekindle.script(function)
    for value in inputs:
        expected, actual = function(value), compiled(value)
        assert torch.equal(actual, expected) if isinstance(expected, torch.Tensor) else actual == expected


def sequence_of_any(x: Any) -> bool:
    return isinstance(x, Sequence)


def dict_of_any(x: Any) -> bool:
    return isinstance(x, Dict)


def optional_of_any(x: Any) -> bool:
    return isinstance(x, Optional)  # type: ignore[arg-type]


def any_as_tuple_of_any_length(x: Any) -> bool:
    return rekindle.isinstance(x, Tuple[int, ...])


def any_as_size(x: Any) -> bool:
    return isinstance(x, torch.Size)


def tuple_of_any_length_as_pair(x: Tuple[int, ...]) -> bool:
    return rekindle.isinstance(x, Tuple[int, int])


def pair_of_several_types(x: Tuple[Union[int, str], int]) -> bool:
    return rekindle.isinstance(x, Tuple[int, ...])


REFUSED = [
    (any_as_tuple_of_any_length, "whether a value of type Any is an instance of Tuple[int, ...] cannot be asked"),
    (any_as_size, "whether a value of type Any is an instance of torch.Size cannot be asked"),
    (
        tuple_of_any_length_as_pair,
        "whether a value of type Tuple[int, ...] is an instance of Tuple[int, int] cannot be asked",
    ),
    (
        pair_of_several_types,
        "whether a value of type Tuple[Union[int, str], int] is an instance of Tuple[int, ...] cannot be asked",
    ),
    (sequence_of_any, "whether a value of type Any is an instance of 'Sequence' cannot be asked"),
    (dict_of_any, "whether a value of type Any is an instance of 'dict' cannot be asked"),
    (optional_of_any, "'Optional' needs the types of its elements here"),
]


@pytest.mark.parametrize(("function", "problem"), REFUSED, ids=lambda item: getattr(item, "__name__", ""))
def test_refused_where_no_check_at_run_time_knows_the_class(function: Callable[[Any], Any], problem: str) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.script(function)
    assert str(caught.value).splitlines()[0] == problem
    assert "isinstance(x" in str(caught.value)
