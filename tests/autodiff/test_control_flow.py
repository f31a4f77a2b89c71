"""Derivatives of graphs with branches and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import rekindle
from rekindle.autodiff import Gradient, differentiate
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from rekindle.passes import run_passes
from rekindle.runtime.pipelines import REQUIRED
from tests.support.golden import GoldenTexts


def branch(x: Tensor, y: Tensor, n: int) -> Tensor:
    if n > 2:
        z = x * y
    else:
        z = x.sin()
    return z


def loop(x: Tensor, y: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.tanh(x * y)
    return x


def branch_in_loop(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = torch.tanh(x * y)
        if i % 2 == 0:
            x = x * x + y
    return x


def while_it_is_small(x: Tensor, y: Tensor, n: int) -> Tensor:
    i = 0
    while i < n and bool(x.sum() < 100):
        x = x * y + 0.5
        i += 1
    return x


def nested_loops(x: Tensor, y: Tensor, n: int) -> Tensor:
    out = y
    for i in range(n):
        for _ in range(i):
            if bool(x.sum() > 1):
                x = x * 0.9 - y.sin()
            else:
                out = (x + 2).log() * out
    return out + x


def the_last_turn(x: Tensor, y: Tensor, n: int) -> Tensor:
    last = x
    for i in range(n):
        last = (x * (i + y)).sqrt()
    return last + y


def two_ways_out(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i == 2:
            break
        if i == 0:
            continue
        x = x * y.exp()
    if n > 3:
        return x * 2
    return x + y


def a_gradient_that_would_be_nan(x: Tensor, y: Tensor, n: int) -> Tensor:
    """The branch that is not taken, and all turns but the last, would divide zero by zero."""
    bad = (x - x).log()
    if n > 100:
        z = bad * y
    else:
        z = x * y
    last = x
    for i in range(n):
        last = (x * i).sqrt()
    return z + last


PROGRAMS = [
    *(branch, loop, branch_in_loop, while_it_is_small, nested_loops, the_last_turn, two_ways_out),
    a_gradient_that_would_be_nan,
]


def graph_of(program: Callable[..., Any]) -> Graph:
    graph = rekindle.script(program).graph.copy()
    run_passes(graph, REQUIRED)
    return graph


def gradients(gradient: Gradient, arguments: list[Any]) -> list[Tensor | None]:
    """What the graphs of ``gradient`` say of the sum of the result."""
    found = callable_of(gradient.forward, "forward")(*arguments)
    outputs = found if isinstance(found, tuple) else (found,)
    kept = [outputs[source] if source >= 0 else arguments[~source] for source in gradient.captures]
    backward = gradient.backward_for([True] * len(gradient.roots))
    verify(backward.graph)
    ones = [torch.ones_like(outputs[root]) for root in gradient.roots]
    back = callable_of(backward.graph, "backward")(*ones, *(kept[index] for index in backward.captures))
    return list(back) if isinstance(back, tuple) else [back]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_gradients_are_those_of_eager(program: Callable[..., Any], n: int) -> None:
    torch.manual_seed(3)
    x, y = torch.rand(2, 3, dtype=torch.float64).unbind()
    arguments = [x.clone().requires_grad_(), y.clone().requires_grad_()]
    expected = torch.autograd.grad(program(*arguments, n).sum(), arguments, allow_unused=True)
    gradient = differentiate(graph_of(program), [True, True, False])
    verify(gradient.forward)
    for mine, theirs in zip(gradients(gradient, [x, y, n]), expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None and theirs is not None:
            torch.testing.assert_close(mine, theirs, equal_nan=True)


@pytest.mark.parametrize("program", [branch, loop])
def test_graphs(program: Callable[..., Any], golden: GoldenTexts) -> None:
    gradient = differentiate(graph_of(program), [True, True, False])
    texts = [print_graph(graph, ranges=False) for graph in (gradient.forward, gradient.backward)]
    told = f"results: {gradient.results}, kept: {gradient.captures}, roots: {gradient.roots}"
    golden(f"autodiff/{program.__name__}", f"{texts[0]}\n# {told}\n\n{texts[1]}")


def test_a_root_whose_gradient_does_not_exist() -> None:
    def program(x: Tensor, y: Tensor, n: int) -> tuple[Tensor, Tensor]:
        for _ in range(n):
            x = x * y
            y = y + 1
        return x, y

    graph = graph_of(program)
    made = graph.outputs[0].node
    graph.block.erase_output(0)
    for value in list(made.inputs):
        graph.add_output(value)
    made.destroy()
    gradient = differentiate(graph, [True, True, False])
    assert gradient.roots == (0, 1)
    second = gradient.backward_for([False, True]).graph
    verify(second)
    assert len(second.inputs) < len(gradient.backward.inputs)


def test_a_branch_that_turns_out_to_be_known() -> None:
    """The branches of ``multi_head_attention_forward`` nest, and some conditions are constants once formulas are
    written out."""

    def attend(q: Tensor, k: Tensor, w: Tensor, b: Tensor) -> Tensor:
        out, weights = F.multi_head_attention_forward(
            *(q, k, k, 4, 2, w, b, None, None, False, 0.0, torch.eye(4, dtype=q.dtype), None),
        )
        return out if weights is None else out * weights.sum()

    torch.manual_seed(2)
    sizes = ((3, 1, 4), (5, 1, 4), (12, 4), (12,))
    arguments = [torch.randn(size, dtype=torch.float64) for size in sizes]
    graph = graph_of(attend)
    gradient = differentiate(graph, [True] * 4)
    leaves = [value.clone().requires_grad_() for value in arguments]
    expected = torch.autograd.grad(attend(*leaves).sum(), leaves)
    torch.testing.assert_close(gradients(gradient, arguments), list(expected))
