"""Values and state that were used to break the export."""

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.export import Dim

from tests.exporting.probes.registry import BATCH, NEGATIVE, POSITIVE, probe, ramp
from tests.exporting.probes.values import Accumulator


@probe("hard.buffers_in_one_branch", others=((NEGATIVE,), (NEGATIVE * 3,)))
class OneBranchBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.zeros(4))
        self.register_buffer("b", torch.ones(4), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.a += x[0]
        else:
            if x.min() < -1:
                self.b.mul_(2)
        return x + self.a * self.b


@probe("hard.row_of_argument", (POSITIVE.clone(),), ((NEGATIVE.clone(),),))
def row_of_argument(x: Tensor) -> Tensor:
    row = x[0]
    row.add_(5)
    return x.sum() + row.sum()


@probe("hard.argument_in_branch", (POSITIVE.clone(),), ((NEGATIVE.clone(),),))
def argument_in_branch(x: Tensor) -> Tensor:
    if x.sum() > 0:
        x.mul_(2)
    return x + 1


class Pair(NamedTuple):
    first: Tensor
    second: Optional[Tensor]
    n: int


@probe("hard.named_tuple_with_none", (Pair(POSITIVE, None, 3),), ((Pair(NEGATIVE, None, 3),),))
def named_tuple_with_none(p: Pair) -> Pair:
    if p.second is None:
        return Pair(p.first * p.n, p.first, p.n + 1)
    return p


@probe("hard.dynamic_ints", (POSITIVE, 3, 2), ((NEGATIVE, 7, 5), (NEGATIVE, 2, 9)), (None, Dim.DYNAMIC, Dim.DYNAMIC))
def dynamic_ints(x: Tensor, n: int, m: int) -> Tuple[Tensor, int]:
    if n > m:
        return x * n, n - m
    k = 0
    while k < m:
        x = x + k * n
        k += 1
    return x, n * m


@probe("hard.dynamic_int_as_size", (POSITIVE, 3), ((NEGATIVE, 7), (NEGATIVE, 2)), (None, Dim.DYNAMIC))
def dynamic_int_as_size(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(n, 4)
    for i in range(n):
        y[i] = x[0] * i
    return y


@probe("hard.no_elements", (torch.zeros(0, 4),), ((torch.zeros(0, 4),),))
def no_elements(x: Tensor) -> Tensor:
    if x.sum() >= 0:
        y = x + 1
    else:
        y = x - 1
    for row in x:
        y = y + row
    return torch.cat([y, torch.ones(1, 4)])


@probe(
    "hard.key_in_branch",
    (POSITIVE, "a", {"a": POSITIVE, "b": NEGATIVE}),
    ((NEGATIVE, "a", {"a": POSITIVE * 2, "b": NEGATIVE}),),
)
def key_in_branch(x: Tensor, key: str, d: Dict[str, Tensor]) -> Tensor:
    name = key
    if x.sum() > 0:
        name = "b"
    return x + d[name]


def helper(x: Tensor, y: Tensor) -> Tensor:
    if x.sum() > 0:
        return x + y
    return x - y


@probe("hard.fork_in_branch")
def fork_in_branch(x: Tensor) -> Tensor:
    f = torch.jit.fork(helper, x, x * 2)
    g = torch.jit.fork(helper, x + 1, x * 2)
    if x.max() > 0:
        return torch.jit.wait(f)
    return torch.jit.wait(g) + torch.jit.wait(f)


@probe("hard.shared_modules")
class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.out = nn.Linear(4, 4)
        self.out.weight = self.lin.weight
        self.other = self.lin
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        y = self.lin(x)
        y = self.lin(y) + self.other(x)
        return self.out(y) * self.n


@probe("hard.complex")
class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, dtype=torch.complex64))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.complex(x, x * 2) * self.w
        if x.sum() > 0:
            y = y.conj() + 1
        return torch.view_as_real(y.resolve_conj())


@probe("hard.bfloat16", (POSITIVE.bfloat16(),), ((NEGATIVE.bfloat16(),),))
def bfloat16(x: Tensor) -> Tensor:
    y = x
    for i in range(3):
        y = y * 1.5
    while y.abs().sum() < 200:
        y = y * 2
    return y


@probe("hard.layers_skipped", others=((NEGATIVE,), (POSITIVE * 9,)))
class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.register_buffer("hits", torch.zeros(3, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            if x.sum() > i - 1:
                x = layer(x)
                self.hits[i] += 1
        return x * self.hits.sum()


@probe("hard.state_of_each_kind")
class StateList(nn.Module):
    hist: List[Tensor]
    stats: Dict[str, Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.hist = [torch.zeros(4), torch.zeros(4)]
        self.stats = {"mean": torch.zeros(4), "count": torch.zeros(())}
        self.limit = 2.0
        self.on = False

    def forward(self, x: Tensor) -> Tensor:
        self.hist[0], self.hist[1] = self.hist[1], x.mean(0)
        self.stats["mean"] = self.stats["mean"] * 0.5 + x.mean(0)
        self.stats["count"] += 1
        if x.sum() > self.limit:
            self.limit = self.limit * 2
            self.on = not self.on
        return self.hist[0] + self.stats["mean"] * self.stats["count"] + (1 if self.on else 0)


@probe("hard.numbers_of_tensors", others=((NEGATIVE,), (POSITIVE * 9,)))
def numbers_of_tensors(x: Tensor) -> Tensor:
    n = int(x.sum().item())
    m = n // 3 + n % 4
    if n > 3:
        m = -m
    return x * m + abs(m)


@probe("hard.ring_buffer")
class BufView(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mem", torch.zeros(3, 4))
        self.pos = 0

    def forward(self, x: Tensor) -> Tensor:
        self.mem[self.pos] = x[0]
        self.pos = (self.pos + 1) % 3
        return self.mem.clone()


@probe("hard.cache")
class KV(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("k", torch.zeros(8, 4))
        self.length = 0

    def forward(self, x: Tensor) -> Tensor:
        self.k[self.length : self.length + 1] = x[:1]
        self.length += 1
        return self.k[: self.length].sum(0)


@probe("hard.roots", others=((NEGATIVE,), (POSITIVE * 7,)))
def roots(x: Tensor) -> Tensor:
    f = float(x.abs().sum())
    a = math.floor(f) + math.ceil(f)
    b = math.sqrt(f) + math.exp(-f) + math.log(f + 1.0)
    return x * a + b


@probe("hard.rounding", others=((NEGATIVE,), (POSITIVE * 7,)))
def rounding(x: Tensor) -> Tensor:
    f = float(x.sum())
    n = int(f)
    k = round(f)
    a = abs(n) + abs(f) + n**2 + f**2 + n // 3 + n % 5 + f // 2.0 + f % 3.0
    return x * a + k


@probe("hard.bits", others=((NEGATIVE,), (POSITIVE * 7,)))
def bit_operations(x: Tensor) -> Tensor:
    n = int(x.abs().sum())
    return x + ((n << 2) + (n >> 1) + (n & 3) + (n | 8) + (n ^ 5))


@probe("hard.negative_index", (ramp(4, 3),), ((ramp(4, 3) * -1,), (ramp(4, 3).flip(0),)))
def negative_index(x: Tensor) -> Tensor:
    i = int(x.sum(1).argmax()) - 2
    y = x.clone()
    y[i] = 9
    return y + x[i]


@probe("hard.flags_and_averages", others=((NEGATIVE,),))
class Ema(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("avg", torch.zeros(4))
        self.register_buffer("init", torch.tensor(False))
        self.steps: int = 0
        self.decay: float = 0.9

    def forward(self, x: Tensor) -> Tensor:
        if not bool(self.init):
            self.avg.copy_(x.mean(0))
            self.init.fill_(True)
        else:
            self.avg.mul_(self.decay).add_(x.mean(0), alpha=1 - self.decay)
        self.steps += 1
        if self.steps % 2 == 0:
            self.decay = min(self.decay + 0.05, 0.99)
        return (x - self.avg) * self.steps


@probe("hard.object")
class WithObj(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.acc = Accumulator(torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.acc.add(x[0])
        return self.acc.mean()


@probe("hard.views_of_buffers")
class ParamView(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(4, 4))
        self.register_buffer("cache", torch.zeros(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        row = self.cache[1]
        with torch.no_grad():
            row += x[0]
        self.cache[2:].mul_(2).add_(1)
        t = self.cache.t()
        t[0, 3] = 5
        return x @ self.w + self.cache.sum(0)


@probe("hard.modules_in_while", others=((NEGATIVE,), (POSITIVE * 0.01,)))
class LoopMod(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.BatchNorm1d(4))
        self.gate = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        n = 0
        while torch.sigmoid(self.gate(x)).mean() < 0.62 and n < 10:
            x = x + self.net(x)
            n += 1
        return x, n


@probe("hard.padding", (ramp(6, 3),), ((ramp(9, 3),), (ramp(5, 3),)), BATCH)
def padding(x: Tensor) -> Tensor:
    if x.size(0) % 2 == 1:
        x = torch.cat([x, torch.zeros(1, 3)])
    return x.view(-1, 2, 3).sum(1)
