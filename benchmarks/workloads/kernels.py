"""Programs whose operators fuse into kernels, on sizes from a few elements to those that fill the memory."""

from __future__ import annotations

from functools import partial
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.models import ResidualNet
from benchmarks.workloads import networks, pointwise, recurrent, scalars
from benchmarks.workloads.case import Case, Workload

SIZES: Final = {
    "100": 100,
    "1 thousand": 1_000,
    "10 thousand": 10_000,
    "100 thousand": 100_000,
    "1 million": 10**6,
    "4 million": 4 * 10**6,
    "10 million": 10**7,
    "100 million": 10**8,
}

ROWS: Final = (128, 512, 1024, 4096, 16_384)


def stream(x: Tensor, y: Tensor) -> Tensor:
    """Compute a chain that memory bandwidth limits: two reads and a write for each element."""
    return x * y + x - 0.5 * y


class Rows(nn.Module):
    """PyTorch's own normalization of rows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, [x.size(-1)], self.weight, self.bias)


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=-1)


def distance(a: list[int], b: list[int]) -> int:
    """Return the edit distance of ``a`` and ``b``: the number of items to insert, delete or replace."""
    row = list(range(len(b) + 1))
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            cost = corner if a[i] == b[j] else corner + 1
            corner = row[j + 1]
            row[j + 1] = min(cost, min(row[j] + 1, corner + 1))
    return row[len(b)]


def _stream(count: int) -> Case:
    return Case(stream, (torch.randn(count), torch.randn(count)))


def _softmax(width: int) -> Case:
    return Case(softmax, (torch.randn(max(1, 65_536 // width), width),))


def _layer_norm(width: int) -> Case:
    return Case(Rows(width).eval(), (torch.randn(max(1, 65_536 // width), width),))


def _frozen_net() -> Case:
    return Case(ResidualNet(width=32).eval(), (torch.randn(1, 3, 96, 96),), is_frozen=True)


def _distance() -> Case:
    a, b = (torch.randint(8, (90,)).tolist() for _ in range(2))
    return Case(distance, (a, b))


CELL: Final = Workload("LSTM cell, 1×32", partial(recurrent._cell, 1, 32))
LOOP: Final = Workload("LSTM, 100 steps, 1×64", partial(recurrent._loop, 100, 64))
SMALL_BLOCK: Final = Workload("transformer block, 16×64", partial(networks._block, 1, 16, 64, 4))
LARGE_BLOCK: Final = Workload("transformer block, 4×128×256", partial(networks._block, 4, 128, 256, 8))
FROZEN_NET: Final = Workload("residual net, 50 layers, frozen", _frozen_net)
COLLATZ: Final = Workload("Collatz below 1,000", lambda: Case(scalars.collatz, (1_000,)))
DISTANCE: Final = Workload("edit distance of 90 numbers", _distance)
CHAINS: Final = {
    name: Workload(f"pointwise chain, {name}", partial(pointwise._chain, count)) for name, count in SIZES.items()
}
STREAMS: Final = {
    count: Workload(f"pointwise stream, {name}", partial(_stream, count)) for name, count in SIZES.items()
}
SOFTMAXES: Final = [Workload(f"softmax, rows of {width:,}", partial(_softmax, width)) for width in ROWS]
NORMS: Final = [Workload(f"layer norm, rows of {width:,}", partial(_layer_norm, width)) for width in ROWS]

KERNELS: tuple[Workload, ...] = (
    CELL,
    Workload("LSTM cell, 64×512", partial(recurrent._cell, 64, 512)),
    LOOP,
    *CHAINS.values(),
    *SOFTMAXES,
    *NORMS,
    Workload("attention, written out, 2×4×32×16", networks._attention),
    Workload("MLP, batch of 1", networks._mlp),
    Workload("GELU MLP, 32×256", networks._gelu_mlp),
    SMALL_BLOCK,
    LARGE_BLOCK,
    FROZEN_NET,
    Workload("decoder until a word, 2×32", recurrent._decoder),
    Workload("NMS of 100 boxes", scalars._nms),
    DISTANCE,
    COLLATZ,
)
