"""An OrderedDict that a program changes keeps its keys in order: its methods are called, not those of dict."""

from collections import OrderedDict
from typing import Any, Callable, List, OrderedDict as OrderedDictOf, Tuple

import pytest

import rekindle


def pops(d: OrderedDictOf[str, int]) -> int:
    return d.pop("a") + d.pop("z", 5)


def clears(d: OrderedDictOf[str, int]) -> None:
    d.clear()


def updates(d: OrderedDictOf[str, int]) -> None:
    d.update({"q": 1})


def sets_defaults(d: OrderedDictOf[str, int]) -> int:
    return d.setdefault("q", 2)


def pops_items(d: OrderedDictOf[str, int]) -> Tuple[str, int]:
    return d.popitem()


def moves(d: OrderedDictOf[str, int]) -> List[str]:
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    return list(d)


@pytest.mark.parametrize("function", [pops, clears, updates, sets_defaults, pops_items, moves])
def test_the_order_is_kept(function: Callable[..., Any]) -> None:
    compiled = rekindle.script(function)
    for _ in range(3):
        expected, found = OrderedDict(a=1, b=2, c=3), OrderedDict(a=1, b=2, c=3)
        assert compiled(found) == function(expected)
        assert list(found.items()) == list(expected.items())
        assert list(reversed(found)) == list(reversed(expected))
