"""fork and wait: calls that run on other threads."""

from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import pytest
import torch
from torch import nn

import rekindle
from rekindle.runtime.interpreter.futures import Future
from tests.support.equality import assert_same
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


# --------------------------------------------------------------------------------------------------- futures everywhere


def in_a_list(x):
    futures: List[torch.jit.Future[torch.Tensor]] = [torch.jit.fork(scaled, x, n=i) for i in range(3)]
    return [torch.jit.wait(future) for future in futures]


def in_a_dict(x):
    futures: Dict[str, torch.jit.Future[torch.Tensor]] = {"a": torch.jit.fork(scaled, x)}
    futures["b"] = torch.jit.fork(scaled, x, 5)
    for future in futures.values():
        x = x + future.wait()
    return x


def in_an_optional(x):
    future: Optional[torch.jit.Future[torch.Tensor]] = None
    if bool(x.sum() > 0):
        future = torch.jit.fork(scaled, x)
    return future.wait() if future is not None else x


def in_a_union(x):
    future: Union[int, torch.jit.Future[torch.Tensor]] = torch.jit.fork(scaled, x)
    if isinstance(future, int):
        return x
    else:
        return future.wait()


def in_a_tuple(x):
    both = (torch.jit.fork(scaled, x), torch.jit.fork(scaled, x, 3))
    first, second = both
    return first.wait() + both[1].wait() + second.wait()


class Later:
    def __init__(self, future: torch.jit.Future[torch.Tensor]) -> None:
        self.future: torch.jit.Future[torch.Tensor] = future

    def get(self) -> torch.Tensor:
        return self.future.wait()


def in_an_attribute(x):
    return Later(torch.jit.fork(scaled, x)).get()


def of_a_wait(x):
    return torch.jit.wait(torch.jit.fork(torch.jit.wait, torch.jit.fork(scaled, x)))


def of_operators(x):
    return torch.jit.fork(torch.add, x, x, alpha=2).wait() + torch.jit.fork(x.add, x).wait()


EVERYWHERE = (in_a_list, in_a_dict, in_an_optional, in_a_union, in_a_tuple, in_an_attribute, of_a_wait, of_operators)


@pytest.mark.parametrize("program", EVERYWHERE)
def test_futures_in_every_place(program):
    compiled = rekindle.script(program)
    for x in (torch.ones(2), -torch.ones(3)):
        for _ in range(3):
            assert_same(compiled(x), program(x))


class Pair(NamedTuple):
    a: int
    b: torch.Tensor


def pair(x) -> Pair:
    return Pair(1, x)


def futures_within(x):
    return [torch.jit.fork(scaled, x)], {"a": torch.jit.fork(pair, x)}


def test_futures_come_out_in_containers():
    futures, table = rekindle.script(futures_within)(torch.ones(1))
    assert torch.equal(futures[0].wait(), torch.full((1,), 2.0))
    assert isinstance(table["a"].wait(), Pair)


def test_what_is_no_call_and_what_is_no_future():
    with pytest.raises(TypeError) as caught:
        rekindle.fork(3)
    assert str(caught.value) == "fork takes something to call and its arguments, not a value of class 'int'"
    with pytest.raises(TypeError) as caught:
        rekindle.wait(3)
    assert str(caught.value) == "wait takes a future, which fork gives, not a value of class 'int'"
