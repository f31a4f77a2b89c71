"""Unions of a number and a container, such as ``_size_2_t``: used as the container, as in Python, which raises where it
is the number."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union

import pytest
import torch
from torch import Tensor
from torch.nn.common_types import _size_2_t

import rekindle
from rekindle.errors import CompileError


def added(x: _size_2_t) -> int:
    return x[0] + x[1]


def unpacked(x: _size_2_t) -> int:
    a, b = x
    return a * b


def looped(x: Union[int, List[int]]) -> int:
    total = 0
    for item in x:
        total += item
    return total + len(x) + x[-1]


def looked_up(x: Union[float, Dict[str, float]]) -> float:
    return x["a"]  # type: ignore[index]


def sliced(x: Union[str, int, bool]) -> Tuple[str, int]:
    return x[1:], len(x)  # type: ignore[index, arg-type]


def refined(x: _size_2_t) -> int:
    if isinstance(x, int):
        return x
    return x[0] + x[1]


def or_none(x: Optional[_size_2_t], i: int) -> int:
    return x[i]  # type: ignore[index]


def passed_on(x: _size_2_t, y: Tensor) -> Tuple[List[int], int]:
    return list(torch.nn.functional.avg_pool2d(y, x).shape), x[0]


def listed(x: _size_2_t) -> Any:
    return [item + 1 for item in x], list(x), sum(x), max(x), 3 in x


IMAGES = torch.arange(16.0).view(1, 4, 4)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        *((program, [((1, 2),), (4,)]) for program in (added, unpacked, refined, listed)),
        (looped, [([1, 2],), (3,)]),
        (looked_up, [({"a": 2.0},), (2.0,)]),
        (sliced, [("abc",), (3,), (True,)]),
        (or_none, [((1, 2), 1), (None, 0), (3, 0)]),
        (passed_on, [((2, 1), IMAGES), (2, IMAGES)]),
    ],
)
def test_is_what_python_does(program: Any, arguments: List[Tuple[Any, ...]]) -> None:
    ours = rekindle.script(program)
    for args in arguments:
        for _ in range(3):
            assert _outcome(ours, args) == _outcome(program, args)


def _outcome(program: Any, args: Tuple[Any, ...]) -> Any:
    try:
        return program(*args)
    except TypeError as error:
        return str(error)


def test_of_two_containers_nothing_is_known() -> None:
    def item(x: Union[List[int], Dict[int, int]]) -> int:
        return x[0]

    with pytest.raises(CompileError, match="cannot be indexed"):
        rekindle.script(item)
