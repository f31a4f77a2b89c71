"""Types of variables that later uses determine: of empty lists and dicts, of what begins as None or as a number."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from rekindle.errors import SchemaError
from tests.language.corpus import program, refused

X = torch.tensor([-1.0, 2.0])
Y = torch.tensor([[0.5], [3.0]])


@program("infer.list", (3,), (0,), torch="refuses")
def appended_ints(n: int) -> List[int]:
    xs = []
    for i in range(n):
        xs.append(i)
    return xs


@program("infer.list", (3,), (1,), torch="refuses")
def appended_strings(n: int) -> str:
    words = []
    while n > 0:
        words.append(str(n))
        n -= 1
    return ",".join(words)


@program("infer.list", ([("a", 1), ("b", 2), ("a", 3)],), ([],), torch="refuses")
def appended_tuples(xs: List[Tuple[str, int]]) -> Tuple[List[str], List[Tuple[str, int]]]:
    seen = []
    pairs = []
    for k, v in xs:
        if k not in seen:
            seen.append(k)
        pairs.append((k, v))
    return seen, pairs


@program("infer.list", (X,), (Y,))
def appended_tensors(x: Tensor) -> Tensor:
    outs = []
    for i in range(3):
        outs.append(x + i)
    return torch.stack(outs)


@program("infer.list", (3,), (0,), torch="refuses")
def lists_in_lists(n: int) -> List[List[int]]:
    rows = []
    for i in range(n):
        row = []
        for j in range(i):
            row.append(i * j)
        rows.append(row)
    return rows


@program("infer.list", (3,), (0,), torch="refuses")
def lists_in_a_dict(n: int):
    curves = {"loss": [], "rate": []}
    for i in range(n):
        if len(curves["loss"]) > 0:
            i += len(curves["rate"])
        curves["loss"].append(i * 0.5)
    curves["rate"] += [0.25]
    return curves


@program("infer.list", (3,), (0,), torch="refuses")
def lists_by_a_comprehension(n: int):
    rows = [[] for _ in range(n + 1)]
    for i in range(n):
        rows[i].append(str(i))
    names = {k: [] for k in ("a", "b")}
    names["b"].extend(rows[0])
    return rows, names


@program("infer.list", (torch.ones(2, 2), True), (torch.ones(2, 2), False), torch="refuses")
def lists_of_numbers_in_a_dict(x: Tensor, again: bool):
    sums = {"all": [], "rows": []}
    if again:
        sums = {"all": [], "rows": []}
    for row in x:
        sums["rows"].append(row.sum().item())
    sums["all"].append(1)
    return sums


@program("infer.list", ([2],), ([],), torch="refuses")
def added_and_extended(xs: List[int]) -> List[int]:
    out = []
    out += [1]
    out.extend(xs)
    out = out + xs
    return out


@program("infer.list", (4,), (1,), torch="refuses")
def assigned_in_a_branch(n: int) -> List[int]:
    out = []
    if n > 3:
        out = [n]
    return out


@program("infer.list", (1,), (2,), torch="refuses")
def made_by_list(n: int) -> List[float]:
    xs = list()
    xs.insert(0, 2.5)
    xs.insert(0, n * 0.5)
    return xs


@program("infer.list", ([1, 2], [3]), ([], []), torch="refuses")
def merged_in_order(a: List[int], b: List[int]) -> List[int]:
    out = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    out.extend(a[i:])
    out.extend(b[j:])
    return out


@program("infer.list", (3,), (0,), torch="refuses")
def returned_empty(n: int) -> List[str]:
    out = []
    return out


@program("infer.list", (3,), (0,), torch="refuses")
def optional_elements(n: int) -> List[Optional[int]]:
    out = []
    for i in range(n):
        out.append(i)
    out.append(None)
    return out


def lengths(xs: List[int], d: Dict[str, float]) -> int:
    return len(xs) + len(d)


@program("infer.list infer.dict", (4,), (0,), torch="refuses")
def passed_to_a_function(n: int) -> int:
    a = []
    b = {}
    return lengths(a, b) + n


@refused("infer.list", SchemaError, "append")
def elements_of_two_types(n: int) -> int:
    xs = []
    xs.append(n)
    xs.append("a")
    return len(xs)


@program("infer.dict", ("abca",), ("",), torch="refuses")
def counted(s: str) -> Dict[str, int]:
    d = {}
    for c in s:
        d[c] = d.get(c, 0) + 1
    return d


@program("infer.dict", ([1, 2, 1],), ([],), torch="refuses")
def grouped(xs: List[int]) -> Dict[int, List[str]]:
    groups = {}
    for x in xs:
        if x not in groups:
            groups[x] = []
        groups[x].append(str(x))
    return groups


@program("infer.dict", (["a", "bb"],), ([],), torch="refuses")
def looked_up(xs: List[str]) -> List[int]:
    sizes = {}
    for x in xs:
        sizes[x] = len(x)
    return [sizes[x] for x in xs]


@program("infer.dict", ({"a": 1.5}, 2.0), ({}, 0.5), torch="refuses")
def updated(d: Dict[str, float], x: float) -> Dict[str, float]:
    out = dict()
    out.update(d)
    out["x"] = x
    return out


@program("infer.dict", (X,), (Y,))
def tensors_by_name(x: Tensor) -> Dict[str, Tensor]:
    out = {}
    out["double"] = x * 2
    out["half"] = x / 2
    return out


@program("infer.none", ([1.0, 5.0, 2.0],), ([],), torch="refuses")
def largest(xs: List[float]) -> Optional[float]:
    best = None
    for x in xs:
        if best is None or x > best:
            best = x
    return best


@program("infer.none", (X, 2), (Y, 0), torch="refuses")
def chosen_in_a_branch(x: Tensor, n: int) -> Tensor:
    y = None
    if n > 0:
        y = x * n
    if y is not None:
        return y
    return x


@program("infer.none", (["b", "a"],), ([],), torch="refuses")
def previous(xs: List[str]) -> int:
    last = None
    changes = 0
    for x in xs:
        if last is not None and last != x:
            changes += 1
        last = x
    return changes


@program("infer.number", ([1.5, 2.0],), ([0.5],), torch="refuses")
def int_that_becomes_a_float(xs: List[float]) -> float:
    total = 0
    for x in xs:
        total += x
    return total


@program("infer.number", (3,), (1,), torch="refuses")
def halved(n: int) -> float:
    x = 1
    for _ in range(n):
        x = x / 2
    return x


@program("infer.number", ([X, X * 2],), ([Y],), torch="refuses")
def loss_of_tensors(xs: List[Tensor]) -> Tensor:
    loss = 0
    for x in xs:
        loss += x.sum()
    return loss / len(xs)


@program("infer.number", ([X, X * 2],), ([Y],), torch="refuses")
def sum_of_tensors(xs: List[Tensor]) -> Tensor:
    total = 0.0
    for x in xs:
        total = total + x
    return total


@program("infer.number", (X, True), (Y, True), torch="differs")
def penalty(x: Tensor, flag: bool) -> Tensor:
    extra = 0
    if flag:
        extra = x.abs().mean()
    return x.sum() + extra


@program("infer.number", (3,), (2,), torch="refuses")
def reset_within(n: int) -> float:
    last = -1
    for i in range(n):
        last = 0
        last = last + i * 0.5
    return last


class Numbers:
    def __init__(self, n: int):
        xs = []
        for i in range(n):
            xs.append(i)
        self.xs = xs
        self.count = 0


@program("infer.list class.init_attributes", (3,), (0,), torch="refuses")
def within_init(n: int) -> List[int]:
    return Numbers(n).xs


@program("infer.list infer.dict", (torch.ones(1, 2), ["a", "b"]), (torch.zeros(3, 2), ["x", "y"]), torch="refuses")
class Collecting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

    def forward(self, x: Tensor, names: List[str]) -> Dict[str, Tensor]:
        features = {}
        shapes = []
        for i, layer in enumerate(self.layers):
            x = layer(x)
            features[names[i]] = x
            shapes.append(x.shape[0])
        features["sizes"] = torch.tensor(shapes)
        return features
