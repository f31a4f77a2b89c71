"""Loops that were written to break the export."""

from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.export import Dim

from tests.exporting.probes.registry import BATCH, LONG, NEGATIVE, POSITIVE, module, probe, ramp


@probe("hard.return_in_while_in_for", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def return_in_while_in_for(x: Tensor) -> Tensor:
    for i in range(3):
        while x.abs().sum() < 10 * (i + 1):
            x = x * 2 + 0.1
            if x.max() > 8:
                return x - 100
        x = x + i
    return x


@probe("hard.return_in_while_in_dynamic_for", (ramp(4, 3),), ((ramp(9, 3) * 3,), (ramp(2, 3) * 0.1,)), BATCH)
def return_in_while_in_dynamic_for(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for i in range(x.size(0)):
        total = total + x[i]
        while total.abs().sum() > 2:
            total = total * 0.5
            if total.max() > 1.5:
                return total - 100
    return total


@probe("hard.continue_and_breaks", (ramp(4, 3),), ((ramp(9, 3) * 3,), (ramp(2, 3) * 0.1,)), BATCH)
def continue_and_breaks(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    count = 0
    for i in range(x.size(0)):
        if x[i].sum() < 0:
            continue
        for j in range(5):
            total = total + x[i] * j
            if total.sum() > 5:
                break
            count += 1
        if count > 8:
            break
    return total * count


@probe("hard.chunks", (ramp(6, 3),), ((ramp(9, 3),), (ramp(5, 3),)), BATCH)
def chunks(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for i in range(0, x.size(0), 2):
        total = total + x[i : i + 2].sum(0) * 0.5
    return total


@probe("hard.backwards", (ramp(6, 3),), ((ramp(9, 3),), (ramp(5, 3),)), BATCH)
def backwards(x: Tensor) -> Tensor:
    h = torch.zeros(3)
    for i in range(x.size(0) - 1, -1, -1):
        h = torch.tanh(h + x[i])
    return h


@probe(
    "hard.zip",
    (ramp(6, 3), ramp(6, 3)),
    ((ramp(9, 3), ramp(9, 3) * 2), (ramp(5, 3), ramp(5, 3) * 3)),
    ({0: LONG}, {0: LONG}),
)
def zipped(x: Tensor, y: Tensor) -> Tensor:
    h = torch.zeros(3)
    for a, b in zip(x, y):
        h = torch.tanh(h + a * b)
    return h


@probe("hard.variable_behind", (ramp(6, 3),), ((ramp(9, 3),), (ramp(5, 3),)), BATCH)
def variable_behind(x: Tensor) -> Tensor:
    i = 0
    for i in range(x.size(0)):
        if x[i].sum() > 0.3:
            break
    return x[i] + i


class RNNList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(3, 3) for _ in range(2)])

    def forward(self, x: Tensor, hs: Optional[List[Tensor]] = None) -> Tuple[Tensor, List[Tensor]]:
        if hs is None:
            hs = [torch.zeros(1, 3) for _ in range(2)]
        else:
            hs = list(hs)
        outs: List[Tensor] = []
        for t in range(x.size(0)):
            inp = x[t].unsqueeze(0)
            for i, c in enumerate(self.cells):
                hs[i] = c(inp, hs[i])
                inp = hs[i]
            outs.append(inp)
        return torch.cat(outs), hs


module("hard.list_of_states", RNNList, (ramp(5, 3),), ((ramp(9, 3),), (ramp(2, 3),)), {"x": {0: LONG}})


@probe("hard.no_iterations", (ramp(4, 3), 2), ((ramp(9, 3), 5), (ramp(2, 3), 0)), ({0: LONG}, Dim.DYNAMIC))
def no_iterations(x: Tensor, n: int) -> Tensor:
    out = [x[0]]
    for i in range(n):
        out.append(x[0] * i)
    return torch.stack(out)


@probe("hard.none_before", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def none_before(x: Tensor) -> Tensor:
    last: Optional[Tensor] = None
    while x.abs().sum() < 50:
        x = x * 2
        last = x
    if last is None:
        return x
    return last + 1


@probe("hard.none_before_unrolled", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def none_before_unrolled(x: Tensor) -> Tensor:
    best: Optional[Tensor] = None
    for i in range(3):
        if x[i].sum() > 0:
            if best is None:
                best = x[i]
            else:
                best = torch.maximum(best, x[i])
    if best is None:
        return torch.zeros(4)
    return best


@probe("hard.list_carried", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def list_carried(x: Tensor) -> Tensor:
    st = [x, x * 0]
    while st[0].abs().sum() < 80:
        st[1] = st[1] + st[0]
        st[0] = st[0] * 1.5 + 0.1
    return st[0] + st[1]


@probe("hard.append_and_break", (ramp(6, 3),), ((ramp(9, 3) * -2,), (ramp(4, 3) * 3,)), BATCH)
def append_and_break(x: Tensor) -> Tensor:
    outs: List[Tensor] = []
    h = torch.zeros(3)
    for t in range(x.size(0)):
        h = torch.tanh(h + x[t])
        outs.append(h)
        if h.sum() > 0.5:
            break
    return torch.stack(outs)


@probe("hard.bidirectional", (ramp(6, 3),), ((ramp(9, 3) * -2,), (ramp(4, 3) * 3,)), BATCH)
def bidirectional(x: Tensor) -> Tensor:
    fw: List[Tensor] = []
    h = torch.zeros(3)
    for t in range(x.size(0)):
        h = torch.tanh(h + x[t])
        fw.append(h)
    bw: List[Tensor] = []
    h = torch.zeros(3)
    for t in range(x.size(0)):
        h = torch.tanh(h + x[x.size(0) - 1 - t])
        bw.append(h)
    out: List[Tensor] = []
    for t in range(x.size(0)):
        out.append(torch.cat([fw[t], bw[x.size(0) - 1 - t]]))
    return torch.stack(out)


@probe("hard.gcd", (POSITIVE, 12, 18), ((NEGATIVE, 7, 21), (NEGATIVE, 5, 100)), (None, Dim.DYNAMIC, Dim.DYNAMIC))
def gcd(x: Tensor, a: int, b: int) -> Tuple[Tensor, int]:
    while b != 0:
        a, b = b, a % b
    return x * a, a


@probe("hard.collatz", others=((NEGATIVE,), (POSITIVE * 7,)))
def collatz(x: Tensor) -> Tensor:
    n = int(x.abs().sum()) + 7
    steps = 0
    while n != 1 and steps < 200:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return x + steps


@probe("hard.queue", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def queue(x: Tensor) -> Tensor:
    window = [x[0], x[1]]
    n = 0
    while window[-1].abs().sum() < 30:
        window.append(window[-1] * 1.5 + window[-2] + 0.1)
        window.pop(0)
        n += 1
    return window[0] + window[1] * n


@probe("hard.raise_inside", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def raise_inside(x: Tensor) -> Tensor:
    n = 0
    while x.abs().sum() < 60:
        x = x * 1.5
        n += 1
        if n > 8:
            raise RuntimeError("too many")
    return x


@probe(
    "hard.scatter",
    (ramp(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])),
    ((ramp(9, 3), torch.tensor([0, 0, 0, 0, 1, 2, 2, 2, 2])),),
    ({0: LONG}, {0: LONG}),
)
def scatter(x: Tensor, idx: Tensor) -> Tensor:
    out = torch.zeros(3, 3)
    for i in range(x.size(0)):
        j = int(idx[i])
        out[j] = out[j] + x[i]
    return out


@probe("hard.range_of_late", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def range_of_late(x: Tensor) -> Tensor:
    n = int(x.abs().sum())
    t = x
    for i in range(n):
        t = t * 0.9 + i
    for i in range(n, 0, -1):
        t = t * 0.9 - i
    return t


@probe("hard.casts", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def casts(x: Tensor) -> Tensor:
    y = torch.zeros(3, 4, dtype=torch.int64)
    while y.sum() < 30:
        y = (y + x.abs() + 1).long()
    return y


@probe("hard.writes_to_argument", (POSITIVE.clone(),), ((NEGATIVE.clone(),),))
def writes_to_argument(x: Tensor) -> Tensor:
    while x.abs().sum() < 60:
        x.mul_(2)
    return x + 1


@probe("hard.count_of_zero", (POSITIVE, 3), ((POSITIVE, 0), (NEGATIVE, 1), (NEGATIVE, 2)), (None, Dim.DYNAMIC))
def count_of_zero(x: Tensor, n: int) -> Tensor:
    """What a loop of no iterations would have checked says nothing of what follows."""
    rows: List[Tensor] = []
    for i in range(n):
        rows.append(x[i] * 2)
    if n == 0:
        return x - 100.0
    return torch.stack(rows)


@probe("hard.checks_in_branches", (POSITIVE, 5), ((NEGATIVE, 1), (POSITIVE, 1), (NEGATIVE, 4)), (None, Dim.DYNAMIC))
def checks_in_branches(x: Tensor, n: int) -> Tensor:
    """What is checked in a branch holds there alone."""
    if x.sum() > 0:
        assert n > 3
        x = x + 1
    while x.abs().sum() < 10:
        assert n > 2
        x = x * 2
    if n > 3:
        return x
    return x * 3


@probe("hard.averages", others=((NEGATIVE,), (POSITIVE * 7,), (POSITIVE * 0.0,)))
def averages(x: Tensor) -> Tuple[Tensor, float]:
    """Numbers of both kinds, read off tensors within branches and loops."""
    total, count = 0.0, 0
    for row in x:
        number = float(row.sum())
        if number > 1.5:
            total = total + number * 2
            count += int(number) % 3 + 1
    mean = total / max(count, 1)
    return torch.clamp(x * mean, min=-count / 2, max=mean + 1), mean
