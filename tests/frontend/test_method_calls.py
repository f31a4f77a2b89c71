"""Methods whose arguments Python takes in more forms than the operators."""

from typing import Any, Dict, List, Tuple

import pytest
import torch
from torch import Tensor

from tests.frontend.outcomes import agrees


def extended(n: int) -> List[int]:
    x: List[int] = []
    x.extend(range(n))
    x.extend(range(5, n, -1))
    x.extend((n, 2))
    x.extend(i * i for i in range(n))
    x.extend(map(lambda q: q + 1, [n]))
    x.extend({n: 1})
    x += range(n)
    return x


def extended_by_texts(s: str, d: Dict[str, int]) -> List[str]:
    x = ["q"]
    x.extend(s)
    x.extend(d)
    x.extend(d.keys())
    x += s
    x += d
    x.extend(reversed(x))
    x.extend(sorted(s))
    return x


def extended_by_pairs(x: List[Tuple[int, int]], y: List[int]) -> List[Tuple[int, int]]:
    x.extend(zip(y, y[1:]))  # noqa: RUF007
    x.extend(enumerate(y))
    return x


def inferred_from_an_iterable(n: int) -> List[int]:
    x = []
    x.extend(range(n))
    y = []
    y += range(n)
    return x + y


def extended_by_rows(x: List[Tensor], rows: Tensor) -> List[Tensor]:
    x.extend(rows)
    x += rows
    return x


def updated_by_keywords(d: Dict[str, int]) -> Dict[str, int]:
    d.update(k=3, v=4)
    return d


def updated_by_several(d: Dict[str, int], e: Dict[str, int]) -> Dict[str, int]:
    d.update(e, z=1)
    d.update([("q", 5), ("a", 6), ("q", 7)])
    d.update(zip(["x"], [2]), y=3)
    d.update([])
    d.update()
    return d


def inferred_from_keywords(n: int) -> Dict[str, int]:
    d = {}
    d.update(a=n)
    d.update([("b", n)])
    return d


def prefixes(s: str) -> List[bool]:
    starts = [s.startswith(("a", "b")), s.startswith(()), s.startswith(("c", "d"), 1), s.startswith(("a",), 0, 1)]
    return [*starts, s.endswith(("x", "yz")), s.endswith(("a",), -2), s.endswith(("a", "b"), 0, -1)]


def prefixes_of_any_number(s: str, p: Tuple[str, ...]) -> Tuple[bool, bool, bool]:
    return s.startswith(p), s.startswith(p, 5), s.endswith(p)


def index_from(x: List[int], v: int, a: int) -> int:
    return x.index(v, a)


def index_within(x: List[int], v: int, a: int, b: int) -> int:
    return x.index(v, a, b)


def index_of_text(x: List[str], v: str) -> int:
    return x.index(v, 1)


def searches_of_tuples(x: Tuple[int, str, int], y: Tuple[int, ...], v: int) -> Tuple[int, int, int, int, int]:
    return x.count(v), x.index(v), x.index(v, 0, 2), y.count(v), y.index(v, 1)


def keys_alone(keys: List[str]) -> Tuple[List[str], Dict[str, int]]:
    lengths = dict.fromkeys(keys, 0)
    for key in dict.fromkeys(keys):
        lengths[key] += len(key)
    return list(dict.fromkeys(keys)), lengths


def keys_filled_later(keys: List[str]) -> Dict[str, int]:
    found = dict.fromkeys(keys)
    counts: Dict[str, int] = {}
    for key in found:
        if found[key] is None:
            counts[key] = len(key)
    return counts


CASES: List[Tuple[Any, Tuple[Tuple[Any, ...], ...]]] = [
    (extended, ((0,), (3,), (-1,))),
    (extended_by_texts, (("", {}), ("abc", {"z": 1}))),
    (extended_by_pairs, (([], []), ([(1, 2)], [3, 4, 5]))),
    (inferred_from_an_iterable, ((0,), (3,))),
    (updated_by_keywords, (({},), ({"k": 1},))),
    (updated_by_several, (({}, {"z": 5}), ({"k": 1}, {}))),
    (inferred_from_keywords, ((0,), (3,))),
    (prefixes, (("abc",), ("",), ("byz",), ("xca",))),
    (prefixes_of_any_number, (("abc", ("a", "q")), ("", ()), ("", ("",)))),
    (index_from, (([1, 2, 3, 1], 1, 1), ([1, 2, 3, 1], 1, -1), ([1, 2, 3, 1], 1, -9), ([], 1, 0), ([1], 1, 5))),
    (index_within, (([1, 2, 3, 1], 1, 1, 3), ([1, 2, 1], 1, -2, -1), ([1, 2, 3], 3, -9, 99), ([], 1, 0, 0))),
    (index_of_text, ((["a", "a"], "a"), (["a"], "a"))),
    (
        searches_of_tuples,
        (((1, "a", 1), (1, 1), 1), ((1, "a", 2), (1, 2), 2), ((1, "a", 2), (), 3), ((1, "a", 1), (1,), 1)),
    ),
    (keys_alone, (([],), (["a", "b", "a"],))),
    (keys_filled_later, (([],), (["a", "bb", "a"],))),
]


@pytest.mark.parametrize(("function", "calls"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_methods_take_what_python_takes(function: Any, calls: Tuple[Tuple[Any, ...], ...]) -> None:
    agrees(function, *calls)


def test_lists_are_extended_by_rows() -> None:
    rows = torch.arange(4.0).reshape(2, 2)
    agrees(extended_by_rows, ([], rows), ([torch.ones(2)], rows[:0]))
