"""Programs whose variables hold numbers of several types, as Python's do; each is called with each of its inputs."""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

FLOATS = torch.tensor([0.5, 1.25, 2.0])
INTS = torch.tensor([3, 1, 2])
BOOLS = torch.tensor([True, False, True])
NOTHING = torch.tensor([])
LARGE = torch.tensor([2**60 + 1])
TENSORS = ((FLOATS,), (INTS,), (BOOLS,), (NOTHING,), (LARGE,))
COUNTED = tuple((x, n) for x in (FLOATS, INTS, BOOLS) for n in (0, 3, 6))


def accumulated(x: Tensor):
    total = 0
    for v in x:
        total += v.item()
    return total


def averaged(x: Tensor):
    total = count = 0
    for v in x:
        total += v.item()
        count += 1
    return total, count, total / (count + 1)


def maximum(x: Tensor):
    best = 0
    for v in x:
        if v.item() > best:
            best = v.item()
    return best


def in_a_branch(x: Tensor, n: int):
    result = 1
    if n > 2:
        result = x[0].item()
    return result


def side_by_side(x: Tensor):
    a, b = 0, 1
    for v in x:
        a, b = b, a + v.item()
    return a, b


def last_of_large_ints(x: Tensor):
    last = 0.5
    for v in x:
        last = v.item()
    return last


def from_a_parameter(x: Tensor, n: int):
    k = n
    while k < 10:
        k = k + x[0].item() + 1
    return k


def decides_the_loop(x: Tensor, n: int):
    i = 0
    while i < 3:
        i += x[0].item() + 1 if n > 0 else 1
    return i


def floats_from_ints(x: Tensor, n: int):
    total = 0
    for i in range(n):
        for _ in range(i):
            total += 0.5
        if total > 2:
            total = total // 1
    return total, total / 3, total**2, -total, total % 2, round(total), int(total), f"{total} {total:.2f}"


def reset(x: Tensor, n: int):
    total = 0
    for _ in range(n):
        total += 0.5
        if total > 1:
            total = 0
    return total


def early_exits(x: Tensor, n: int):
    total = 0
    for i in range(n):
        if i == 2:
            continue
        if i == 4:
            break
        total += i * 0.5
    else:
        total = -1
    return total


def in_a_try(x: Tensor, n: int):
    total = 0
    try:
        for i in range(n):
            total += x[i].item()
    except IndexError:
        total = -total
    return total


def returned_from_branches(x: Tensor, n: int):
    if n > 5:
        return 1
    if n > 2:
        return 0.5
    if n > 1:
        return True
    return x[0].item()


def branches_of_a_constant(x: Tensor, n: int):
    scale = 1
    if n > 3:
        scale = scale * 0.1
    elif n > 2:
        scale = x[0].item()
    return x * scale, scale, str(scale)


def bisection(x: Tensor, n: int):
    low, high = 0, 10
    for _ in range(n):
        middle = (low + high) / 2
        if middle > x[0].item():
            high = middle
        else:
            low = middle
    return low, high


def running_mean(x: Tensor, n: int):
    mean = 0
    for k, v in enumerate(x):
        mean += (v.item() - mean) / (k + 1)
    return mean


def mixed_extremes(x: Tensor, n: int):
    return max(n, 2.5), min(n, 2.5), max(n, 3.0, 2), max(2.5, n, True), min(math.nan, n), max(n, math.nan)


def extremes_that_are_kept(x: Tensor, n: int):
    k = 0
    for _ in range(n):
        k = min(max(k, x[0].item()), 10)
    return k


def powers(x: Tensor, n: int):
    return 2**-n, 2 ** -(n - 3), 0.5 * 2**n, 2**n * 0.5, 3 ** (n + 1), (-2) ** -(n - 5)


def assigned_again(x: Tensor, n: int):
    s = 0.5
    s = 1
    t = 1
    t = 0.5
    return s, t


def complex_at_last(x: Tensor, n: int):
    z = 1
    for _ in range(n):
        z = z * 1j
    return z


def bools(x: Tensor, n: int):
    flag = False
    count = n
    for v in x:
        flag = v.item() > 1
        if flag:
            count = True
    return flag, count


def list_of_numbers(x: Tensor, n: int):
    sums = [0] * 3
    for i in range(3):
        sums[i] += x[0].item()
    return sums, sum(sums), sorted(sums), len(sums), sums[0] + 1, [v * 2 for v in sums]


def list_that_grows(x: Tensor):
    values = [1, 2]
    for v in x:
        values.append(v.item())
    return values, max(values), min(values)


def list_of_items(x: Tensor):
    values = [0 for _ in range(2)]
    values[1] = len(x)
    for v in x:
        values[0] = v.item()
    return values


def dict_of_numbers(x: Tensor):
    sums = {"a": 0, "b": 1}
    for v in x:
        sums["a"] += v.item()
    return sums, sums["a"] / 2


def optional_maximum(x: Tensor):
    found: Optional[float] = None
    for v in x:
        if found is None or v.item() > found:
            found = float(v.item())
    return found


def generic_function(x: Tensor, n: int):
    def twice(k):
        return k * 2

    return twice(x[0].item()), twice(n), twice(0.5)


def as_an_index(x: Tensor, n: int):
    k = x.argmax().item()
    return x[k], k, [5, 6, 7][k]


def as_a_count(x: Tensor, n: int):
    k = x.argmax().item()
    return [i for i in range(k)], [0] * k, "a" * k, x.new_zeros(k)


def indexes_of_tensors(x: Tensor, n: int):
    y = x.clone()
    y[0] = n if n > 2 else 1
    return y


def tested(x: Tensor, n: int):
    v = x[0].item()
    w = n if n > 2 else 0.5
    return (
        isinstance(v, int),
        isinstance(v, bool),
        isinstance(v, float),
        isinstance(w, int),
        isinstance(w, (int, float)),
    )


def tested_in_a_loop(n: int, x: float):
    t = k = 0
    for i in range(n):
        if isinstance(t, float):
            k += 1
        if i % 2 == 0:
            t = t + x
        else:
            t = i
    return t, k, isinstance(t, int)


def none_then_an_int_then_another(x: Tensor, n: int):
    best = None
    for _ in range(n):
        best = 0
    for row in x:
        best = row.max().item()
    return best


def none_then_an_int_in_branches(x: Tensor, n: int):
    best = None
    if n > 1:
        best = 0
    if n != 2:
        best = x.sum().item()
    return best, best is None


def none_then_assigned_to_items(x: Tensor, n: int):
    best = None
    if n > 1:
        best = 0
    for row in x:
        best = row.max().item()
    t = torch.zeros(2, 3)
    t[0, ...] = best
    t[1, 1] = best
    return t


PROGRAMS = {
    **dict.fromkeys(
        (accumulated, averaged, maximum, side_by_side, last_of_large_ints, list_that_grows, list_of_items), TENSORS
    ),
    **dict.fromkeys((dict_of_numbers, optional_maximum), TENSORS),
    **dict.fromkeys(
        (in_a_branch, from_a_parameter, decides_the_loop, floats_from_ints, reset, early_exits, in_a_try), COUNTED
    ),
    **dict.fromkeys((returned_from_branches, branches_of_a_constant, bisection, running_mean, mixed_extremes), COUNTED),
    **dict.fromkeys((extremes_that_are_kept, powers, assigned_again, complex_at_last, bools), COUNTED),
    **dict.fromkeys(
        (none_then_an_int_then_another, none_then_an_int_in_branches, none_then_assigned_to_items), COUNTED
    ),
    **dict.fromkeys((list_of_numbers, generic_function, as_an_index, as_a_count, indexes_of_tensors, tested), COUNTED),
    tested_in_a_loop: ((0, 0.5), (1, 0.5), (6, 0.5)),
}

EXPRESSIONS = """
abs(f); round(f); round(f, 1); round(f, -1); int(f); float(f); str(f); repr(f); bool(f); complex(f)
math.floor(f); math.ceil(f); math.trunc(f); math.sqrt(abs(f)); math.exp(f); math.log(abs(f) + 1); math.pow(f, 2)
math.fmod(f, 2); math.isclose(f, 1.0); math.isnan(f); math.isinf(f); math.isfinite(f); math.copysign(f, -1)
math.fabs(f); math.hypot(f, 1); math.atan2(f, 1); math.degrees(f); math.modf(f); math.frexp(f); math.ldexp(f, 2)
math.gcd(f, 2); math.factorial(f); math.log10(abs(f) + 1); math.log(abs(f) + 1, 2)
divmod(f, 2); divmod(7, f + 1); pow(f, 2); f // 2; 7 // (f + 1); f % 2; -7 % (f + 1); f ** 2; 2 ** f; 2.0 ** f
f << 1; f & 1; f | 2; f ^ 1; -f; +f; ~f; f / 2; 2 / (f + 1); f - 1; 1 - f; f * 2.5; f * n; n * f; n - f; f + True
[i for i in range(f)]; xs[f]; xs[-f]; xs[:f]; "a" * f; xs * f; f * xs
max(f, 1); min(f, 0.5); max([f, 1.0]); max(f, n, 2); sum([f, 1]); sum([f, f]); sorted([f, f - 1])
f in [1, 2]; f in (1, 0.5); f == 1; f != n; f < n; 0 < f < 5; f >= 0.5; not f; f and 3; f or 3; f if f > 1 else 0
"%.2f" % f; f"{f}"; f"{f:.3f}"; f"{f:5}"; "{}".format(f)
torch.full((2,), f); x + f; f + x; x - f; f - x; x * f; f * x; x / (f + 1); f / x; x // (f + 1); f // x; x % (f + 1)
f % x; x ** f; f ** x; x == f; f == x; x > f; f > x; torch.tensor(f); torch.tensor([f, f]); torch.tensor([f, 1])
x.clone().fill_(f); torch.where(x > 1, x, f); x.clamp(f); x.clamp(min=f, max=5); x.add(x, alpha=f); torch.arange(f)
torch.arange(0, f, 1); torch.linspace(0, f, 3); torch.pow(x, f); x.pow(f); x.view(f); x.new_full((2,), f)
torch.full_like(x, f); x.masked_fill(x > 1, f); x.roll(f); torch.zeros(f); x.sum() * f; x.to(torch.float64) * f
isinstance(f, int); isinstance(f, float); isinstance(f, (int, float)); type(f) is int; type(f) is float
{"a": f}; (f, 1); [f]; [f, 2]; [f, 2.5]; [f * 2 for _ in range(2)]; [v.item() for v in x]; sum([v.item() for v in x])
max([v.item() for v in x]); min(v.item() for v in x); sorted([v.item() for v in x]); sum(v.item() for v in x)
torch.nn.functional.dropout(x, f * 0.0); torch.nn.functional.leaky_relu(x, f); torch.nn.functional.pad(x, (f, 0))
f.is_integer(); f.bit_length(); f.bit_count(); f.real; f.imag; f.conjugate(); f.numerator; f.denominator; float(f).imag
abs(f - 1) < 1e-3; x[0] * f + x[1] * (1 - f); torch.clip(x, -f, f); (lambda q: q + 1)(f); len(xs) * f
"""
"""What Python does with a number ``f``, an int or a float, which is known at run time alone, beside ints and
Tensors."""

ORIGINS = {
    "item": "f = x[0].item()",
    "branch": "f = n\n    if h > 0.0:\n        f = h",
    "loop": "f = 7\n    for v in x[:1]:\n        f = v.item()",
}
"""How the number comes about."""

ARGUMENTS = (
    (torch.tensor([2, 3]), 2, [5, 6, 7], 0.0),
    (torch.tensor([2.0, 0.5]), 2, [5, 6, 7], 2.0),
    (torch.tensor([0.5, 1.5]), 1, [5, 6, 7], 0.5),
)


def source_of(origin: str, expression: str) -> str:
    """The program that computes ``expression`` of a number."""
    head = "def f(x: Tensor, n: int, xs: List[int], h: float):"
    return f"{head}\n    {ORIGINS[origin]}\n    return {expression}\n"


NAMESPACE = {"torch": torch, "math": math, "Tensor": Tensor, "List": List, "Dict": Dict, "Tuple": Tuple}
