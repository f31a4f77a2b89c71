"""Gradients of tensors of several dtypes: each is of the dtype of what it is the gradient of, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import rekindle
from rekindle.autodiff.create_differentiable_graphs import CreateDifferentiableGraphs
from rekindle.ir.subgraph_execution import callable_of
from rekindle.passes import run_passes


def product(x: Tensor, y: Tensor) -> Tensor:
    return (x * y - x / y + (x + y) ** 2).sum()


def maxima(x: Tensor, y: Tensor) -> Tensor:
    return (torch.maximum(x, y) + torch.where(x > y, x, y) + torch.atan2(x, y)).sum()


def joined(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, y]).sum() + (torch.stack([x, y]) * 2).mean()


def reduced(x: Tensor, y: Tensor) -> Tensor:
    return x.sum(dtype=torch.float64) * y.mean(dtype=torch.float32) * x.cumsum(0, dtype=torch.float64).sum()


def normalized(x: Tensor, y: Tensor) -> Tensor:
    return (F.softmax(x, 0, dtype=torch.float32) * y).sum()


def layer_and_product(x: Tensor, y: Tensor) -> Tensor:
    found = x @ x.t() + y.sum()
    return (found.tanh() * torch.tensor([1.0, 2.0], dtype=torch.float64)).sum()


def doubled_within(x: Tensor, y: Tensor) -> Tensor:
    found = F.linear(x, x).softmax(0)
    return (found + found.double() * y.sum()).pow(2).sum()


def accumulated(x: Tensor, y: Tensor) -> Tensor:
    total = x
    for i in range(2):
        if i == 1:
            total = total * y
        else:
            total = total.sigmoid() @ x.t()
    return total.sum()


def of_a_constant(x: Tensor, y: Tensor) -> Tensor:
    return x.sum() * torch.tensor(0.5)


def written(x: Tensor, y: Tensor) -> Tensor:
    z = torch.zeros(2, 2, dtype=torch.float64)
    z[0] = x[0]
    z += y
    z *= x
    return z.sum()


PROGRAMS = [product, maxima, joined, reduced, normalized, layer_and_product, doubled_within, accumulated, written]
DTYPES = [
    (torch.float16, torch.float32),
    (torch.float32, torch.float64),
    (torch.float32, torch.bfloat16),
    (torch.float16, torch.float16),
]


def arguments(first: torch.dtype, second: torch.dtype) -> tuple[Tensor, Tensor]:
    return torch.tensor([[0.5, 1.5], [2.0, 0.25]], dtype=first), torch.tensor([[1.0, 0.75], [3.0, 2.0]], dtype=second)


@pytest.mark.parametrize("program", [*PROGRAMS, of_a_constant], ids=lambda program: program.__name__)
@pytest.mark.parametrize("dtypes", DTYPES, ids=str)
def test_gradients_are_of_the_dtypes_of_the_arguments(
    program: Callable[[Tensor, Tensor], Tensor], dtypes: tuple[torch.dtype, torch.dtype]
) -> None:
    leaves = [each.requires_grad_() for each in arguments(*dtypes)]
    expected = torch.autograd.grad(program(*leaves), leaves, materialize_grads=True)
    found = rekindle.grad(program, (0, 1))(*arguments(*dtypes))
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    second = rekindle.vmap(rekindle.grad(program, (0, 1)))(*(each[None] for each in arguments(*dtypes)))
    torch.testing.assert_close(tuple(each[0] for each in second), expected, rtol=2e-2, atol=2e-2)


def test_gradients_of_gradients() -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        return (x * y).tanh().sum()

    x, y = arguments(torch.float32, torch.float64)

    def lengths(x: Tensor, y: Tensor) -> Tensor:
        return (torch.func.grad(f)(x, y) ** 2).sum()

    expected = torch.func.grad(lengths, (0, 1))(x, y)
    gradient = rekindle.grad(f)

    def lengths_here(x: Tensor, y: Tensor) -> Tensor:
        return (gradient(x, y) ** 2).sum()

    torch.testing.assert_close(rekindle.grad(lengths_here, (0, 1))(x, y), expected)


def test_a_backward_graph_converts_within() -> None:
    def f(x: Tensor, w: Tensor) -> Tensor:
        y = (x * w).tanh() @ w
        return torch.softmax(x @ w + y.double().sigmoid(), 0)

    graph = rekindle.script(f).graph.copy()
    run_passes(graph, [CreateDifferentiableGraphs(threshold=1)])
    assert len(graph.find_nodes("prim::DifferentiableGraph")) == 1
    leaves = [each.requires_grad_() for each in arguments(torch.float32, torch.float32)]
    expected = torch.autograd.grad(f(*leaves).pow(2).sum(), leaves)
    found = torch.autograd.grad(callable_of(graph, "f")(*leaves).pow(2).sum(), leaves)
    torch.testing.assert_close(found, expected)
