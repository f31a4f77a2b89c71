"""A list or dict that has to be converted at a call is a copy: a function that writes to it does not take it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch

import rekindle


def sets_item(values: List[float]):
    values[0] = 7.0
    return values[0]


def appends(values: List[float]):
    values.append(0.5)
    return len(values)


def calls(values: List[float]):
    return appends(values)


def through_an_alias(values: List[float]):
    other = values
    other.append(1.0)
    return other[0]


def sets_value(values: Dict[str, float]):
    values["a"] = 7.0
    return values["a"]


def within(values: List[List[float]]):
    values[0][0] = 7.0
    return len(values)


def within_a_tuple(values: Tuple[List[float], int]):
    values[0][0] = 7.0
    return values[1]


def optional(values: Optional[List[float]]):
    if values is not None:
        values.append(1.0)
    return 0


def of_ints(values: List[int]):
    values.append(1)
    return len(values)


def reads(values: List[float]):
    return sum(values) + values[0]


REFUSED = [
    *((program, [1, 2]) for program in (sets_item, appends, calls, through_an_alias, optional)),
    *((sets_value, {"a": 1}), (within, [[0.5], [1, 2]]), (within_a_tuple, ([1], 2)), (of_ints, [True])),
]
TAKEN = [
    *((program, [1.0, 2.0]) for program in (sets_item, appends, calls, through_an_alias, optional)),
    *((sets_value, {"a": 1.0}), (within, [[0.5], [1.0]]), (within_a_tuple, ([1.0], 2)), (of_ints, [1])),
    *((optional, None), (of_ints, (1, 2)), (within_a_tuple, [[1.0], 2])),
]


@pytest.mark.parametrize(("program", "value"), REFUSED)
def test_a_converted_copy_is_refused(program: Callable[..., Any], value: Any) -> None:
    compiled = rekindle.script(program)
    for _ in range(3):
        before = repr(value)
        with pytest.raises(rekindle.errors.ArgumentError, match="would write to a copy"):
            compiled(value)
        assert repr(value) == before


@pytest.mark.parametrize(("program", "value"), TAKEN)
def test_what_fits_is_passed_as_it_is(program: Callable[..., Any], value: Any) -> None:
    compiled = rekindle.script(program)
    mine, theirs = copy.deepcopy(value), copy.deepcopy(value)
    for _ in range(3):
        if isinstance(value, tuple) and program is of_ints:
            assert compiled(mine) == 3
        else:
            assert repr(compiled(mine)) == repr(program(theirs))
        assert repr(mine) == repr(theirs)


def test_a_function_that_only_reads_takes_a_copy() -> None:
    assert repr(rekindle.script(reads)([1, 2])) == "4.0"


def test_the_error() -> None:
    with pytest.raises(rekindle.errors.ArgumentError) as caught:
        rekindle.script(appends)([1, 2])
    assert str(caught.value) == (
        "appends() argument 'values' (position 1) takes List[float], but got a list: [1, 2]: the function writes to "
        "the argument, and would write to a copy, in which an int: 1 is converted\n"
        "Signature: appends(values: List[float]) -> int\n"
        "Hint: pass a list that holds the declared types"
    )


def test_methods() -> None:
    class Keeps(torch.nn.Module):
        def forward(self, values: List[float]):
            values.append(1.0)
            return len(values)

    compiled = rekindle.script(Keeps())
    assert compiled([0.5]) == 2
    with pytest.raises(rekindle.errors.ArgumentError, match="would write to a copy"):
        compiled([1])


def test_archives_copy_as_torchscript_does(tmp_path: Any) -> None:
    path = tmp_path / "appends.pt"
    rekindle.save(rekindle.script(appends), path)
    assert rekindle.load(path)([1, 2]) == torch.jit.load(str(path))([1, 2]) == 3
