"""More of Python's library and of PyTorch's names."""

import bisect
import functools
import heapq
import itertools
import math
from typing import Dict, List, Tuple

import torch
from torch import Tensor

from tests.language.corpus import program

X = torch.tensor([[1.0, -2.0, 3.0]])
Y = torch.tensor([[0.5, 3.0], [1.0, -1.0]])

if hasattr(torch, "compile"):
    import math as chosen
else:
    chosen = None


@program("library.itertools", ([1, 2], ["a"]), ([], ["b", "c"]), torch="refuses")
def products(xs: List[int], names: List[str]) -> List[str]:
    return [name * x for x, name in itertools.product(xs, names)]


@program("library.itertools", ([1, 2, 3],), ([],), torch="refuses")
def chained_and_accumulated(xs: List[int]) -> List[int]:
    return list(itertools.chain(xs, [10], range(2))) + list(itertools.accumulate(xs))


@program("library.itertools", ([3, 1, 2],), ([],), torch="refuses")
def running_maximum(xs: List[int]) -> List[int]:
    return list(itertools.accumulate(xs, lambda a, b: max(a, b), initial=0))


@program("library.itertools", ([3, 1, 2],), ([7],), torch="refuses")
def pairs(xs: List[int]) -> List[Tuple[int, int]]:
    return list(itertools.pairwise(xs)) + list(itertools.combinations(xs, 2))


@program("library.heapq", ([5, 1, 4],), ([],), torch="refuses")
def sorted_by_a_heap(xs: List[int]) -> List[int]:
    heap: List[Tuple[int, str]] = []
    for x in xs:
        heapq.heappush(heap, (-x, "x"))
    out: List[int] = []
    while len(heap) > 0:
        key, _ = heapq.heappop(heap)
        out.append(-key)
    return out


@program("library.heapq", ([5, 1, 4], 2), ([], 1), torch="refuses")
def few_of_many(xs: List[int], n: int) -> List[int]:
    return heapq.nlargest(n, xs) + heapq.nsmallest(n, xs)


@program("library.bisect", ([1, 3, 3, 7], 3), ([], 0), torch="refuses")
def places_in_order(xs: List[int], x: int) -> List[int]:
    at = [bisect.bisect_left(xs, x), bisect.bisect_right(xs, x)]
    bisect.insort(xs, x)
    return at + xs


@program("function.reduce", ([1, 2, 3], 2), ([], 5), torch="refuses")
def reduced(xs: List[int], n: int) -> int:
    return functools.reduce(lambda a, b: a * b, xs, n)


@program("list.sort_key", (["bb", "a", "ccc"],), ([],), torch="refuses")
def sorted_by_two_keys(words: List[str]) -> List[str]:
    return sorted(words, key=lambda w: (-len(w), w)) + sorted(words, key=len, reverse=True)


@program("list.min_max", (["b", "a"],), (["z"],), torch="refuses")
def least_string(words: List[str]) -> Tuple[str, str]:
    return min(words), max(words)


@program("list.min_max exception.of_python", ([(2, "b"), (1, "z")],), ([],), torch="refuses")
def least_tuple(pairs: List[Tuple[int, str]]) -> Tuple[int, str]:
    return min(pairs)


@program("list.min_max", ({"b": 1, "a": 2},), ({"x": 0},), torch="refuses")
def least_key(d: Dict[str, int]) -> str:
    return min(d) + max(d)


@program("statement.conditional_import", (2.0,), (9.0,))
def imported_by_a_condition(x: float) -> float:
    return chosen.sqrt(x)


@program("math.trunc", (2.7,), (-2.7,), torch="refuses")
def truncated(x: float) -> int:
    return math.trunc(x) + math.trunc(3)


@program("operator.by_overload", (X,), (Y,), torch="refuses")
def overloads_by_name(x: Tensor) -> List[Tensor]:
    return [torch.ops.aten.add.Tensor(x, x), torch.ops.aten.sum.dim_IntList(x, [1]), torch.ops.aten.neg(x)]


@program("operator.out", (X,), (Y,))
def written_to_a_tensor(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    torch.add(x, 1, out=out)
    torch.mul(out, 2, out=out)
    return out


@program("operator.namespaces", (X,), (Y,))
def transforms(x: Tensor) -> List[Tensor]:
    return [torch.fft.rfft(x).abs(), torch.fft.fftfreq(4), torch.linalg.vector_norm(x, ord=1), torch.special.expit(x)]


@program("kwonly_arguments function.nested", (1,), (4,), torch="refuses")
def only_by_keyword(n: int) -> List[int]:
    def f(a, *, b=2, c):
        return a * 100 + b * 10 + c

    return [f(n, c=3), f(n, b=5, c=n)]


@program("statement.match", ([1, 2, 3],), ([],), torch="refuses")
def match_lists(xs: List[int]) -> int:
    match xs:
        case []:
            return 0
        case [x]:
            return x
        case [x, *rest]:
            return x + len(rest)
    return -1


@program("statement.match", ({"a": 1},), ({"b": 2},), torch="refuses")
def match_dicts(d: Dict[str, int]) -> int:
    match d:
        case {"a": value}:
            return value
        case _:
            return -1
