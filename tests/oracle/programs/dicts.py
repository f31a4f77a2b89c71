"""Dicts: literals, methods, loops."""

from typing import Dict, List, Tuple

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((1,))
def literal(n: int) -> Dict[str, int]:
    return {"a": n, "b": n + 1}


@program(())
def empty_annotated() -> Dict[int, float]:
    d: Dict[int, float] = {}
    d[1] = 2.0
    return d


@program((ramp(2),))
def empty_default(x: Tensor) -> Dict[str, Tensor]:
    d = {}
    d["x"] = x
    return d


@program(({"a": 1, "b": 2}, "a"), ({"a": 1, "b": 2}, "z"))
def lookups(d: Dict[str, int], k: str) -> Tuple[bool, int, int]:
    return k in d, d.get(k, -1), len(d)


@program(({"a": 1},))
def writes(d: Dict[str, int]) -> Dict[str, int]:
    d["b"] = 2
    d["a"] += 10
    del d["b"]
    d.update({"c": 3})
    return d


@program(({"a": 1, "b": 2},))
def methods(d: Dict[str, int]) -> Tuple[List[str], List[int], int, int]:
    keys = list(d.keys())
    values = list(d.values())
    p = d.pop("a")
    s = d.setdefault("z", 26)
    return keys, values, p, s


@program(({"a": 1, "b": 2},))
def items(d: Dict[str, int]) -> List[Tuple[str, int]]:
    return list(d.items())


@program(({"a": 1},))
def copy_and_clear(d: Dict[str, int]) -> Tuple[Dict[str, int], Dict[str, int]]:
    e = d.copy()
    d.clear()
    return d, e


@program(([1, 2, 3],))
def comprehension(v: List[int]) -> Dict[int, int]:
    return {x: x * x for x in v}


@program(({1: [1, 2], 2: [3]},))
def dict_of_lists(d: Dict[int, List[int]]) -> int:
    d[1].append(5)
    s = 0
    for k in d:
        s += k * len(d[k])
    return s


@program((ramp(2), ramp(3)))
def dict_of_tensors(x: Tensor, y: Tensor) -> Dict[str, Tensor]:
    d = {"x": x, "y": y}
    d["z"] = torch.cat([d["x"], d["y"]])
    return d


@program(("abracadabra",))
def histogram(s: str) -> Dict[str, int]:
    counts: Dict[str, int] = {}
    for c in s:
        if c in counts:
            counts[c] += 1
        else:
            counts[c] = 1
    return counts


@program(({"a": 1}, {"a": 1}), ({"a": 1}, {"b": 1}))
def compared_by_parts(a: Dict[str, int], b: Dict[str, int]) -> bool:
    return list(a.keys()) == list(b.keys())


@program((3,))
def keyword_construction(n: int) -> Dict[str, int]:
    return dict([("a", n), ("b", 2)])
