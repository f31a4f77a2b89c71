"""``zip(*rows)``: rows become columns, also where there is no row."""

from typing import Any, Dict, List, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import UnsupportedError
from tests.frontend.outcomes import agrees


def of_different_types(xs: List[Tuple[int, str]]) -> Tuple[Tuple[int, ...], Tuple[str, ...]]:
    a, b = zip(*xs)
    return a, b


def of_lists(xs: List[List[int]]) -> Tuple[List[Tuple[int, ...]], List[int]]:
    return list(zip(*xs)), [sum(column) for column in zip(*xs)]


def unpacked(xs: List[Tuple[int, int]]) -> Tuple[int, int]:
    a, b = zip(*xs)
    return sum(a), max(b)


def batched(batch: List[Tuple[Tensor, int]]) -> Tuple[Tensor, List[int]]:
    images, labels = zip(*batch)
    return torch.stack(images), list(labels)


def stacked(batch: List[Tuple[Tensor, Tensor]]) -> Tuple[Tensor, Tensor]:
    a, b = map(torch.stack, zip(*batch))
    return a, b


def of_a_dict(d: Dict[str, int]) -> Tuple[List[str], int]:
    names, counts = zip(*d.items())
    return list(names), sum(counts)


def in_a_loop(xs: List[Tuple[int, str]]) -> int:
    total = 0
    for column in zip(*xs):
        total += len(column)
    return total


def of_texts(xs: List[str]) -> List[str]:
    return ["".join(column) for column in zip(*xs)]


def of_a_generator(n: int) -> List[int]:
    return [sum(column) for column in zip(*[[i, i + 1] for i in range(n)])]


def of_a_tuple(pair: Tuple[List[int], List[str]]) -> List[str]:
    return [name * count for count, name in zip(*pair)]


def counted(xs: List[List[int]]) -> List[int]:
    return [i * sum(column) for i, column in enumerate(zip(*xs), start=1)]


T = torch.arange(2.0)
CASES: List[Tuple[Any, Tuple[Tuple[Any, ...], ...]]] = [
    (of_different_types, (([(1, "a"), (2, "b")],), ([],), ([(3, "c")],))),
    (of_lists, (([[1, 2], [3, 4]],), ([],), ([[1], [2, 3]],), ([[], [1]],))),
    (unpacked, (([(1, 2), (3, 4)],), ([],), ([(5, 6)],))),
    (batched, (([(T, 3), (T + 1, 4)],), ([],))),
    (stacked, (([(T, T), (T + 1, T)],), ([],))),
    (of_a_dict, (({"a": 1, "b": 2},), ({},))),
    (in_a_loop, (([(1, "a"), (2, "b")],), ([],))),
    (of_texts, ((["ab", "cd"],), ([],), (["abc", ""],))),
    (of_a_generator, ((0,), (3,))),
    (of_a_tuple, ((([1, 2], ["a", "b"]),), (([], ["a"]),))),
    (counted, (([[1, 2], [3, 4]],), ([],))),
]


@pytest.mark.parametrize(("function", "calls"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_rows_become_columns(function: Any, calls: Tuple[Tuple[Any, ...], ...]) -> None:
    agrees(function, *calls)


def listed(xs: List[Tuple[int, str]]) -> int:
    return len(list(zip(*xs)))


def test_a_list_of_columns_of_different_types_is_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(listed)
    assert str(caught.value).partition("\n")[0] == (
        "the columns have different types, and their number is known only when the program runs"
    )
