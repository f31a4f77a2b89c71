"""Programs with loops."""

from __future__ import annotations

from typing import List, Tuple

import torch
from torch import Tensor
from torch.export import Dim

from tests.exporting.probes.registry import BATCH, NEGATIVE, POSITIVE, probe, ramp


@probe("for.constant")
def for_constant(x: Tensor) -> Tensor:
    for i in range(5):
        x = x * 0.5 + i
    return x


@probe("for.argument", (POSITIVE, 3), ((NEGATIVE, 3),))
def for_argument(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x + i
    return x


@probe("for.dynamic_argument", (POSITIVE, 3), ((NEGATIVE, 7), (NEGATIVE, 2)), (None, Dim.DYNAMIC))
def for_dynamic_argument(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x * 0.5 + i
    return x


@probe("for.static_size", (ramp(4, 3),), ((ramp(4, 3) * 2,),))
def for_static_size(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for i in range(x.size(0)):
        total = total + x[i] * i
    return total


@probe("for.dynamic_size", (ramp(4, 3),), ((ramp(9, 3),), (ramp(2, 3),)), BATCH)
def for_dynamic_size(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for i in range(x.size(0)):
        total = total * 0.5 + x[i]
    return total


@probe("for.break", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def for_break(x: Tensor) -> Tensor:
    y = x
    for i in range(6):
        if y.sum() > 20:
            break
        y = y * 2 + 0.1
    return y


@probe("for.long_break", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def for_long_break(x: Tensor) -> Tensor:
    y = x
    for i in range(100):
        if y.sum() > 20:
            break
        y = y * 1.5 + 0.1
    return y


@probe("for.continue", others=((NEGATIVE,),))
def for_continue(x: Tensor) -> Tensor:
    y = torch.zeros(4)
    for i in range(3):
        if x[i].sum() < 0:
            continue
        y = y + x[i]
    return y


@probe("for.return_inside", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def for_return_inside(x: Tensor) -> Tensor:
    for i in range(4):
        x = x * 2
        if x.sum() > 30:
            return x - 100
    return x


@probe("for.over_tensor", (ramp(3, 4),), ((ramp(3, 4) * 2,),))
def over_tensor(x: Tensor) -> Tensor:
    total = torch.zeros(4)
    for row in x:
        total = total + row.abs()
    return total


@probe("for.over_list", ([ramp(2), ramp(3), ramp(4)],), (([ramp(2) * 2, ramp(3), ramp(4)],),))
def over_list(xs: List[Tensor]) -> Tensor:
    total = torch.zeros(())
    for x in xs:
        total = total + x.sum()
    return total


@probe("for.enumerate_zip", ([ramp(2), ramp(2)], [ramp(2), ramp(2)]), (([ramp(2) * 3, ramp(2)], [ramp(2), ramp(2)]),))
def enumerate_zip(xs: List[Tensor], ys: List[Tensor]) -> List[Tensor]:
    out: List[Tensor] = []
    for i, (x, y) in enumerate(zip(xs, ys)):
        out.append(x * i + y)
    return out


@probe("for.append_static", (ramp(4, 3),), ((ramp(4, 3) * 2,),))
def append_static(x: Tensor) -> Tensor:
    out: List[Tensor] = []
    h = torch.zeros(3)
    for t in range(x.size(0)):
        h = torch.tanh(x[t] + h)
        out.append(h)
    return torch.stack(out)


@probe("for.write_row", (ramp(4, 3),), ((ramp(9, 3),), (ramp(2, 3),)), BATCH)
def write_row(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    h = torch.zeros(3)
    for t in range(x.size(0)):
        h = torch.tanh(x[t] + h)
        out[t] = h
    return out


@probe("for.nested", (ramp(3, 4),), ((ramp(6, 4),), (ramp(2, 4),)), BATCH)
def for_nested(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for i in range(x.size(0)):
        for j in range(x.size(1)):
            total = total * 0.9 + x[i, j]
    return total


@probe("while.tensor", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def while_tensor(x: Tensor) -> Tensor:
    while x.sum() < 100:
        x = x * 2 + 1
    return x


@probe("while.counter")
def while_counter(x: Tensor) -> Tensor:
    i = 0
    while i < 4:
        x = x + i
        i += 1
    return x


@probe("while.both", others=((NEGATIVE,), (POSITIVE * 0.001,)))
def while_both(x: Tensor) -> Tuple[Tensor, int]:
    i = 0
    while x.sum() < 50 and i < 20:
        x = x * 1.5 + 0.1
        i += 1
    return x, i


@probe("while.true_break", others=((NEGATIVE,), (POSITIVE * 0.001,)))
def while_true_break(x: Tensor) -> Tensor:
    n = 0
    while True:
        x = x * 2 + 1
        n += 1
        if x.sum() > 200:
            break
    return x * n


@probe("while.float", others=((NEGATIVE,), (POSITIVE * 3,)))
def while_float(x: Tensor) -> Tensor:
    error = 1.0
    y = x.abs() + 1
    while error > 0.001:
        new = 0.5 * (y + (x.abs() + 2) / y)
        error = float((new - y).abs().max())
        y = new
    return y


@probe("while.if_inside", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def while_if_inside(x: Tensor) -> Tensor:
    k = 0
    while x.abs().sum() < 60:
        if x.sum() > 0:
            x = x * 2 + 0.5
        else:
            x = x * 3 - 0.5
            k += 1
    return x + k


@probe("while.in_place", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def while_in_place(x: Tensor) -> Tensor:
    y = x.clone()
    while y.abs().sum() < 60:
        y.mul_(2).add_(0.1)
    return y
