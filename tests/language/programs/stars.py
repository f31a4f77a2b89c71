"""Star-unpacking of lists whose length is known only when the program runs."""

from typing import List, Tuple

import torch
from torch import Tensor

from tests.language.corpus import program

X = torch.tensor([1.0, 2.0])


@program("list.star", ([3, 1], [5]), ([], []), torch="refuses")
def lists_in_a_list(xs: List[int], ys: List[int]) -> List[int]:
    return [*xs, 0, *ys, *range(2), *(7, 8)]


@program("list.star", (["a"], "b"), ([], ""), torch="refuses")
def strings_in_a_list(xs: List[str], s: str) -> List[str]:
    return [s, *xs, *[x + s for x in xs]]


@program("list.star", (X, 2), (X * 2, 0), torch="refuses")
def tensors_in_a_list(x: Tensor, n: int) -> Tensor:
    parts = [x * i for i in range(n)]
    return torch.stack([x, *parts, x + 1])


@program("list.star", (1,), (4,))
def tuple_of_known_length(n: int) -> Tuple[int, int, float, int]:
    pair = (n, 2.5)
    return (0, *pair, n)


@program("list.star statement.return", (1,), (4,))
def returned_with_a_star(n: int) -> Tuple[int, int, int]:
    pair = n, n + 1
    return 0, *pair


@program("list.star_unpack", ([1, 2, 3],), ([4],), torch="refuses")
def first_and_rest(xs: List[int]) -> Tuple[int, List[int]]:
    first, *rest = xs
    return first, rest


@program("list.star_unpack", ([1, 2, 3],), ([4, 5],), torch="refuses")
def ends_of_a_list(xs: List[int]) -> Tuple[int, List[int], int]:
    first, *between, last = xs
    return first, between, last


@program("list.star_unpack exception.of_python", ([1, 2, 3],), ([],), torch="refuses")
def too_few_to_unpack(xs: List[int]) -> List[int]:
    a, b, *rest = xs
    return rest + [a, b]


@program("list.star_unpack", ([1, 2],), ([7],), torch="refuses")
def all_but_the_last(xs: List[int]) -> Tuple[List[int], int]:
    *before, last = xs
    before.append(0)
    return before, len(xs) + last


@program("list.star_unpack statement.for_list", (5,), (0,))
def star_in_a_loop(n: int) -> List[int]:
    out: List[int] = []
    for first, *rest in [(1, 2, 3), (n, 5, 6)]:
        out.append(first + sum(rest))
    return out


@program("list.star_unpack", ("a b c",), ("word rest",), torch="refuses")
def words(text: str) -> Tuple[str, List[str]]:
    command, *arguments = text.split()
    return command, arguments


@program("list.star", (2,), (0,), torch="refuses")
def evaluated_in_order(n: int) -> List[int]:
    seen: List[int] = []

    def note(x: int) -> int:
        seen.append(x)
        return x

    def notes(x: int) -> List[int]:
        seen.append(-x)
        return [x] * n

    return [note(1), *notes(2), note(3), *notes(4)] + seen
