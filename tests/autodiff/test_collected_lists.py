"""Loops that collect a tensor in each iteration are differentiated as a whole, with the list and what stacks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.verifier import verify
from rekindle.passes import LowerSimpleTuples, SimplifyCarriedValues, run_passes
from tests.autodiff.graphs import graph_of

Program = Callable[[Tensor, Tensor, int], Any]


def recurrence(x: Tensor, w: Tensor, n: int) -> Tensor:
    h = torch.zeros_like(x[0])
    states: list[Tensor] = []
    for t in range(n):
        h = torch.tanh(x[t] + F.linear(h, w))
        states.append(h)
    return torch.stack(states)


def with_state(x: Tensor, w: Tensor, n: int) -> tuple[Tensor, Tensor]:
    h = torch.zeros_like(x[0])
    states: list[Tensor] = []
    for t in range(n):
        h = torch.tanh(x[t] + F.linear(h, w))
        states += [h]
    return torch.stack(states, 1), h * 2


def two_lists(x: Tensor, w: Tensor, n: int) -> Tensor:
    first: list[Tensor] = []
    second: list[Tensor] = []
    for t in range(n):
        x = torch.tanh(x * w)
        first.append(x * t)
        second.append(x + w)
    return torch.stack(first) * torch.stack(second).exp()


def stacked_twice(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for _ in range(n):
        x = torch.sin(x * w) + x
        parts.append(x)
    return torch.stack(parts, 0).sum(0) * torch.stack(parts, -1).square().sum(-1)


def views(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for t in range(n):
        w = torch.tanh(w * x)
        parts.append(x[t])
    return torch.stack(parts) * w[0]


def only_the_list(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for t in range(n):
        parts.append(torch.tanh(torch.sigmoid(x[t] * w) * w))
    return torch.stack(parts)


def until(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    turns = 0
    while bool((x * x).sum() < 50) and turns < n:
        x = x * (1.2 + w.sigmoid()) + 0.1
        parts.append(x)
        turns += 1
    return torch.stack(parts)


def tuples(x: Tensor, w: Tensor, n: int) -> Tensor:
    state = (torch.zeros_like(x[0]), x[0] * 1)
    parts: list[Tensor] = []
    for each in x.unbind(0):
        h, c = state
        c = torch.sigmoid(c) * c + torch.tanh(F.linear(h, w) + each)
        state = (torch.sigmoid(c) * h.cos(), c)
        parts.append(state[0] + c)
    return torch.stack(parts)


def rows(x: Tensor, w: Tensor, n: int) -> Tensor:
    h = x[0]
    parts: list[Tensor] = []
    for t in range(n):
        h = torch.tanh(x[t] * h + F.linear(h, w))
        parts.append(h.unsqueeze(1))
    return torch.cat(parts, 1).exp()


WHOLE = (rows, recurrence, with_state, two_lists, stacked_twice, views, only_the_list, until, tuples)


def returned(x: Tensor, w: Tensor, n: int) -> list[Tensor]:
    parts: list[Tensor] = []
    for _ in range(n):
        x = torch.tanh(torch.sin(x * w) * x)
        parts.append(x)
    return [torch.stack(parts), *parts]


def counted(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for _ in range(n):
        x = torch.tanh(torch.sin(x * w) * x)
        parts.append(x)
    return torch.stack(parts) * len(parts)


def read_within(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for t in range(n):
        x = torch.tanh(torch.sin(x * w) * x)
        parts.append(x)
        x = x + parts[t // 2]
    return torch.stack(parts)


def sometimes(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for t in range(n):
        x = torch.tanh(torch.sin(x * w) * x)
        if t % 2 == 0:
            parts.append(x)
    return torch.stack(parts)


def twice(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for _ in range(n):
        x = torch.tanh(torch.sin(x * w) * x)
        parts.append(x)
        parts.append(x * 2)
    return torch.stack(parts)


def not_empty(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts = [x]
    for _ in range(n):
        x = torch.tanh(torch.sin(x * w) * x)
        parts.append(x)
    return torch.stack(parts)


def two_loops(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for _ in range(n):
        x = torch.tanh(torch.sin(x * w) * x)
        parts.append(x)
    for _ in range(n):
        x = torch.tanh(torch.cos(x * w) * x)
        parts.append(x)
    return torch.stack(parts)


def nested(x: Tensor, w: Tensor, n: int) -> Tensor:
    rows: list[Tensor] = []
    for i in range(n):
        parts: list[Tensor] = []
        for j in range(i + 1):
            x = torch.tanh(torch.sin(x * w) * x) + j
            parts.append(x)
        rows.append(torch.stack(parts).sum(0))
    return torch.stack(rows)


def written(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for _ in range(n):
        x = torch.sin(x * w) + x
        parts.append(x)
    x.mul_(2.0)
    return torch.stack(parts)


def along_another_dimension(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for t in range(n):
        w = torch.tanh(torch.sin(x[t] * w) * w)
        parts.append(w.unsqueeze(0))
    return torch.cat(parts, 1)


OTHERS = (
    along_another_dimension,
    returned,
    counted,
    read_within,
    sometimes,
    twice,
    not_empty,
    two_loops,
    nested,
    written,
)


def split(program: Program) -> Graph:
    graph = graph_of(program)
    passes = (SimplifyCarriedValues(), LowerSimpleTuples(), CreateDifferentiableGraphs(threshold=2, loops=True))
    run_passes(graph, passes)
    verify(graph)
    return graph


def leaves() -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.randn(4, 4, dtype=torch.float64).mul(0.5).requires_grad_() for _ in range(2)]


def total(found: Any) -> Tensor:
    parts = found if isinstance(found, tuple | list) else (found,)
    return torch.stack([(part * part).sum() for part in parts]).sum()


def gradients(function: Callable[..., Any], n: int) -> tuple[Any, tuple[Tensor, ...]]:
    inputs = leaves()
    found = function(*inputs, n)
    return found, torch.autograd.grad(total(found), inputs, allow_unused=True)


@pytest.mark.parametrize("program", [*WHOLE, *OTHERS], ids=lambda program: program.__name__)
def test_gradients_are_those_of_eager(program: Program) -> None:
    graph = split(program)
    assert bool(graph.find_nodes("prim::Loop")) == (program in OTHERS)
    run = callable_of(graph, "f")
    for n in (1, 4, 2, 4):
        torch.testing.assert_close(gradients(run, n), gradients(program, n))


@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.__name__)
def test_gradients_of_gradients(program: Program) -> None:
    answers = []
    for function in (callable_of(split(program), "f"), program):
        inputs = leaves()
        first = torch.autograd.grad(total(function(*inputs, 3)), inputs, create_graph=True)
        answers.append(torch.autograd.grad(total(first), inputs))
    torch.testing.assert_close(*answers)


@pytest.mark.parametrize("program", [recurrence, two_lists, only_the_list], ids=lambda program: program.__name__)
def test_a_list_that_stays_empty_is_eagers_error(program: Program) -> None:
    with pytest.raises(RuntimeError) as expected:
        program(*leaves(), 0)
    with pytest.raises(RuntimeError) as found:
        callable_of(split(program), "f")(*leaves(), 0)
    assert str(expected.value) in str(found.value)


def test_the_gradient_of_one_result_alone() -> None:
    run = callable_of(split(with_state), "f")
    for index in (0, 1):
        answers = []
        for function in (run, with_state):
            inputs = leaves()
            answers.append(torch.autograd.grad(function(*inputs, 4)[index].square().sum(), inputs))
        torch.testing.assert_close(*answers)


class Layer(nn.Module):
    """An LSTM as people write it: a cell, a tuple of states, a list of outputs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_input = nn.Parameter(torch.randn(4 * width, width) * 0.2)
        self.of_state = nn.Parameter(torch.randn(4 * width, width) * 0.2)
        self.bias = nn.Parameter(torch.randn(4 * width) * 0.2)

    def cell(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = state
        gates = torch.mm(x, self.of_input.t()) + torch.mm(h, self.of_state.t()) + self.bias
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        inputs = x.unbind(0)
        outputs: list[Tensor] = []
        for i in range(len(inputs)):
            out, state = self.cell(inputs[i], state)
            outputs += [out]
        return torch.stack(outputs), state


def test_an_lstm_is_one_differentiable_graph() -> None:
    torch.manual_seed(0)
    layer = Layer(6)
    compiled = rekindle.script(layer)
    parameters = list(layer.parameters())
    for length, batch in ((3, 2), (7, 1), (300, 2), (3, 2)):
        x, state = torch.randn(length, batch, 6), (torch.randn(batch, 6), torch.randn(batch, 6))

        def loss(function: Callable[..., Any], x: Tensor = x, state: Any = state) -> Tensor:
            outputs, (h, c) = function(x, state)
            return outputs.square().mean() + h.sum() + (c * c).sum()

        expected = torch.autograd.grad(loss(layer), parameters)
        for _ in range(3):
            torch.testing.assert_close(torch.autograd.grad(loss(compiled), parameters), expected)
    graph = compiled.graph_for(x, state)
    assert not graph.find_nodes("prim::Loop")
    assert len(graph.find_nodes("prim::DifferentiableGraph")) == 1
