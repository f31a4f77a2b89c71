"""``dict(name=value, **others)`` makes what the literal makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, List, Optional

import pytest
import torch
from torch import Tensor

import rekindle
from tests.support.calls import assert_calls_agree


def of_several_numbers(x: Tensor):
    found = dict(loss=0.0, n=0)
    for row in x:
        found["loss"] += row.sum().item()
        found["n"] += 1
    return found, dict(loss=0.0, n=0)


def tensors_later(x: Tensor):
    found = dict(loss=0.0, n=0)
    for row in x:
        found["loss"] += row.sum()
        found["n"] += 1
    return found


def of_empty_lists(x: Tensor):
    found = dict(sums=[], largest=[])
    for row in x:
        found["sums"].append(row.sum())
        found["largest"].append(row.max())
    return found


def expanded(x: Tensor, given: Dict[str, Tensor]):
    return dict(**given), dict(given, **dict(a=x * 2, z=x)), dict(given, a=x)


def of_pairs(x: Tensor):
    return dict([("a", 1)], b=2), dict([("a", 1)], **{"b": 2, "c": 3})


def declared(x: Tensor) -> Dict[str, Optional[Tensor]]:
    return dict(a=x, b=None)


def of_functions(x: Tensor):
    functions = dict(relu=torch.relu, next=lambda value: value + 1)
    return functions["next"](x)


def name_of_a_function(x: Tensor):
    def dict(a: Tensor):
        return a + 1

    made = dict(a=x)
    return made + 1


X = torch.tensor([[1.0, -2.0], [0.5, 4.0]])


@pytest.mark.parametrize(
    "function",
    [of_several_numbers, tensors_later, of_empty_lists, of_pairs, declared, of_functions, name_of_a_function],
)
def test_the_dict_is_that_of_python(function: Callable[..., Any]) -> None:
    assert_calls_agree(function, (X,), (X[:0],))


def test_dicts_are_expanded() -> None:
    assert_calls_agree(expanded, (X, {"a": X - 1, "q": X}), (X, {}))


def expanded_beside_others(x: Tensor, given: Dict[str, Tensor]):
    return dict(first=x, **given)


def test_keys_that_may_be_given_twice_are_refused() -> None:
    with pytest.raises(rekindle.errors.UnsupportedError) as caught:
        rekindle.script(expanded_beside_others)
    assert caught.value.message == (
        "dict(…) with '**' beside other keyword arguments raises in Python where a key is given twice, which is not "
        "looked for here"
    )
    assert caught.value.hint == "write {'name': value, **others}, where the last of several items with one key counts"


def comprehension(x: Tensor):
    return max([row.sum() for row in x]), min([row.sum() for row in x]), any([row.sum() > 3 for row in x])


def generator(x: Tensor):
    return max(row.sum() for row in x), min(row.sum() for row in x), all([row.sum() > -9 for row in x])


def of_tensors_and_numbers(x: Tensor):
    mixed = [x.sum(), 1.5, 7]
    return max(mixed), min(mixed), any(mixed), all(mixed), max([0.0, x[0, 1]]), min([x[0, 1], float("nan")])


def values_of_a_dict(x: Tensor):
    found = {"a": x.sum(), "b": 2}
    return max(found.values()), min(found.values())


def growing(x: Tensor):
    sums = [0.0]
    for row in x:
        sums.append(row.sum())
    return max(sums), min(sums)


def rows(x: Tensor):
    return max([row for row in x])


def of_numbers(x: Tensor):
    numbers: List[float] = x.flatten().tolist()
    return max([n * 2 for n in numbers]), min(n for n in numbers), any([n > 3 for n in numbers]), max([[1], [0]])


def _outcome(function: Callable[..., Any], x: Tensor) -> str:
    try:
        return repr(function(x))
    except (RuntimeError, ValueError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "function", [comprehension, generator, of_tensors_and_numbers, values_of_a_dict, growing, rows, of_numbers]
)
def test_extremes_of_lists_of_tensors(function: Callable[..., Any]) -> None:
    compiled = rekindle.script(function)
    for x in (X, torch.zeros(2, 2), X[:0], X):
        assert _outcome(compiled, x).partition("\n")[0] == _outcome(function, x)
