"""Programs with values that are a Tensor on some paths and a number on others, and what to call them with."""
# mypy: ignore-errors
# ruff: noqa: E721

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Dict, Final, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

PROGRAMS: Final[dict[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = {}


def program(*calls: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A program, called with each of the tuples of arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function] = calls
        return function

    return add


EMPTY: Final = torch.tensor([])
VECTOR: Final = torch.tensor([1.0, -2.0, 3.0])
MATRIX: Final = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
INTS: Final = torch.tensor([3, 1, 2])
SMALL: Final = torch.tensor([100, 100], dtype=torch.int8)
HALVES: Final = torch.tensor([0.5, 0.25], dtype=torch.float16)
BOOLS: Final = torch.tensor([True, False])
NO_ROWS: Final = torch.zeros(0, 3)


def helper(p):
    return p * 2


@program((EMPTY,), (VECTOR,), (MATRIX,), (INTS,), (BOOLS,), (SMALL,), (HALVES,))
def running_max(x):
    best = 0
    for v in x:
        if v.sum() > best:
            best = v.sum()
    return best


@program((EMPTY,), (VECTOR,), (MATRIX,), (INTS,), (BOOLS,), (SMALL,), (HALVES,))
def mean(x):
    total, n = 0, 0
    for v in x:
        total += v.sum()
        n += 1
    return total / max(n, 1)


@program((EMPTY,), (VECTOR,), (MATRIX,), (NO_ROWS,))
def norm(x):
    total = 0.0
    for v in x:
        total = total + v.pow(2).sum()
    return total**0.5


@program((EMPTY,), (VECTOR,), (MATRIX,))
def text(x):
    t = 0
    for v in x:
        t = t + v.sum()
    return f"{t}", str(t), f"total {t:.2f}"


@program((VECTOR, True), (VECTOR, False))
def cond(x, flag: bool):
    y = 1.0
    if flag:
        y = x.mean()
    z = x * y
    return z, y, -y, y > 0.5, y == 1


@program((VECTOR, True), (VECTOR, False))
def cond2(x, flag: bool):
    y = 1.0
    if flag:
        y = x.mean()
    if y > 0.5 and y < 3:
        return y + 1
    return y - 1


@program((VECTOR, 0), (VECTOR, 3))
def whileloop(x, n: int):
    acc = 0
    i = 0
    while i < n:
        acc = acc * 2 + x[i]
        i += 1
    return acc, i


@program((VECTOR, 0), (VECTOR, 3))
def nested(x, n: int):
    total = 0
    for i in range(n):
        inner = 0
        for v in x:
            inner = inner + v * i
        total += inner
    return total


@program((VECTOR, 0), (VECTOR, 3))
def assign_back(x, n: int):
    out = torch.zeros(3)
    s = 0
    for i in range(n):
        s = s + x[i]
        out[i] = s
    out[0] = s
    return out, s


@program((VECTOR, True), (VECTOR, False))
def ternary(x, flag: bool):
    w = x.sum() if flag else 0.5
    return x * w, w


@program((VECTOR, True), (VECTOR, False))
def isinst(x, flag: bool):
    w = 0
    if flag:
        w = x.sum()
    if isinstance(w, Tensor):
        return w.item()
    return w + 1


@program((MATRIX,), (NO_ROWS,))
def kl(x):
    loss = 0
    for row in x:
        loss += F.softmax(row, 0).log().sum()
    return -loss


@program(([VECTOR, MATRIX],), ([],))
def over_list(xs: List[Tensor]):
    total = 0
    for t in xs:
        total = total + t.sum()
    return total


@program((EMPTY,), (VECTOR,))
def method_call(x):
    best = 0.0
    for v in x:
        best = v
    return best.item()


@program((EMPTY,), (VECTOR,))
def shape(x):
    best = 0.0
    for v in x:
        best = v
    return best.shape


@program((NO_ROWS,), (MATRIX,))
def index(x):
    best = 0.0
    for v in x:
        best = v
    return best[0]


@program((NO_ROWS,), (MATRIX,))
def iterate(x):
    best = 0
    for v in x:
        best = v
    s = 0
    for e in best:
        s = s + e
    return s


@program((EMPTY,), (VECTOR,))
def to_helper(x):
    best = 0
    for v in x:
        best = v
    return helper(best)


@program((EMPTY,), (VECTOR,))
def in_tuple(x):
    best, at = 0, -1
    for i, v in enumerate(x):
        if v > best:
            best, at = v, i
    return best, at


@program((EMPTY,), (VECTOR,))
def in_dict(x):
    best = 0
    for v in x:
        best = v
    d = {"best": best}
    return d


@program((EMPTY,), (VECTOR,))
def in_list(x):
    best = 0
    for v in x:
        best = v
    return [best]


@program((EMPTY,), (VECTOR,))
def tofloat(x):
    best = 0
    for v in x:
        best = v
    return float(best), int(best), bool(best)


@program((EMPTY,), (VECTOR,))
def absround(x):
    best = -2
    for v in x:
        best = v
    return abs(best), min(best, 1), max(0, best)


@program((EMPTY,), (VECTOR,))
def torchfn(x):
    best = 2
    for v in x:
        best = v
    return torch.add(best, x), torch.maximum(x, x), torch.clamp(x, max=best)


@program(
    (VECTOR,),
)
def aug_row(x):
    y = x.clone()
    acc = 1
    for v in y:
        acc = v
    acc *= 3
    return y, acc


@program((VECTOR, 2), (VECTOR, 0))
def breaks(x, n: int):
    r = -1
    for i in range(n):
        if i == 1:
            r = x[i]
            break
    else:
        r = 7
    return r


@program((VECTOR, 1), (VECTOR, 0))
def tryit(x, n: int):
    r = 0
    try:
        r = x[5 * n]
    except IndexError:
        r = r + 1
    return r


@program((VECTOR,), (EMPTY,))
def walrus(x):
    t = 0
    while len(x) > 0 and (t := t + x.sum()) < 4:
        t = t + 1
    return t


@program((VECTOR, True), (VECTOR, False))
def ret2(x, flag: bool):
    if flag:
        return x.sum()
    return 0


@program((VECTOR, True), (VECTOR, False))
def use_ret2(x, flag: bool):
    return ret2(x, flag) + 1, ret2(x, flag) * x


@program((VECTOR, True), (VECTOR, False))
def eq_none(x, flag: bool):
    w = None
    if flag:
        w = x.sum()
    a = 0
    if w is not None:
        a = a + w
    return a


@program((VECTOR, True), (VECTOR, False))
def chained(x, flag: bool):
    w = 2
    if flag:
        w = x.max()
    return 0 < w < 5


@program((VECTOR, True), (VECTOR, False))
def comp(x, flag: bool):
    w = 2
    if flag:
        w = x.max()
    return [v * w for v in x]


@program((VECTOR, True), (VECTOR, False))
def comp2(x, flag: bool):
    w = 2
    if flag:
        w = x.max()
    return sum([w, w]), w in [2, 3]


@program(([VECTOR, MATRIX],), ([],))
def s1(xs: List[Tensor]):
    return sum(xs)


@program(([VECTOR, VECTOR],), ([],))
def s2(xs: List[Tensor]):
    return sum(xs) / 2, sum(xs, 0.5)


@program((MATRIX,), (NO_ROWS,), (VECTOR,))
def s3(x):
    return sum(x), sum(v * 2 for v in x), sum([v.sum() for v in x])


@program((VECTOR, True), (VECTOR, False))
def s4(x, flag: bool):
    w = 1
    if flag:
        w = x.sum()
    return sum([w, w, 3]), torch.stack([x.sum(), w])


@program((VECTOR, True), (VECTOR, False))
def app(x, flag: bool):
    w = 1
    if flag:
        w = x.sum()
    xs = []
    xs.append(w)
    return xs


@program((VECTOR, True), (VECTOR, False))
def dct(x, flag: bool):
    w = 1
    if flag:
        w = x.sum()
    d = {}
    d["a"] = w
    return d["a"] * 2


@program((VECTOR, True), (VECTOR, False))
def opt(x, flag: bool):
    w: Optional[Tensor] = None
    t = 0
    if w is None and flag:
        t = x
    return t


@program((VECTOR, 3), (VECTOR, 0))
def rec(x, n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a * x + b
    return a, b


@program((VECTOR, 3), (VECTOR, 0))
def dd(x, n: int):
    t = 0
    for i in range(n):
        t = t + x
        if i == 1:
            t = 0
    return t


@program((VECTOR, 3), (VECTOR, 0))
def cnt(x, n: int):
    t = 0
    for i in range(n):
        if x[i] > 0:
            t = t + 1
        else:
            t = t + x[i]
    return t


@program((VECTOR, 3), (VECTOR, 0))
def mx(x, n: int):
    m = x[0]
    for i in range(n):
        m = max(m, x[i], 0.5)
    return m


@program((VECTOR,), (EMPTY,))
def cl(x):
    t = 0

    def add(v):
        nonlocal t
        t = t + v

    for v in x:
        add(v)
    return t


@program((VECTOR,), (EMPTY,))
def lam(x):
    t = 0
    for v in x:
        t = (lambda a: a + v)(t)
    return t


@program((VECTOR,), (EMPTY,))
def noret(x):
    t = 0
    for v in x:
        if v < 0:
            continue
        t = t - v
    else:
        t = -t
    return t, type(t) == int


@program((VECTOR, 2), (VECTOR, 0))
def swi(x, n: int):
    t = torch.zeros(3)
    for i in range(n):
        t = 0 if i == 1 else x
    return t


@program((SMALL,), (HALVES,), (EMPTY,), (BOOLS,))
def dtypes(x):
    total = 0
    product = 1
    for v in x:
        total = total + v
        product = product * v
    return total, product, sum([v for v in x]), sum(v + 1 for v in x)


@program((VECTOR, True), (VECTOR, False))
def two_bounds(x, flag: bool):
    t = 1
    if flag:
        t = x.sum()
    return x.clamp(t, t + 1)


@program(
    (VECTOR,),
)
def cummax(x):
    best = 0.0
    out = []
    for v in x:
        if v > best:
            best = v
        out.append(best)
    return torch.stack(out)


@program(
    (VECTOR, True),
)
def declared_containers(x, flag: bool):
    t = 0
    for v in x:
        t = t + v
    d: Dict[str, Tensor] = {}
    d["t"] = t
    l: List[Tensor] = []
    l.append(t)
    o: Optional[Tensor] = t
    return d, l, o


@program(
    (VECTOR, True),
)
def declared_results(x, flag: bool) -> Tuple[Tensor, Dict[str, Tensor], List[Tensor]]:
    t = 0
    for v in x:
        t = t + v
    return t, {"a": t}, [t, x]


@program(
    (VECTOR, True),
)
def declared_optional(x, flag: bool):
    t = 0
    for v in x:
        t = t + v
    return _of_optional(t)


def _of_optional(o: Optional[Tensor]):
    return 1 if o is None else o * 2


@program((VECTOR, True), (VECTOR, False))
def identity_with_none(x, flag: bool):
    t = 5
    if flag:
        t = x.sum()
    return t is None, t is not None


@program((VECTOR, True), (VECTOR, False))
def sums_of_tuples(x, flag: bool):
    t = x.sum() if flag else 0
    return sum((t, x)), sum([t, t])


@program((VECTOR, True), (VECTOR, False))
def indices_and_slices(x, flag: bool):
    t = 1
    if flag:
        t = (x > 0).sum()
    y = x.clone()
    y[t] = 9
    return x[t], x[t:], x[:t], y, [1, 2, 3][t]


@program((VECTOR,), (EMPTY,))
def masks(x):
    t = 0
    for v in x:
        t = t + v
    y = x.clone()
    y[t > 100] = 5.0
    return y, y[t < 100]


@program(
    (MATRIX,),
)
def greedy(x):
    tok = 0
    out = []
    for i in range(2):
        out.append(x[tok])
        tok = x[tok].argmax()
    return torch.stack(out), x[0, tok]


@program(
    (MATRIX,),
)
def viterbi(x):
    last = 0
    s = 0
    for row in x:
        s = s + row[last]
        last = row.argmax()
    return s, last


@program(
    (MATRIX,),
)
def indices_of_lists(x):
    last = 0
    xs = [5, 6, 7]
    for row in x:
        xs[last] += 1
        xs[last] = 3
        last = row.argmax()
    return xs


@program((VECTOR, True), (VECTOR, False))
def functions_of_math(x, flag: bool):
    t = 5.0
    if flag:
        t = x.sum()
    return math.sqrt(t), math.exp(t), math.floor(t), math.isnan(t)


@program((VECTOR, True), (VECTOR, False))
def rounded(x, flag: bool):
    t = 2.55
    if flag:
        t = x.sum()
    return round(t)


@program((VECTOR, True), (VECTOR, False))
def equality_with_none(x, flag: bool):
    t = 5
    if flag:
        t = x.sum()
    return t == None, t != None


@program((MATRIX,), (NO_ROWS,))
def builtins_of_numbers(x):
    best = 0.5
    for row in x:
        best = row.sum()
    try:
        best = 1
    except IndexError:
        pass
    return divmod(-best, 3), round(-best), abs(-best), pow(-best, 2), min(-best, 3), max(-best, 2)


@program((VECTOR, 0), (VECTOR, 1), (VECTOR, 2))
def powers_by_the_builtin(x, choice: int):
    t = x.sum() if choice == 0 else (2 if choice == 1 else 0.5)
    return pow(t, 2), pow(2, t), pow(t, t)


@program((VECTOR, 1), (VECTOR, 2))
def divided_with_remainder(x, choice: int):
    t = x.sum() if choice == 0 else (5 if choice == 1 else 5.5)
    return divmod(t, 2), divmod(7, t)


@program((VECTOR,))
def a_bool_after_try(x):
    for row in x:
        best = row
    try:
        for _ in x:
            best = True
    except ValueError:
        pass
    else:
        return math.sin(best)


class Total:
    def __init__(self):
        self.sum = 0
        self.count = 0
        self.last = 0.0

    def add(self, value, n: int):
        self.sum = self.sum + value * n
        self.count += n
        self.last = value

    def mean(self):
        return self.sum / self.count


@program((MATRIX,), (NO_ROWS,))
def attributes(x):
    total = Total()
    for row in x:
        total.add(row.sum(), 2)
    return total.sum, total.last, total.mean() if len(x) else 0


@program((MATRIX,), (NO_ROWS,))
def tensors_in_attributes_and_numbers(x):
    total = Total()
    total.add(x.sum(), 1)
    total.add(x.sum().item(), 2)
    return total.sum, total.last, total.mean()


@program((MATRIX,), (NO_ROWS,))
def values_of_dicts(x):
    losses = {"sum": 0.0, "mean": 0}
    inner = {"a": {"l": 0.0, "n": 0}}
    for row in x:
        losses["sum"] += row.sum()
        losses["mean"] = losses["mean"] + row.mean()
        inner["a"]["l"] += row.sum()
        inner["a"]["n"] += 1
    return losses, inner, {k: v / 2 for k, v in losses.items()}


@program((MATRIX,), (NO_ROWS,))
def values_of_dicts_with_defaults(x):
    counts = {}
    for i, row in enumerate(x):
        counts[i % 2] = counts.get(i % 2, 0) + row.sum()
    return counts


@program((MATRIX,), (NO_ROWS,))
def elements_of_lists(x):
    t = [0.0, 0.0]
    for i, row in enumerate(x):
        t[i % 2] += row.sum()
    table = [[0.0, 0.0], [0.0, 0.0]]
    table[0][1] = x.sum()
    table[1][0] += 1
    made = [0 for _ in range(2)]
    made[0] = x.sum()
    return t, sum(t), max(t[0], t[1]), table, made, [v * 2 for v in made]


@program((VECTOR,))
def elements_are_the_tensors_themselves(x):
    t = [0.0]
    t[0] = x[0]
    t[0] += 1
    return t, x


@program((VECTOR, True), (VECTOR, False), (VECTOR * 0, True))
def comparisons_as_values(x, flag: bool):
    t = 2
    if flag:
        t = x.sum()
    return t > 1 and t < 5, t > 3 or t == 2, 0 < t < 3, not t > 1


@program((MATRIX,), (MATRIX * 0,))
def uses_of_lists_of_both(x):
    xs = [0.0, 2]
    xs[0] = x.sum()
    d = {"a": 0.0, "b": 1}
    d["a"] = x.sum()
    return (
        xs[0] > 1 and xs[1] > 1,
        sum(xs),
        sorted(d),
        xs[::-1],
        [v * 2 for v in xs],
        [isinstance(v, Tensor) for v in xs],
        {k: float(v) for k, v in d.items()},
        max(d, key=lambda k: float(d[k])),
        xs.pop(),
        d.pop("b"),
        {**d, "z": 1},
        xs + [1],
    )
