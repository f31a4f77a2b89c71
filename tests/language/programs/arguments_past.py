"""Arguments that Python's methods and builtins take, and the operators of TorchScript do not; enums that are values."""

import enum
import functools
from collections import defaultdict
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.language.corpus import program

X = torch.tensor([[1.0, -2.0]])
Y = torch.tensor([[0.5, 3.0], [1.0, 1.0]])


class Axis(enum.IntEnum):
    ROWS = 0
    COLUMNS = 1


class Mode(str, enum.Enum):
    TRAIN = "train"
    EVAL = "eval"


@functools.cache
def halves(n: int) -> int:
    return n // 2


@program("list.any_iterable list.augmented", (3, "ab"), (0, ""), torch="refuses")
def extended(n: int, text: str) -> Tuple[List[int], List[str]]:
    numbers: List[int] = []
    numbers.extend(range(n))
    numbers += range(2)
    letters = ["q"]
    letters.extend(text)
    return numbers, letters


@program("list.index_bounds", ([1, 2, 1], 1), ([1], 1), torch="refuses")
def second_place(xs: List[int], x: int) -> int:
    return xs.index(x, 1)


@program("list.zip_star", ([(1, "a"), (2, "b")],), ([],), torch="refuses")
def columns(rows: List[Tuple[int, str]]) -> Tuple[int, List[str]]:
    numbers, names = zip(*rows)
    return sum(numbers), list(names)


@program("list.zip_star", ([[1, 2], [3, 4]],), ([],), torch="refuses")
def sums_of_columns(rows: List[List[int]]) -> List[int]:
    return [sum(column) for column in zip(*rows)]


@program("dict.update_keywords", ({"a": 1},), ({},), torch="refuses")
def updated(d: Dict[str, int]) -> Dict[str, int]:
    d.update([("b", 2), ("b", 3)], a=5)
    return d


@program("dict.merge", (["a", "b", "a"],), ([],), torch="refuses")
def without_repetitions_in_order(keys: List[str]) -> List[str]:
    return list(dict.fromkeys(keys))


@program("infer.items", (["a", "bb", "cc"],), ([],), torch="refuses")
def grouped(words: List[str]) -> Tuple[Dict[int, List[str]], Dict[int, List[str]], Dict[int, List[str]]]:
    first = {}
    second = {}
    third = defaultdict(list)
    for word in words:
        if len(word) not in first:
            first[len(word)] = []
        first[len(word)].append(word)
        second.setdefault(len(word), []).append(word)
        third[len(word)].append(word)
    return first, second, dict(third)


@program("infer.items list.operators", ([1],), ([],), torch="refuses")
def compared_with_nothing(xs: List[int]) -> Tuple[bool, bool]:
    e = []
    return e == xs, xs != e


@program("str.affixes", ("abc",), ("xy",), torch="refuses")
def affixes(text: str) -> Tuple[bool, bool, bool]:
    return text.startswith(("a", "x")), text.endswith(("x", "bc")), text.startswith(("b",), 1)


@program("tuple.search", ((1, "a", 1), 1), ((2, "a", 1), 1), torch="refuses")
def searched(items: Tuple[int, str, int], x: int) -> Tuple[int, int]:
    return items.count(x), items.index(x)


@program("enum.values", (Axis.ROWS, X), (Axis.COLUMNS, Y), torch="refuses")
def along(axis: Axis, x: Tensor) -> Tuple[Tensor, bool, int]:
    return x.sum(axis), axis == 1, [10, 20][axis]


@program("enum.values", (Mode.TRAIN,), (Mode.EVAL,), torch="refuses")
def texts_of_modes(mode: Mode) -> Tuple[bool, str, bool]:
    return mode == "train", mode + "_step", mode.startswith("tr")


@program("builtin.callable", (None, 1), (X, 1), torch="refuses")
def callables(x: Optional[Tensor], n: int) -> Tuple[bool, bool, bool]:
    return callable(x), callable(n), callable(halves)


@program("function.cached", (5,), (0,))
def cached(n: int) -> int:
    return halves(n) + halves(n + 1)


@program("module.slices", (X,), (Y,), torch="refuses")
class CallsASlice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers[1:](self.layers[0](x))


@program("module.run_time_parameter", (X, "a"), (Y, "b"), torch="refuses")
class PicksAParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterDict({"a": nn.Parameter(torch.ones(2)), "b": nn.Parameter(torch.zeros(2))})

    def forward(self, x: Tensor, key: str) -> Tensor:
        for name in self.scales:
            x = x + self.scales[name]
        return x * self.scales[key]
