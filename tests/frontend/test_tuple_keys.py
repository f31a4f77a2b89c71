"""Dicts with tuples as keys, written as Python writes them: ``d[i, j]``."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import pytest

from tests.support.calls import assert_calls_agree


def filled(n: int):
    products = {}
    for i in range(n):
        for j in range(n):
            products[i, j] = i * j
    return products


def counted(words: List[str]):
    pairs = {}
    for i in range(len(words) - 1):
        pairs[words[i], words[i + 1]] = pairs.get((words[i], words[i + 1]), 0) + 1
    return pairs


def changed(n: int):
    d: Dict[Tuple[int, int], int] = {(n, 1): 3, (0, 7): 2}
    d[n, 1] += 2
    d[(n, 1)] *= 3
    del d[0, 7]
    return d, d[n, 1], d[(n, 1)]


def caught(n: int):
    d = {(1, 2): 3}
    try:
        return str(d[n, 2])
    except KeyError as error:
        return str(error)


def may_be_none(d: Optional[Dict[Tuple[int, int], int]], n: int):
    return d[n, 2]


def within(n: int):
    d = {"a": {(1, 2): n}}
    d["a"][n, 2] = 5
    d["a"][n, 2] *= 5
    return d["a"][1, 2]


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        *((each, ((0,), (1,), (3,))) for each in (filled, changed, caught, within)),
        (counted, ((["a", "b", "a", "b"],), ([],))),
        (may_be_none, (({(1, 2): 3}, 1), (None, 1), ({(1, 2): 3}, 2))),
    ],
)
def test_as_eager(program: Any, calls: Any) -> None:
    assert_calls_agree(program, *calls)
