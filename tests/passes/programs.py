"""Programs that hold what broken passes would get wrong; each takes a tensor of one dimension and an int."""

from __future__ import annotations

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
    whole = x + 1
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


def writes_to_integers(x: Tensor, n: int) -> Tensor:
    """What becomes a fraction, or longer, is an error where it is written."""
    y = x.mul(4).long()
    y.add_(n)
    if n > 3:
        y.mul_(0.5)
    if n > 2:
        y.add_(torch.ones(2, 1, dtype=torch.int64))
    return y.clamp_(0, 2)


PROGRAMS: tuple[Callable[..., object], ...] = (
    multiplies_matrices,
    writes_in_place,
    writes_to_integers,
    grows_in_a_loop,
    ends_early,
    never_comes_to_it,
    branches_begin_alike,
    answers_minus_zero,
    wants_another_number_of_chunks,
)
