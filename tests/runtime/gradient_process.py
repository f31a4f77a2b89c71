"""A process that trains with derivatives of its own, and prints what it got and how often a graph was differentiated.

Argument: the name of a program in :data:`PROGRAMS`.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

import rekindle
from rekindle.autodiff import gradient

CALLS: Final = 4
"""Both the graphs of the first calls, and those for known sizes after them."""


def straight(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = torch.tanh(x.mm(w.t()) + b) * b
    return y.sigmoid() / (y + 3) + torch.nn.functional.silu(y) * torch.exp(-y)


def with_loop(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = x
    for i in range(3):
        y = torch.tanh(y.mm(w[:, : y.size(1)].t())) * 0.5 + y[:, : w.size(0)].sum() * b + torch.sigmoid(y.mean())
        if i == 1:
            y = torch.cos(y) * torch.exp(-y)
    return y


PROGRAMS: Final[dict[str, Callable[..., Tensor]]] = {"straight": straight, "with_loop": with_loop}


def inputs() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator, requires_grad=True) for size in ((5, 5), (5, 5), (5,))]


def main(name: str) -> None:
    differentiated: list[int] = []
    differentiate = gradient.differentiate

    def counting(*arguments: Any) -> gradient.Gradient:
        differentiated.append(1)
        return differentiate(*arguments)

    gradient.differentiate = counting
    compiled: Any = rekindle.script(PROGRAMS[name])
    results: list[list[float]] = []
    for _ in range(CALLS):
        given = inputs()
        result = compiled(*given)
        first = torch.autograd.grad(result.sum(), given, create_graph=True)
        results += [each.flatten().tolist() for each in (result, *first)]
        again = torch.autograd.grad(sum(each.square().sum() for each in first), given, allow_unused=True)
        results += [[] if each is None else each.flatten().tolist() for each in again]
    eager = inputs()
    expected = PROGRAMS[name](*eager)
    gradients = torch.autograd.grad(expected.sum(), eager)
    wrong = [each.detach()[:size].clone().requires_grad_() for each, size in zip(inputs(), (5, 3, 4), strict=True)]
    error = ""
    try:
        compiled(*wrong)
    except RuntimeError as caught:
        frames = [each for each in traceback.extract_tb(caught.__traceback__) if each.filename == __file__]
        error = f"{caught} {[(each.lineno, each.name) for each in frames]}"
    found = {
        "differentiated": len(differentiated),
        "results": results,
        "eager": [each.flatten().tolist() for each in (expected, *gradients)],
        "error": error,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
