"""Programs that hold what broken passes would get wrong; each takes a tensor of one dimension and an int."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def grows_in_a_loop(x: Tensor, n: int) -> int:
    found: list[int] = []
    total = 0
    for i in range(n):
        total += len(found) * 10 + x.dim() + i
        found.append(total)
        x.unsqueeze_(0)
    return total


def ends_early(x: Tensor, n: int) -> Tensor:
    for i in range(5):
        x = x * 2 + i
        if i == n:
            break
    for j in range(3):
        for k in range(2):
            x = x + j * k
    return x


def states_in_a_list(x: Tensor, n: int) -> Tensor:
    states = [x, x * 2]
    for i in range(n):
        states[0] = states[0] + states[1]
        states[1] = states[0] * i
    return states[0] + states[1] * 3


def number_until_the_loop_runs(x: Tensor, n: int):  # type: ignore[no-untyped-def]
    total = 1
    i = 7
    while i < n:
        total = total * 0.5 + x
        i += 1
    return total


def never_comes_to_it(x: Tensor, n: int) -> int:
    total = n
    for _ in range(n - 3):
        total += n * x.dim() + n // (n - n)
    return total


def branches_begin_alike(x: Tensor, n: int) -> Tensor:
    if n > 2:
        y = x.mul_(2) + 1
        z = y * n
    else:
        y = x.mul_(2) + 1
        z = y - n
    if n > 2:
        return z + x.neg()
    return z + y.neg()


def answers_minus_zero(x: Tensor, n: int) -> tuple[Tensor, float, int, bool]:
    zero = -0.0 * n
    number = float("nan") * n
    return x + 0, zero + 0, (n * 1 + 0) // 1, not (number < 1.0) and not (number == 1.0)


def wants_another_number_of_chunks(x: Tensor, n: int) -> Tensor:
    a, b, c = x.chunk(3, 0)
    d, e = x.chunk(3, n - n)
    return a + b + c + d + e


def multiplies_matrices(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Sums of products that broadcast, and products that share a factor on either side."""
    weight = torch.outer(x, x + 1)
    rows = torch.stack([x, x * 2, x - 1])
    first = x.unsqueeze(0) if n > 2 else rows
    total = first.mm(weight) + rows.mm(weight + 1) + (rows + n).mm(weight) + (rows - 1).mm(weight * 2)
    shared = weight * n
    steps = (rows + 1).mm(shared).relu() + (rows + 2).mm(shared).relu()
    steps = steps - (rows * 3).mm(shared).relu() * (rows - steps).mm(shared).relu() + (first * 5).mm(shared).relu()
    left = torch.stack([x.flip(0), x])
    columns = rows.t()
    views = left.mm(columns).view(-1) + left.mm(columns * 2).view(-1) * left.mm(columns + 1).view(-1)
    views = views - left.mm(columns - n).view(-1)
    return total + steps, views


def writes_in_place(x: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Writes to new tensors and to views, and lists that grow in between looks at them."""
    y = x * n
    y.neg_().add_(1).mul_(x)
    torch.relu_(y)
    whole = x + 1.25
    part = whole[0]
    part.neg_()
    whole.floor_()
    kept = [x.abs()]
    kept[0].neg_()
    found: list[Tensor] = []
    found.append(y)
    found.append(part)
    lengths = len(found)
    found.insert(0, whole)
    last = found.pop()
    found[lengths - 2] = x.sin().cos_()
    for i in range(n):
        z = x - i
        z.ceil_()
        y = y + z
        found += [z]
    return y, whole, last + kept[0], found


def builds_lists(x: Tensor, n: int) -> tuple[list[Tensor], list[int]]:
    found = [x, x + 1]
    found.append(x * 2)
    found[1] = x - n
    found.insert(0, found.pop())
    found.reverse()
    numbers = [n]
    numbers += [n + 1, n + 2]
    numbers.extend([numbers[n], 5])
    return found, numbers


def copies_by_adding_zero(x: Tensor, n: int) -> Tensor:
    y = x + 0
    y.neg_()
    return x - y * n


def writes_to_integers(x: Tensor, n: int) -> Tensor:
    """What becomes a fraction, or longer, is an error where it is written."""
    y = torch.ones_like(x, dtype=torch.int64) * n
    y.add_(n)
    if n > 3:
        y.mul_(0.5)
    if n > 2:
        y.add_(torch.ones(2, 1, dtype=torch.int64))
    return y.clamp_(0, 2)


def reads_between_writes(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    x = x.clone()
    a = x.neg()
    x.add_(n)
    b = x.neg()
    return a - b, a


def draws_twice(x: Tensor, n: int) -> Tensor:
    return torch.rand_like(x) - torch.rand_like(x) * n


def writes_to_a_view(x: Tensor, n: int) -> Tensor:
    y = x * n
    y[0].neg_()
    return y


def tells_zeros_apart(x: Tensor, n: int) -> tuple[float, float]:
    zero = 0.0
    negative = -0.0
    if n > 1:
        negative = zero
    return math.copysign(float(n), zero), math.copysign(float(n), negative)


def _less_twice(a: Tensor, b: Tensor) -> Tensor:
    return a - b * 2


def calls_another(x: Tensor, n: int) -> Tensor:
    return _less_twice(x, x + n)


def takes_tuples_apart(x: Tensor, n: int) -> Tensor:
    pair = (x, x + n)
    first, second = pair
    return first - second * 2


def takes_chunks_of_what_changes(x: Tensor, n: int) -> Tensor:
    x = x * n
    pieces = x.chunk(3, 0)
    x.unsqueeze_(0)
    a, b, c = pieces
    return a - b * c


def branches_differ(x: Tensor, n: int) -> Tensor:
    if n > 2:
        y = x * 2
    else:
        y = x * 3
    return y


def chooses_what_there_is(x: Tensor, n: int) -> Tensor:
    y = x * 2
    if n > 2:
        x = y
    return x + 1


def writes_what_is_rounded(x: Tensor, n: int) -> Tensor:
    y = torch.cat([x, x])
    y[0].copy_(torch.tensor(n + 0.75, dtype=torch.int64))
    return y


def halves_integers(x: Tensor, n: int) -> Tensor:
    """It is an error."""
    y = torch.ones_like(x, dtype=torch.int64) * n
    y.mul_(0.5)
    return y


def adds_to_products(x: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """The last is an error for some of the biases."""
    a = torch.outer(x, x)
    return torch.addmm(x, a, a + n), torch.addmm(a, a, a, beta=n), torch.addmm(x.repeat(n * n), a, a)


def adds_a_larger_bias(x: Tensor, n: int) -> Tensor:
    """It is an error."""
    a = torch.outer(x, x)
    return torch.addmm(a.unsqueeze(0), a, a)


def multiplies_and_writes(x: Tensor, n: int) -> Tensor:
    """Two parts that do not need each other, but for what the one writes to and the other reads."""
    a = torch.outer(x, x)
    b = a * n
    first = a.mm(b.add_(1)).relu()
    second = b.mm(a).neg()
    third = (a - 1).mm(a).tanh().mm(a)
    with torch.no_grad():
        fourth = (a + n).mm(b)
    return first * second + third * fourth


def writes_to_a_factor(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Between products that are added up, and between products that share it."""
    a = torch.outer(x, x)
    b = a + n
    total = a.mm(b) + b.mm(a)
    b.add_(1)
    total = total + (a.mm(a) + b.mm(b))
    p, q = a.mm(b).relu(), (a + 1).mm(b).relu()
    b.mul_(2)
    r, s = (a + 2).mm(b).relu(), (a + 3).mm(b).relu()
    first, second = a.mm(b), b.mm(a)
    third, fourth = b.mm(b), a.mm(a)
    a.add_(1)
    return total + (first + second) + (third + fourth) + a.mm(b), p - q * r - s


def breaks_out(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x + i + 1
        if i == 2:
            break
    return x


def subtracts_from_the_right(x: Tensor, n: int) -> Tensor:
    return torch.rsub(x, x * n, alpha=2)


def returns_in_another_order(x: Tensor, n: int) -> Tensor:
    a = x
    b = x * 2
    if n > 1:
        a = x + 1
        b = x - 1
    return b * 2 - a * 3


def gives_two_tensors(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    return _written(x.neg(), n), x.neg()


def _written(x: Tensor, n: int) -> Tensor:
    return x


def refuses_some(x: Tensor, n: int) -> Tensor:
    if n == 2:
        raise ValueError("two")
    return x


def asks_again(x: Tensor, n: int) -> Tensor:
    is_large = n > 2
    if is_large:
        x = x + 1
        if is_large:
            x = x * 2
    return x


def chooses_constants(x: Tensor, n: int) -> Tensor:
    factor = 2
    if n > 2:
        factor = 3
    return x * factor


def _two_calls_with_effects(x: Tensor, n: int) -> int:
    x.add_(n)
    return n + 1


def ignores_results(x: Tensor, n: int) -> Tensor:
    _two_calls_with_effects(x, n)
    found = [n]
    found.append(3)
    for i in range(2):
        found[0] += i
        x.mul_(found[0])
    return x


PROGRAMS: tuple[Callable[..., object], ...] = (
    multiplies_matrices,
    multiplies_and_writes,
    adds_to_products,
    adds_a_larger_bias,
    writes_to_a_factor,
    writes_in_place,
    builds_lists,
    copies_by_adding_zero,
    writes_to_integers,
    halves_integers,
    writes_to_a_view,
    reads_between_writes,
    draws_twice,
    grows_in_a_loop,
    states_in_a_list,
    ends_early,
    breaks_out,
    never_comes_to_it,
    branches_begin_alike,
    branches_differ,
    returns_in_another_order,
    answers_minus_zero,
    tells_zeros_apart,
    wants_another_number_of_chunks,
    takes_chunks_of_what_changes,
    takes_tuples_apart,
    calls_another,
    gives_two_tensors,
    refuses_some,
    chooses_constants,
    ignores_results,
    subtracts_from_the_right,
)
