"""Programs of every kind of nest, as fused graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional as F

import rekindle
from rekindle.ir.graph import Graph


def chain(a: Tensor, b: Tensor) -> Tensor:
    return torch.tanh(a * b + 1.0)


def mixed(a: Tensor, b: Tensor) -> Tensor:
    return (a.float() * 2.0 > b) & (b > 0)


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x * 2.0, -1)


def normalized(x: Tensor) -> Tensor:
    return F.layer_norm(x + 1.0, [1024]) * 2.0


def normalized_odd(x: Tensor) -> Tensor:
    return F.layer_norm(x + 1.0, [1001]) * 2.0


def largest(x: Tensor) -> Tensor:
    return x.relu().amax(-1)


def all_true(x: Tensor) -> Tensor:
    return (x > -1.0).all(-1)


def column_sum(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(0)


def column_softmax(x: Tensor) -> Tensor:
    return torch.softmax(x * 2.0, 0)


def two_column_sums(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(0) + (x - y).amax(0)


def total(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum()


def deviation(x: Tensor) -> Tensor:
    return torch.std(x * 2.0)


def both_directions(x: Tensor) -> Tensor:
    return torch.softmax(torch.softmax(x * 2.0, 0), 1)


def scaled(x: Tensor, by: float, n: int) -> Tensor:
    return x * by + n


def taken(index: Tensor, x: Tensor) -> Tensor:
    return x[index] * 2.0


def joined(y: Tensor, x: Tensor) -> Tensor:
    return torch.cat([x, y * 2.0], 1).relu()


def graph_of(function: Callable[..., Any], *arguments: Any) -> Graph:
    """The graph of the one group that ``function`` becomes."""
    with torch.no_grad():
        (node,) = rekindle.script(function).graph_for(*arguments).find_nodes("prim::FusionGroup")
    return node.get_graph("Subgraph")


def floats(*sizes: int) -> Tensor:
    """Numbers that are the same in each run."""
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


Arguments = Callable[[], tuple[Any, ...]]

CASES: Final[list[tuple[Callable[..., Any], Arguments, list[str]]]] = [
    (chain, lambda: (floats(4096), floats(4096)), ["vector 4x256"]),
    (chain, lambda: (floats(4097), floats(4097)), ["scalar 17x256"]),
    (chain, lambda: (floats(4097)[1:], floats(4096)), ["scalar 16x256"]),
    (chain, lambda: (floats(1), floats(1)), ["scalar 1x256"]),
    (chain, lambda: (floats(5, 8), floats(8)), ["vector 1x2x128"]),
    (chain, lambda: (floats(3, 1, 5), floats(4, 1)), ["scalar 1x8x32"]),
    (chain, lambda: (floats(64, 33).t(), floats(33, 64)), ["scalar 10x8x32"]),
    (chain, lambda: (floats(100, 260), floats(260)), ["vector 36x8x32"]),
    (chain, lambda: (floats(70, 512), floats(512)), ["vector 36x32x8"]),
    (chain, lambda: (floats(700, 1), floats(700, 3)), ["scalar 11x4x64"]),
    (chain, lambda: (floats(1000).bfloat16(), floats(1000).bfloat16()), ["vector 1x256"]),
    (chain, lambda: (floats(1001).half(), floats(1001).half()), ["scalar 4x256"]),
    (chain, lambda: (floats(100).double(), floats(100).double()), ["vector 1x256"]),
    (mixed, lambda: (floats(64).half(), floats(64)), ["vector 1x256"]),
    (scaled, lambda: (floats(10), 2.5, 3), ["scalar 1x256"]),
    (softmax, lambda: (floats(20, 3),), ["scalar 3x32x8"]),
    (softmax, lambda: (floats(20, 128),), ["registers1 3x32x8"]),
    (softmax, lambda: (floats(3, 200),), ["registers1 3x64"]),
    (softmax, lambda: (floats(9, 400),), ["registers4 2x32x8"]),
    (softmax, lambda: (floats(3, 4096),), ["registers4 3x256"]),
    (softmax, lambda: (floats(3, 777),), ["scalar 3x256"]),
    (softmax, lambda: (floats(2, 20_000),), ["vector 2x1024"]),
    (softmax, lambda: (floats(5, 1000).bfloat16(),), ["registers4 1x32x8"]),
    (normalized, lambda: (floats(6, 1024),), ["registers4 6x64"]),
    (normalized_odd, lambda: (floats(6, 1001),), ["scalar 6x256"]),
    (largest, lambda: (floats(7, 65),), ["scalar 1x32x8"]),
    (all_true, lambda: (floats(40, 30),), ["scalar 5x32x8"]),
    (column_sum, lambda: (floats(40, 30), floats(40, 30)), ["scalar 1x32x16"]),
    (column_sum, lambda: (floats(40, 512), floats(40, 512)), ["vector 4x32x16"]),
    (column_sum, lambda: (floats(1000, 30), floats(1000, 30)), ["split_scalar 16x32x16", "combine 1x256"]),
    (column_sum, lambda: (floats(300, 512), floats(300, 512)), ["split_vector 20x32x16", "combine 2x256"]),
    (column_sum, lambda: (floats(31, 320).bfloat16(), floats(31, 320).bfloat16()), ["vector 2x32x16"]),
    (two_column_sums, lambda: (floats(150, 12), floats(150, 12)), ["split_vector 3x32x16", "combine 1x256"]),
    (column_softmax, lambda: (floats(50, 70),), ["scalar 3x32x16"]),
    (total, lambda: (floats(3), floats(3)), ["phase0_scalar 1x256", "join0 1x256"]),
    (total, lambda: (floats(64, 1000), floats(64, 1000)), ["phase0_vector 16x256", "join0 1x256"]),
    (total, lambda: (floats(33, 77).t(), floats(77, 33)), ["phase0_scalar 1x256", "join0 1x256"]),
    (
        deviation,
        lambda: (floats(5000),),
        ["phase0_vector 2x256", "join0 1x256", "phase1_vector 2x256", "join1 1x256"],
    ),
    (both_directions, lambda: (floats(33, 64),), ["scalar 2x32x16", "registers1 5x32x8"]),
    (taken, lambda: (torch.tensor([3, -1, 0]), floats(10, 64)), ["vector 2x8x32"]),
    (taken, lambda: (torch.tensor([3, -1, 1]), floats(10, 66)[:, :64]), ["scalar 2x32x8"]),
    (joined, lambda: (floats(8, 12), floats(8, 4)), ["vector 1x1x256", "vector 1x4x64", "vector 1x256"]),
]
"""Programs, what they are called with, and the functions that are launched on how many blocks of how many threads."""
