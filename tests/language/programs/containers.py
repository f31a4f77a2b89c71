"""Lists and dicts: all methods, comprehensions, nesting, slices with steps."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from tests.language.corpus import program


@program("list.literal type.builtin_generics", (1,), (-5,))
def list_literals(n: int) -> list[int]:
    empty: list[int] = []
    return [n, n + 1, *[n * 2]] + empty if False else [n, n + 1] + empty


@program("list.append_extend", ([1], 2), ([], 0))
def append_extend(xs: List[int], n: int) -> List[int]:
    xs.append(n)
    xs.extend([n, n + 1])
    return xs


@program("list.insert", ([1, 2], 1, 9), ([], 5, 3))
def insert(xs: List[int], i: int, n: int) -> List[int]:
    xs.insert(i, n)
    xs.insert(-1, n + 1)
    return xs


@program("list.pop", ([1, 2, 3],), ([5],))
def pop(xs: List[int]) -> Tuple[int, int]:
    return xs.pop(), xs.pop(0)


@program("list.pop", ([],), ([1],))
def pop_of_empty(xs: List[int]) -> int:
    return xs.pop()


@program("list.remove", ([1, 2, 1], 1), ([1], 3))
def remove(xs: List[int], n: int) -> List[int]:
    xs.remove(n)
    return xs


@program("list.index_count", ([1, 2, 1], 1), ([3], 3))
def index_count(xs: List[int], n: int) -> Tuple[int, int]:
    return xs.index(n), xs.count(n)


@program("list.index_count", ([1.5], 2.0), ([], 0.0))
def index_missing(xs: List[float], x: float) -> int:
    return xs.index(x)


@program("list.sort", ([3, 1, 2],), ([],))
def sort(xs: List[int]) -> List[int]:
    xs.sort()
    return xs


@program("list.sort", ([3.5, -1.0, 2.0],), ([1.0],))
def sort_reversed(xs: List[float]) -> List[float]:
    xs.sort(reverse=True)
    return xs


@program("list.reverse", (["a", "b"],), ([],))
def reverse(xs: List[str]) -> List[str]:
    xs.reverse()
    return xs


@program("list.copy_clear", ([1, 2],), ([],))
def copy_clear(xs: List[int]) -> Tuple[List[int], List[int], bool]:
    ys = xs.copy()
    xs.clear()
    return xs, ys, xs is ys


@program("list.operators", ([1, 2], [2]), ([], [0]))
def list_operators(a: List[int], b: List[int]) -> Tuple[List[int], List[int], bool, bool, bool]:
    return a + b, a * 2, a == b, a != b, 2 in a


@program("list.compare", ([1, 2], [1, 3]), ([2], [2]), torch="refuses")
def list_order(a: List[int], b: List[int]) -> Tuple[bool, bool]:
    return a < b, a >= b


@program("list.augmented", ([1], 3), ([], 2))
def list_augmented(xs: List[int], n: int) -> List[int]:
    same = xs
    xs += [n]
    xs *= 2
    same.append(-1)
    return xs


@program("list.index_assign", ([1, 2, 3], 1), ([1], 4))
def index_assign(xs: List[int], i: int) -> List[int]:
    xs[i] = 10
    xs[-1] += 5
    return xs


@program("list.slice slice.step", ([1, 2, 3, 4, 5],), ([],))
def list_slices(xs: List[int]) -> Tuple[List[int], List[int], List[int], List[int], List[int]]:
    return xs[1:3], xs[::2], xs[-3:-1], xs[:], xs[10:]


@program("slice.negative_step", ([1, 2, 3, 4, 5],), ([1],))
def list_negative_steps(xs: List[int]) -> Tuple[List[int], List[int], List[int]]:
    return xs[::-1], xs[3:0:-2], xs[-1:-4:-1]


@program("slice.zero_step", ([1, 2], 0), ([], 0))
def slice_step_of_zero(xs: List[int], n: int) -> List[int]:
    return xs[::n]


@program("list.slice_assign", ([1, 2, 3, 4],), ([],), torch="refuses")
def slice_assign(xs: List[int]) -> List[int]:
    xs[1:3] = [7, 8, 9]
    return xs


@program("list.slice_assign slice.step", ([1, 2, 3],), ([],), torch="refuses")
def slice_assign_step(xs: List[int]) -> List[int]:
    xs[::2] = [0] * len(xs[::2])
    return xs


@program("list.del statement.del", ([1, 2, 3, 4],), ([1, 2],))
def del_items(xs: List[int]) -> List[int]:
    del xs[0]
    del xs[-1]
    return xs


@program("list.del", ([1, 2, 3, 4],), ([1],), torch="refuses")
def del_slices(xs: List[int]) -> List[int]:
    del xs[1:3]
    return xs


@program("list.nested", ([[1], [2, 3]],), ([[]],))
def nested_lists(xs: List[List[int]]) -> Tuple[int, List[List[int]]]:
    xs[0].append(9)
    inner = xs[-1]
    inner.append(8)
    return sum([len(x) for x in xs]), xs


@program("list.comprehension", ([1, 2, 3],), ([],))
def comprehensions(xs: List[int]) -> Tuple[List[int], List[float], List[int]]:
    return [x * x for x in xs], [float(x) for x in xs], [i for i in range(len(xs))]


@program("list.comprehension_if", ([1, 2, 3],), ([],), torch="refuses")
def comprehension_with_condition(xs: List[int]) -> List[int]:
    return [x * 2 for x in xs if x % 2 == 1]


@program("list.comprehension_nested", (2, 3), (0, 2))
def nested_comprehension(n: int, m: int) -> List[List[int]]:
    return [[i * j for j in range(m)] for i in range(n)]


@program("list.comprehension_two_loops", (2, 3), (0, 2), torch="refuses")
def comprehension_of_two_loops(n: int, m: int) -> List[int]:
    return [i * j for i in range(n) for j in range(m)]


@program("list.of_tensors", ([torch.ones(2), torch.zeros(2)],), ([torch.ones(2)],))
def tensors_in_list(xs: List[Tensor]) -> Tuple[Tensor, int]:
    xs.append(xs[0] + 1)
    xs[0] = xs[0] * 2
    return torch.stack(xs), len(xs)


@program("list.unpack", ([1, 2],), ([3],))
def unpack_list(xs: List[int]) -> int:
    a, b = xs
    return a * 10 + b


@program("list.builtins", ([3, 1, 2],), ([7],), torch="refuses")
def list_builtins(xs: List[int]) -> Tuple[int, int, int, int, List[int], List[int]]:
    return len(xs), sum(xs), min(xs), max(xs), sorted(xs), list(reversed(xs))


@program("list.builtins", ([True, False],), ([],))
def any_all(xs: List[bool]) -> Tuple[bool, bool]:
    return any(xs), all(xs)


@program("list.builtins", ([0.5, -1.0],), ([2.0],))
def list_builtins_of_floats(xs: List[float]) -> Tuple[float, float, float]:
    return sum(xs), min(xs), max(xs)


@program("list.sorted_reverse", ([1.5, 3.0, 2.0],), ([],), torch="refuses")
def sorted_reversed(xs: List[float]) -> List[float]:
    return sorted(xs, reverse=True)


@program("list.min_of_empty", ([],), ([1],))
def min_of_empty(xs: List[int]) -> int:
    return min(xs)


@program("list.zip_enumerate", ([1, 2, 3], ["a", "b"]), ([], ["x"]))
def zip_enumerate(xs: List[int], ys: List[str]) -> List[str]:
    found: List[str] = []
    for i, (x, y) in enumerate(zip(xs, ys)):
        found.append(str(i) + str(x) + y)
    for i, x in enumerate(xs, 10):
        found.append(str(i * x))
    return found


@program("list.constructor", ("abc", 3), ("", 0))
def list_of_things(s: str, n: int) -> Tuple[List[str], List[int]]:
    return list(s), list(range(n))


@program("list.tolist", (torch.arange(4),), (torch.zeros(0, dtype=torch.int64),))
def tolist(x: Tensor) -> List[int]:
    values: List[int] = x.tolist()
    return values


@program("list.truth", ([1],), ([],))
def truth_of_list(xs: List[int]) -> int:
    if xs:
        return 1
    return 0


@program("dict.literal type.dict", ("a", 1), ("", 0))
def dict_literals(k: str, v: int) -> Dict[str, int]:
    d = {k: v, "z": 26}
    d[k + "b"] = v + 1
    return d


@program("dict.literal type.builtin_generics", (1, 2.5), (0, 0.0))
def dict_of_builtin_generics(k: int, v: float) -> dict[int, float]:
    d: dict[int, float] = {}
    d[k] = v
    return d


@program("dict.keys", ({1: 2}, {1.5: 2}, {True: 3}), ({}, {0.0: 1}, {False: 0}))
def dict_key_types(a: Dict[int, int], b: Dict[float, int], c: Dict[bool, int]) -> Tuple[List[int], List[float], bool]:
    return list(a.keys()), list(b.keys()), True in c


@program("dict.get", ({"a": 1}, "a"), ({"a": 1}, "b"))
def dict_get(d: Dict[str, int], k: str) -> Tuple[int, Optional[int]]:
    return d.get(k, -1), d.get(k)


@program("dict.index", ({"a": 1}, "a"), ({"a": 1}, "b"))
def dict_index(d: Dict[str, int], k: str) -> int:
    return d[k]


@program("dict.views", ({"a": 1, "b": 2},), ({},))
def dict_views(d: Dict[str, int]) -> Tuple[List[str], List[int], List[Tuple[str, int]]]:
    return list(d.keys()), list(d.values()), list(d.items())


@program("dict.iteration", ({"a": 1, "b": 2},), ({},))
def dict_iteration(d: Dict[str, int]) -> Tuple[str, int]:
    names, total = "", 0
    for k in d:
        names += k
    for k, v in d.items():
        total += v * len(k)
    for v in d.values():
        total += v
    return names, total


@program("dict.pop", ({"a": 1, "b": 2}, "a"), ({"b": 2}, "a"))
def dict_pop(d: Dict[str, int], k: str) -> int:
    return d.pop(k)


@program("dict.pop", ({"a": 1, "b": 2}, "a"), ({"b": 2}, "a"))
def dict_pop_default(d: Dict[str, int], k: str) -> Tuple[int, int]:
    return d.pop(k, -5), len(d)


@program("dict.popitem", ({"a": 1, "b": 2},), ({"z": 0},), torch="differs")
def dict_popitem(d: Dict[str, int]) -> Tuple[str, int]:
    return d.popitem()


@program("dict.setdefault", ({"a": 1}, "a"), ({}, "b"))
def dict_setdefault(d: Dict[str, int], k: str) -> Tuple[int, int]:
    return d.setdefault(k, 7), len(d)


@program("dict.update", ({"a": 1}, {"a": 2, "b": 3}), ({}, {}))
def dict_update(d: Dict[str, int], e: Dict[str, int]) -> Dict[str, int]:
    d.update(e)
    return d


@program("dict.copy_clear", ({"a": 1},), ({},))
def dict_copy_clear(d: Dict[str, int]) -> Tuple[Dict[str, int], int]:
    e = d.copy()
    d.clear()
    return e, len(d)


@program("dict.del statement.del", ({"a": 1, "b": 2}, "a"), ({"b": 2}, "a"))
def dict_del(d: Dict[str, int], k: str) -> Dict[str, int]:
    del d[k]
    return d


@program("dict.contains", ({"a": 1}, "a"), ({}, "a"))
def dict_contains(d: Dict[str, int], k: str) -> Tuple[bool, bool]:
    return k in d, k not in d


@program("dict.comprehension", ([1, 2],), ([],))
def dict_comprehension(xs: List[int]) -> Dict[int, str]:
    return {x: str(x) for x in xs}


@program("dict.comprehension_if", ([1, 2, 3],), ([],), torch="refuses")
def dict_comprehension_with_condition(xs: List[int]) -> Dict[int, int]:
    return {x: x * x for x in xs if x > 1}


@program("dict.nested", ({"a": [1, 2]},), ({},))
def dict_of_lists(d: Dict[str, List[int]]) -> Dict[str, List[int]]:
    for k, v in d.items():
        v.append(len(k))
    d["new"] = [0]
    return d


@program("dict.nested", ({"a": {1: 2.5}},), ({"a": {}},))
def dict_of_dicts(d: Dict[str, Dict[int, float]]) -> int:
    d["a"][7] = 1.0
    return len(d["a"])


@program("dict.constructor", ([("a", 1), ("b", 2)],), ([],))
def dict_of_pairs(pairs: List[Tuple[str, int]]) -> Dict[str, int]:
    return dict(pairs)


@program("dict.constructor", (1,), (2,))
def dict_of_keywords(n: int) -> Dict[str, int]:
    return dict(a=n, b=n + 1)


@program("dict.zip", (["a", "b"], [1, 2]), ([], []))
def dict_of_zip(ks: List[str], vs: List[int]) -> Dict[str, int]:
    return {k: v for k, v in zip(ks, vs)}


@program("dict.equality", ({"a": 1}, {"a": 1}), ({"a": 1}, {"b": 1}), torch="refuses")
def dict_equality(a: Dict[str, int], b: Dict[str, int]) -> bool:
    return a == b


@program("dict.tensors", ({"x": torch.ones(2)},), ({"x": torch.zeros(1)},))
def dict_of_tensors(d: Dict[str, Tensor]) -> Dict[str, Tensor]:
    d["y"] = d["x"] * 2
    d["x"].add_(1)
    return d


@program("dict.augmented", ({"a": 1}, "a"), ({"b": 5}, "b"))
def dict_augmented(d: Dict[str, int], k: str) -> Dict[str, int]:
    d[k] += 10
    d[k] *= 2
    return d


@program("tuple.literal", (1, 2.5), (0, -1.0))
def tuple_literals(a: int, b: float) -> Tuple[Tuple[int, float], Tuple[int], Tuple[float, Tuple[int, int]]]:
    return (a, b), (a,), (b, (a, a))


@program("tuple.index tuple.slice", ((1, 2.5, "a", True),), ((0, 0.0, "", False),))
def tuple_index(t: Tuple[int, float, str, bool]) -> Tuple[int, bool, Tuple[float, str]]:
    return t[0], t[-1], t[1:3]


@program("tuple.slice slice.step", ((1, 2.5, "a", True),), ((0, 0.0, "", False),))
def tuple_slice_steps(t: Tuple[int, float, str, bool]) -> Tuple[Tuple[int, str], Tuple[bool, str, float, int]]:
    return t[::2], t[::-1]


@program("tuple.compare", ((1, 2), (1, 3)), ((2, 0), (2, 0)))
def tuple_equality(a: Tuple[int, int], b: Tuple[int, int]) -> Tuple[bool, bool]:
    return a == b, a != b


@program("tuple.order", ((1, 2), (1, 3)), ((2, 0), (2, 0)), torch="refuses")
def tuple_order(a: Tuple[int, int], b: Tuple[int, int]) -> Tuple[bool, bool, bool, bool]:
    return a < b, a <= b, a > b, a >= b


@program("tuple.compare", ((1, "a"), (1, "a")), ((2, "a"), (2, "b")), torch="refuses")
def tuple_equality_mixed(a: Tuple[int, str], b: Tuple[int, str]) -> bool:
    return a == b


@program("tuple.order", ((1, (2.5, "a")), (1, (2.5, "b"))), ((2, (0.0, "")), (1, (9.0, "z"))), torch="refuses")
def tuple_order_nested(a: Tuple[int, Tuple[float, str]], b: Tuple[int, Tuple[float, str]]) -> Tuple[bool, bool, bool]:
    return a < b, a >= b, a != b


@program("tuple.compare", (1, torch.ones(2)), (2, torch.ones(2)), torch="refuses")
def tuple_comparison_stops_early(n: int, x: Tensor) -> bool:
    """The tensors have no truth; Python asks only if the elements before are equal."""
    return (n, x) == (2, x + 1)


@program("tuple.unpack", ((1, (2, 3)),), ((0, (-1, 5)),))
def tuple_unpack(t: Tuple[int, Tuple[int, int]]) -> int:
    a, (b, c) = t
    return a * 100 + b * 10 + c


@program("tuple.star_unpack", ((1, 2, 3, 4),), ((0, 0, 1, 1),))
def tuple_star_unpack(t: Tuple[int, int, int, int]) -> Tuple[int, List[int], int]:
    a, *b, c = t
    return a, [b[0], b[1]], c


@program("tuple.concat", ((1, 2), ("a",)), ((0, 0), ("",)))
def tuple_concat(a: Tuple[int, int], b: Tuple[str]) -> Tuple[int, int, str]:
    return a + b


@program("tuple.len", ((1, 2.5), [1]), ((0, 0.0), []))
def tuple_len(a: Tuple[int, float], xs: List[int]) -> int:
    return len(a) + len((xs, xs, a))


@program("tuple.iteration", ((1, 2, 3),), ((0, 0, 5),))
def tuple_iteration(t: Tuple[int, int, int]) -> int:
    total = 0
    for x in t:
        total = total * 10 + x
    return total


@program("tuple.swap", (1, 2), (5, 5))
def swap(a: int, b: int) -> Tuple[int, int]:
    a, b = b, a
    return a, b


@program("tuple.in", (1,), (5,))
def in_tuple(n: int) -> bool:
    return n in (1, 2, 3)


@program("tuple.nested", (([1], {"a": (1, 2.0)}),), (([], {"a": (0, 0.0)}),))
def deep_nesting(t: Tuple[List[int], Dict[str, Tuple[int, float]]]) -> float:
    t[0].append(1)
    n, f = t[1]["a"]
    return n + f + len(t[0])


@program("slice.step type.tensor", (torch.arange(12).reshape(3, 4),), (torch.zeros(2, 6),))
def tensor_slices(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return x[::2], x[:, 1:4:2], x[..., -1], x[None, 0, ::3]


@program("slice.step type.tensor", (torch.arange(6),), (torch.zeros(4, dtype=torch.int64),))
def tensor_slice_assign(x: Tensor) -> Tensor:
    x[::2] = -1
    x[1:3] += 10
    return x


@program("slice.variable_step slice.zero_step", (torch.arange(6), 2, 1), (torch.arange(6), -1, 1))
def tensor_steps(x: Tensor, k: int, n: int) -> Tensor:
    return x[n::k]


@program("slice.zero_step", (torch.zeros(2, 3), 1), (torch.zeros(2, 3), 0))
def tensor_step_of_zero(x: Tensor, k: int) -> Tensor:
    x[:, ::k] = 1
    return x


@program("slice.variable_step", ([1, 2, 3, 4, 5, 6], 1, 6, 2), ([1, 2, 3], 2, 0, -1))
def slice_of_variables(xs: List[int], i: int, j: int, k: int) -> List[int]:
    return xs[i:j:k]


@program("slice.range", (2, 11, 3), (5, 0, -2))
def range_steps(a: int, b: int, c: int) -> List[int]:
    return [i for i in range(a, b, c)]


@program("slice.none", ([1, 2, 3],), ([],))
def slice_object(xs: List[int]) -> List[int]:
    return xs[None:2]


@program("dict.ordered", (["b", "a"],), ([],))
def insertion_order(ks: List[str]) -> List[str]:
    d: Dict[str, int] = {}
    for i, k in enumerate(ks):
        d[k] = i
    d["a"] = 5
    return list(d.keys())


@program("list.aliasing", ([1, 2],), ([],))
def aliases(xs: List[int]) -> Tuple[List[int], List[List[int]]]:
    ys = xs
    both = [xs, ys]
    ys.append(3)
    both[0].append(4)
    return xs, both


@program("list.aliasing", (6,), (2,), torch="refuses")
def lists_that_operators_return(n: int) -> Tuple[List[int], List[int], List[int]]:
    xs, zs = [1, 2], [3]
    ys = xs or [2]
    for x in xs:
        if len(ys) < n:
            ys.append(x)
    ws = zs and xs
    ws.append(7)
    us = min(zs, xs)
    for z in zs:
        if len(us) < n + 4:
            us.append(z)
    return xs, zs, us
