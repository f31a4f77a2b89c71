"""fork and wait: calls that run on other threads."""

from typing import Dict, List, Tuple

import pytest
import torch
from torch import nn

import rekindle
from rekindle.runtime.futures import Future
from tests.support.messages import message_of


def scaled(x, n: int = 2):
    return x * n


def forks(x):
    first = torch.jit.fork(scaled, x, n=3)
    others = [rekindle.fork(scaled, x, i) for i in range(4)]
    total = torch.zeros_like(x)
    for other in others:
        total = total + rekindle.wait(other)
    return torch.jit.wait(first) + total + first.wait()


def test_results_are_those_of_calls():
    x = torch.ones(2)
    assert torch.equal(rekindle.script(forks)(x), torch.full((2,), 12.0))
    assert torch.equal(forks(x), torch.full((2,), 12.0))


def fork_text(x):
    later = torch.jit.fork(scaled, x, 3)
    return torch.jit.wait(later)


def test_graph():
    graph = rekindle.script(fork_text).graph
    (node,) = graph.find_nodes("prim::fork")
    assert str(node.output.type.annotation) == "Future[Tensor]"
    subgraph = node.get_graph("Subgraph")
    assert [inner.kind for inner in subgraph.nodes] == ["prim::Constant", "prim::CallFunction"]
    assert "prim::fork_0" in str(graph)


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])

    def inner(self, x):
        # Waiting within what is waited for must not come to a standstill, however few threads there are.
        futures = [torch.jit.fork(layer, x) for layer in self.layers]
        return torch.jit.wait(futures[0]) + torch.jit.wait(futures[1]) + torch.jit.wait(futures[2])

    def forward(self, x):
        futures = torch.jit.annotate(List[torch.jit.Future[torch.Tensor]], [])
        for _ in range(8):
            futures.append(torch.jit.fork(self.inner, x))
        total = torch.zeros_like(x)
        for future in futures:
            total = total + torch.jit.wait(future)
        return total


def test_modules_and_methods_within_each_other():
    module, x = Parts(), torch.randn(4, 2)
    scripted = rekindle.script(module)
    torch.testing.assert_close(scripted(x), module(x))
    scripted(x).sum().backward()
    assert module.layers[0].weight.grad is not None
    with torch.no_grad():
        assert not scripted(x).requires_grad
    with torch.inference_mode():
        assert scripted(x).is_inference()


def several(x) -> Tuple[torch.Tensor, Dict[str, int]]:
    return x, {"a": 1}


def waits_for_several(x):
    y, table = torch.jit.wait(torch.jit.fork(several, x))
    return y * table["a"]


def test_results_of_every_type():
    assert torch.equal(rekindle.script(waits_for_several)(torch.ones(1)), torch.ones(1))


def fails(x):
    if bool(x.sum() > 0):
        raise ValueError("positive")
    return x


def waits_for_failure(x, wait: bool):
    later = torch.jit.fork(fails, x)
    if wait:
        return torch.jit.wait(later)
    return x


def test_errors_come_with_the_wait():
    scripted = rekindle.script(waits_for_failure)
    assert torch.equal(scripted(torch.ones(1), False), torch.ones(1))
    with pytest.raises(ValueError, match="positive"):
        scripted(torch.ones(1), True)


def returns_future(x) -> torch.jit.Future[torch.Tensor]:
    return torch.jit.fork(scaled, x)


def test_futures_go_in_and_out():
    later = rekindle.script(returns_future)(torch.ones(1))
    assert isinstance(later, Future)
    assert torch.equal(later.wait(), torch.full((1,), 2.0))
    assert later.done()

    def takes_future(later: torch.jit.Future[torch.Tensor]) -> torch.Tensor:
        return torch.jit.wait(later)

    assert torch.equal(rekindle.script(takes_future)(later), torch.full((1,), 2.0))


def no_function(x):
    return torch.jit.fork()


def test_fork_without_a_function():
    assert message_of(rekindle.errors.TypeMismatchError, lambda: rekindle.script(no_function)) == (
        "fork takes a function and its arguments\n"
        '  File "FILE", line N\n'
        "    def no_function(x):\n"
        "        return torch.jit.fork()\n"
        "               ^^^^^^^^^^^^^^^^"
    )
