"""``x == None`` is ``x is None``, except for objects whose class compares."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import pytest
import torch
from torch import Tensor

from tests.frontend.outcomes import agrees


class Always:
    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: Optional[Always]) -> bool:  # type: ignore[override]
        return True


class Plain:
    def __init__(self, n: int) -> None:
        self.n = n


def of_an_int(n: Optional[int]):
    return n == None, n != None, None == n, None != n, (n, 1) == (None, 1), n in (None, 3), n == 3


def of_a_variable(n: int):
    nothing: Optional[int] = None
    other = None
    return nothing == None, None != nothing, other == None, other != None, other == n, n == None


def of_a_string(key: str):
    known = {"a": "b"}
    return known.get(key) == None, None != known.get(key), key == None


def of_a_list(xs: Optional[List[int]], d: Optional[Dict[str, int]]):
    return xs == None, None == xs, None != xs, d == None, None == d


def of_a_tensor(x: Optional[Tensor]):
    if x == None:
        x = torch.zeros(2)
    return x.relu() + x, x == None, None != x


def of_an_object(n: int):
    maybe: Optional[Plain] = None
    if n > 1:
        maybe = Plain(n)
    return maybe == None, None != maybe, Plain(n) == None, Always(n) == None


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (of_an_int, [(None,), (0,), (3,)]),
        (of_a_variable, [(1,)]),
        (of_a_string, [("a",), ("b",)]),
        (of_a_list, [(None, {"a": 1}), ([], None)]),
        (of_a_tensor, [(None,), (torch.tensor([1.0, -1.0]),)]),
        (of_an_object, [(1,), (2,)]),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_as_eager(program: Any, calls: list[tuple[Any, ...]]) -> None:
    agrees(program, *calls)
