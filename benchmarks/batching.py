"""Time of ``rekindle.vmap``, compared with ``torch.func.vmap`` and a loop over the examples, on one thread.

Each round runs each candidate once; the median over the rounds of the ratio to ``torch.func.vmap`` in the same round is
reported. The clock is that of the thread.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional as F

import rekindle

ROUNDS: Final = 60


def two_layers(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Compute two linear layers: the example of the blog post on vmap by graph editing."""
    w1 = w1.sigmoid()
    x = x @ w1 + b1
    x = x.tanh()
    w2 = w2.sigmoid()
    return x @ w2 + b2


def perceptron(w1: Tensor, b1: Tensor, w2: Tensor, x: Tensor, y: Tensor) -> Tensor:
    hidden = F.linear(x, w1, b1).relu()
    return F.cross_entropy(F.linear(hidden, w2), y)


def network(k1: Tensor, b1: Tensor, k2: Tensor, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    hidden = F.conv2d(x.unsqueeze(0), k1, b1, stride=2).relu()
    hidden = F.conv2d(hidden, k2, stride=2).relu()
    return F.cross_entropy(hidden.flatten(1) @ w, y.unsqueeze(0))


@dataclass(frozen=True, slots=True)
class Case:
    """A function, weights that all examples share, and the ``examples``: shapes of batched float tensors, or None for a
    tensor of classes. ``gradients`` is the number of weights to differentiate, 0 to call the function itself."""

    name: str
    function: Callable[..., Tensor]
    weights: tuple[tuple[int, ...], ...]
    examples: tuple[tuple[int, ...] | None, ...]
    batch: int
    gradients: int = 0
    examples_first: bool = False


CASES: Final = (
    Case("two layers, 5 examples", two_layers, ((1, 10), (10,), (10, 1), (1,)), ((1,),), 5, examples_first=True),
    Case("two layers, 256 examples", two_layers, ((32, 64), (64,), (64, 8), (8,)), ((32,),), 256, examples_first=True),
    Case("gradients for each example, MLP", perceptron, ((64, 32), (64,), (10, 64)), ((32,), None), 64, 3),
    Case(
        "gradients for each example, CNN",
        network,
        ((8, 1, 3, 3), (8,), (16, 8, 3, 3), (16 * 3 * 3, 10)),
        ((1, 16, 16), None),
        32,
        4,
    ),
)


@dataclass(slots=True)
class Row:
    """The median microseconds of ``torch.func.vmap`` in a case, and the median ratios of the others to it."""

    case: str
    functorch: float
    ratios: dict[str, float]

    @property
    def ratio(self) -> float:
        return self.ratios["rekindle.vmap"]


def _loop(function: Callable[..., Any], dims: Sequence[int | None]) -> Callable[..., Any]:
    def run(*arguments: Tensor) -> Any:
        size = next(a.shape[0] for a, dim in zip(arguments, dims, strict=True) if dim is not None)
        each = [
            function(*(a if dim is None else a[index] for a, dim in zip(arguments, dims, strict=True)))
            for index in range(size)
        ]
        if isinstance(each[0], tuple):
            return tuple(torch.stack(part) for part in zip(*each, strict=True))
        return torch.stack(each)

    return run


def measure(case: Case, rounds: int = ROUNDS) -> Row:
    torch.manual_seed(0)
    weights = [torch.randn(shape) for shape in case.weights]
    examples = [
        torch.randint(0, 10, (case.batch,)) if shape is None else torch.randn(case.batch, *shape)
        for shape in case.examples
    ]
    dims: tuple[int | None, ...] = (*(None for _ in weights), *(0 for _ in examples))
    arguments = [*weights, *examples]
    if case.examples_first:
        dims, arguments = dims[::-1], [*examples, *weights]
    ours, theirs = case.function, case.function
    if case.gradients:
        wanted = tuple(range(case.gradients))
        ours, theirs = rekindle.grad(case.function, wanted), torch.func.grad(case.function, wanted)
    candidates = {
        "torch.func.vmap": torch.func.vmap(theirs, dims),
        "rekindle.vmap": rekindle.vmap(ours, dims),
        "a loop": _loop(theirs, dims),
    }
    times: dict[str, list[float]] = {name: [] for name in candidates}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = candidates["a loop"](*arguments)
        for function in candidates.values():
            for _ in range(5):
                found = function(*arguments)
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        for _ in range(rounds):
            for name, function in candidates.items():
                start = time.thread_time()
                function(*arguments)
                times[name].append(time.thread_time() - start)
    finally:
        torch.set_num_threads(threads)
    base = times["torch.func.vmap"]
    ratios = {
        name: statistics.median(own / other for own, other in zip(found, base, strict=True))
        for name, found in times.items()
        if name != "torch.func.vmap"
    }
    return Row(case.name, statistics.median(base) * 1e6, ratios)


def run(rounds: int = ROUNDS) -> list[Row]:
    return [measure(case, rounds) for case in CASES]


def table(rows: list[Row]) -> list[list[str]]:
    names = list(rows[0].ratios)
    lines = [["program", "torch.func.vmap, us", *names]]
    for row in rows:
        lines.append([row.case, f"{row.functorch:.0f}", *(f"{row.ratios[name]:.2f}" for name in names)])
    return lines
