"""How answers are compared, and which inputs are made up."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import pytest
import torch

import rekindle
from rekindle.doctor.comparison import copied, difference, is_plain
from rekindle.doctor.inputs import NotGenerated, generated


class Result(NamedTuple):
    x: torch.Tensor
    n: int


@pytest.mark.parametrize(
    ("expected", "found", "text"),
    [
        (1, 1, None),
        (1, 1.0, "int in eager, float here"),
        (float("nan"), float("nan"), None),
        ([1, 2], [1, 3], "[1]: 2 in eager, 3 here"),
        ([1], [1, 2], "1 items in eager, 2 here"),
        ((1,), [1], "tuple in eager, list here"),
        ({"a": 1}, {"a": 2}, "['a']: 1 in eager, 2 here"),
        ({"a": 1}, {"b": 1}, "the keys ['a'] in eager, ['b'] here"),
        (torch.ones(2), torch.ones(2) + 1e-7, None),
        (Result(torch.ones(1), 1), Result(torch.ones(1), 2), "[1]: 1 in eager, 2 here"),
        (None, torch.ones(1), "NoneType in eager, Tensor here"),
    ],
)
def test_differences(expected: Any, found: Any, text: str | None) -> None:
    assert difference(expected, found) == text


def test_tensors_that_differ() -> None:
    for found in (torch.ones(2) + 0.1, torch.ones(3), torch.ones(2, dtype=torch.float64)):
        assert difference(torch.ones(2), found) is not None


def test_copies() -> None:
    x = torch.ones(2, requires_grad=True)
    (y,), other = copied(([x * 1], {"a": [x]}))
    assert y is not x
    assert y.requires_grad
    assert other["a"][0].requires_grad
    assert is_plain([x, {"a": (1, None)}])
    assert not is_plain([object()])


def schema_of(source: str) -> Any:
    return rekindle.CompilationUnit(source).f.schema


def test_generated_inputs() -> None:
    first = next(
        generated(
            schema_of("def f(x, n: int, s: float, t: Tuple[str, List[int]], o: Optional[bool], d: int=1): return x")
        )
    )
    assert first[1:] == [1, 0.5, ("a", [1, 1]), True]
    assert list(first[0].shape) == [4, 4]
    assert [len(each) for each in generated(schema_of("def f(n: int): return n"))] == [1]


def test_inputs_that_are_not_made_up() -> None:
    @rekindle.script
    def f(m: Optional[torch.dtype]) -> int:
        return 1

    with pytest.raises(NotGenerated, match=r"which the parameter 'm' has$"):
        next(generated(f.schema))
