"""Loops that are in a differentiable graph as a whole, with a backward graph that iterates in reverse."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import rekindle
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.verifier import verify
from tests.autodiff.graphs import graph_of

Program = Callable[[Tensor, Tensor, int], Any]


def loop(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.tanh(x * w) + x
    return x.exp()


def recurrence(x: Tensor, w: Tensor, n: int) -> tuple[Tensor, Tensor]:
    h = torch.zeros_like(x[0])
    c = h
    for t in range(n):
        i, f = (x[t] + F.linear(h, w)).chunk(2, 0)
        gate = torch.sigmoid(torch.cat([i, f]))
        c = gate * c + torch.tanh(h + x[t])
        h = gate * c.relu()
    return h * 2, c


def branches(x: Tensor, w: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i % 2 == 0:
            x = torch.sin(x * w)
        else:
            x = torch.exp(x) - w
    return x


def nested(x: Tensor, w: Tensor, n: int) -> Tensor:
    y = w * 2
    for i in range(n):
        for j in range(i):
            x = x + torch.sin(x * y) * j
        y = torch.tanh(y + x)
    return x * y


def while_small(x: Tensor, w: Tensor, n: int) -> Tensor:
    turns = 0
    while bool((x * x).sum() < 50) and turns < n:
        x = x * (1.2 + w.sigmoid()) + 0.1
        turns += 1
    return x


def from_around(x: Tensor, w: Tensor, n: int) -> Tensor:
    wide = torch.exp(w * 0.5)
    for _ in range(n):
        x = torch.tanh(x * wide + wide)
    return x * wide


PROGRAMS = (loop, recurrence, branches, nested, while_small, from_around)


def split(program: Program) -> Graph:
    graph = graph_of(program)
    CreateDifferentiableGraphs(threshold=2, loops=True).run(graph)
    verify(graph)
    return graph


def leaves(size: int = 4) -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.randn(size, size, dtype=torch.float64).mul(0.5).requires_grad_() for _ in range(2)]


def total(found: Any) -> Tensor:
    parts = found if isinstance(found, tuple) else (found,)
    return torch.stack([(part * part).sum() for part in parts]).sum()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_those_of_eager(program: Program) -> None:
    graph = split(program)
    assert not graph.find_nodes("prim::Loop")
    run = callable_of(graph, "f")
    for n in (0, 1, 4, 4):
        if n == 0 and program is recurrence:
            continue  # zeros, which depend on nothing
        answers = []
        for function in (run, program):
            inputs = leaves()
            found = function(*inputs, n)
            answers.append((found, torch.autograd.grad(total(found), inputs, allow_unused=n == 0)))
        torch.testing.assert_close(answers[0], answers[1])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_of_gradients(program: Program) -> None:
    run = callable_of(split(program), "f")
    answers = []
    for function in (run, program):
        inputs = leaves()
        first = torch.autograd.grad(total(function(*inputs, 3)), inputs, create_graph=True)
        answers.append(torch.autograd.grad(total(first), inputs))
    torch.testing.assert_close(answers[0], answers[1])


def test_sizes_may_change() -> None:
    run = callable_of(split(loop), "f")
    for x_size, w_size in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), ()), ((2, 3), (3,)), ((1, 3), (1, 1))):
        for _ in range(2):
            inputs = [torch.rand(size, requires_grad=True) for size in (x_size, w_size)]
            found = torch.autograd.grad(run(*inputs, 5).sum(), inputs)
            torch.testing.assert_close(found, torch.autograd.grad(loop(*inputs, 5).sum(), inputs))


def by_device(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        if torch.cat([w, w]).device == torch.device("cpu"):
            x = torch.tanh(x) * 2
        else:
            x = torch.tanh(x) * 3
    return x


def test_devices_may_change() -> None:
    run = callable_of(split(by_device), "f")
    x = torch.rand(3, requires_grad=True)
    for device in ("cpu", "meta", "cpu"):
        w = torch.ones(2, device=device)
        for _ in range(2):
            found = torch.autograd.grad(run(x, w, 3).sum(), x)
            torch.testing.assert_close(found, torch.autograd.grad(by_device(x, w, 3).sum(), x))


def layers(x: Tensor, w: Tensor, n: int) -> Tensor:
    """Each iteration appends rows, so that the terms of the gradient of ``w`` differ in size."""
    for _ in range(n):
        x = torch.tanh(F.linear(torch.cat([x, w[:1]]), w, w[0]))
    return x


def vectors(x: Tensor, w: Tensor, n: int) -> Tensor:
    h = x[0] * 1
    for _ in range(n):
        h = torch.tanh(F.linear(h, w, x[1]) + h) + h
    return h


@pytest.mark.parametrize("program", [layers, vectors], ids=lambda program: program.__name__)
def test_what_is_added_up_turn_by_turn(program: Program) -> None:
    """Gradients of a weight and a bias are computed for many iterations at once."""
    graph = split(program)
    assert not graph.find_nodes("prim::Loop")
    run = callable_of(graph, "f")
    for n in (1, 2, 5, 40, 40):
        inputs = leaves()
        found = torch.autograd.grad(total(run(*inputs, n)), inputs)
        torch.testing.assert_close(found, torch.autograd.grad(total(program(*inputs, n)), inputs))


def prints(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        print("turn")  # noqa: T201
        x = torch.tanh(x * w) + x
    return x


def draws(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = F.dropout(torch.tanh(x * w)) + x
    return x


def writes(x: Tensor, w: Tensor, n: int) -> Tensor:
    y = x * 1
    for i in range(n):
        y[i] = torch.tanh(y[i] * w[i]) + w[i]
    return y


def collects(x: Tensor, w: Tensor, n: int) -> list[Tensor]:
    found: list[Tensor] = []
    for _ in range(n):
        x = torch.tanh(x * w) + x
        found.append(x)
    return found


def gives_views(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.tanh(x * w).t()
    return x


@pytest.mark.parametrize(
    "program", [prints, draws, writes, collects, gives_views], ids=lambda program: program.__name__
)
def test_loops_that_are_looked_into(program: Program) -> None:
    for node in split(program).find_nodes("prim::DifferentiableGraph"):
        assert not node.get_graph("Subgraph").find_nodes("prim::Loop")


# ------------------------------------------------------------------------------------------------- within autograd


def test_writing_to_what_was_kept() -> None:
    run = callable_of(split(loop), "f")
    for function in (run, loop):
        x, w = leaves()
        middle = w * 1
        y = function(x, middle, 3)
        middle.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_writing_to_what_gradients_of_gradients_need() -> None:
    """The first ``h`` is not kept for gradients, so that it may be written to, as in eager."""

    def program(x: Tensor, w: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = torch.tanh(x + w) + w
        return x

    run = callable_of(split(program), "f")
    x, w = leaves()
    start = x * 1
    y = run(start, w, 3)
    start.zero_()
    (found,) = torch.autograd.grad(y.sum(), w, retain_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(program(x, w, 3).sum(), w)[0])
    with pytest.raises(RuntimeError) as caught:
        torch.autograd.grad(y.sum(), w, create_graph=True)
    assert str(caught.value) == (
        "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor with "
        "the sizes [4, 4] is at version 1; expected version 0"
    )


def test_hooks_on_what_is_kept() -> None:
    run = callable_of(split(loop), "f")
    packed: list[Tensor] = []

    def pack(value: Tensor) -> int:
        packed.append(value)
        return len(packed) - 1

    inputs = leaves()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda index: packed[index]):
        y = run(*inputs, 3)
    found = torch.autograd.grad(y.sum(), inputs)
    assert len(packed) >= 3
    torch.testing.assert_close(found, torch.autograd.grad(loop(*inputs, 3).sum(), inputs))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    run = callable_of(split(loop), "f")
    ours, theirs = leaves(), leaves()
    checkpoint(run, *ours, 3, use_reentrant=reentrant).sum().backward()
    loop(*theirs, 3).sum().backward()
    torch.testing.assert_close([value.grad for value in ours], [value.grad for value in theirs])


def test_anomaly_mode() -> None:
    """The loop is one node of PyTorch's autograd, which says what went wrong, and where the node was made."""

    def roots(x: Tensor, w: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = torch.sqrt(x * w) * 1
        return x

    run = callable_of(split(roots), "f")
    x, w = torch.tensor([-1.0], requires_grad=True), torch.tensor([1.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly(True):
            y = run(x, w, 2)
            with pytest.raises(
                RuntimeError, match=r"Function 'DifferentiableGraphBackward' returned nan values in its 0th output\."
            ):
                y.sum().backward()
    assert any("Error detected in DifferentiableGraphBackward" in str(each.message) for each in told)


@pytest.mark.parametrize("program", [recurrence, layers], ids=lambda program: program.__name__)
def test_autocast(program: Program) -> None:
    """In the forward pass only, as is usual."""
    run = callable_of(split(program), "f")
    answers = []
    for function in (run, program):
        inputs = [value.detach().float().requires_grad_() for value in leaves()]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = function(*inputs, 3)
        parts = found if isinstance(found, tuple) else (found,)
        loss = torch.stack([part.float().pow(2).sum() for part in parts]).sum()
        answers.append(([part.detach() for part in parts], torch.autograd.grad(loss, inputs)))
    assert [part.dtype for part in answers[0][0]] == [part.dtype for part in answers[1][0]]
    torch.testing.assert_close(answers[0], answers[1])


def test_autocast_that_begins_and_ends() -> None:
    """What ran in full precision does so again afterwards."""
    run = callable_of(split(layers), "f")
    inputs = [value.detach().float().requires_grad_() for value in leaves()]
    expected = layers(*inputs, 2)
    for enabled in (False, True, False):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            found = run(*inputs, 2)
            wanted = layers(*inputs, 2)
        torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(found, expected)


def test_threads() -> None:
    """Each thread goes there and back on inputs of its own, drawn before it starts."""
    torch.manual_seed(4)
    drawn = [torch.rand(2, 4, 4, dtype=torch.float64).mul(0.5) for _ in range(4)]

    def gradients(function: Callable[..., Any], values: Tensor, n: int) -> list[Tensor]:
        inputs = [value.clone().requires_grad_() for value in values.unbind()]
        return list(torch.autograd.grad(total(function(*inputs, n)), inputs))

    run = callable_of(split(recurrence), "f")
    answers: list[list[list[Tensor]]] = [[] for _ in drawn]

    def work(index: int) -> None:
        answers[index].extend(gradients(run, drawn[index], 2 + turn % 3) for turn in range(9))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(drawn))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for values, found in zip(drawn, answers, strict=True):
        torch.testing.assert_close(found, [gradients(recurrence, values, 2 + turn % 3) for turn in range(9)])


def test_going_back_twice() -> None:
    run = callable_of(split(branches), "f")
    inputs = leaves()
    y = run(*inputs, 4)
    first = torch.autograd.grad(y.sum(), inputs, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), inputs), first)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


def test_what_is_kept_goes_when_gradients_have_come() -> None:
    run = callable_of(split(loop), "f")
    gc.collect()
    gc.disable()
    try:
        x, w = leaves()
        for _ in range(3):
            middle = w * 1
            y = run(x, middle, 3).sum()
            watched = weakref.ref(middle)
            del middle
            y.backward()
            assert watched() is None
    finally:
        gc.enable()


def unused(x: Tensor, sizes: list[int]) -> None:
    for size in sizes:
        x = x * size * 2 - 1


def test_a_loop_that_nobody_uses_and_that_may_raise() -> None:
    compiled = rekindle.script(unused)
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        assert compiled(x, [2, 3]) is None


def steps(x: Tensor, w: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    h = x
    mean = torch.zeros(3)
    for _ in range(n):
        h = torch.tanh(h * w) + mean
        mean = mean + h.exp()
    return h, mean, h


@pytest.mark.parametrize(("x_requires_grad", "w_requires_grad"), [(True, False), (False, True), (True, True)])
def test_a_loop_without_iterations_returns_what_it_was_given(x_requires_grad: bool, w_requires_grad: bool) -> None:
    """The tensors themselves: whether they require gradients is seen, and so are writes to them."""
    compiled = rekindle.script(steps)
    for n in (2, 0, 0, 0, 1):
        x, w = torch.ones(3, requires_grad=x_requires_grad), torch.ones(3, requires_grad=w_requires_grad)
        h, mean, again = compiled(x, w, n)
        assert again is h
        if n == 0:
            assert h is x
            assert not mean.requires_grad
    x = torch.ones(3, requires_grad=True) * 2
    h, *_ = compiled(x, w, 0)
    h.mul_(3)
    assert x.tolist() == [6.0] * 3


def projections(xs: Tensor, w: Tensor, h: Tensor) -> Tensor:
    for t in range(xs.size(1)):
        y = F.linear(xs.select(1, t), w)
        h = torch.tanh(h + y.view(2, -1))
    return h


def test_batched_projections_are_contiguous() -> None:
    """Products for all iterations at once, of parts along the second dimension: each part can be viewed."""
    torch.manual_seed(0)
    xs, w = torch.randn(4, 3, 256, requires_grad=True), (torch.randn(256, 256) / 16).requires_grad_()
    h = torch.zeros(2, 512)
    compiled = rekindle.script(projections)
    expected = projections(xs, w, h)
    gradients = torch.autograd.grad(expected.sum(), (xs, w))
    for _ in range(3):
        result = compiled(xs, w, h)
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(torch.autograd.grad(result.sum(), (xs, w)), gradients)


def counts_what_requires_grad(x: Tensor, n: int) -> tuple[Tensor, int]:
    count = 0
    for _ in range(n):
        for _ in range(2):
            x = x * 2
        if x.requires_grad:
            count += 1
        x = x + count
    return x, count


def asks_in_a_branch(x: Tensor, n: int) -> tuple[Tensor, int]:
    for _ in range(n):
        x = x * 2
        if n > 1:
            x = x * 3
            if not x.is_leaf:
                x = x + 100
    return x, n


@pytest.mark.parametrize("program", [counts_what_requires_grad, asks_in_a_branch])
def test_queries_of_what_autograd_recorded(program: Callable[[Tensor, int], tuple[Tensor, int]]) -> None:
    """Within a differentiable graph nothing is recorded: a loop with such a query is in none."""
    compiled = rekindle.script(program)
    for requires_grad in (True, False, True, True):
        found = []
        for each in (program, compiled):
            x = torch.ones(2, requires_grad=requires_grad)
            y, count = each(x, 3)
            found.append((y, count, torch.autograd.grad(y.sum(), x) if requires_grad else None))
        torch.testing.assert_close(found[1], found[0])
