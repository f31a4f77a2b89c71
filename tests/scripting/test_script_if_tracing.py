"""Functions that are compiled only where a trace would lose their control flow."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.support.oracle import compare, script_with_torch


def halved(x: Tensor, times: int = 1) -> Tensor:
    """Halve as often as the caller says, and once more where that leaves much."""
    for _ in range(times):
        x = x / 2
    if bool(x.sum() > 10):
        x = x / 2
    return x


ours = rekindle.script_if_tracing(halved)
theirs = torch.jit.script_if_tracing(halved)


@pytest.mark.parametrize("wrapper", [ours, theirs])
def test_python_calls_the_function_itself(wrapper: Any) -> None:
    assert torch.equal(wrapper(torch.ones(2), times=2), torch.full((2,), 0.25))
    assert wrapper.__name__ == "halved"
    assert wrapper.__doc__ == halved.__doc__
    assert inspect.signature(wrapper) == inspect.signature(halved)


def test_what_is_called_while_a_trace_is_recorded_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    @rekindle.script_if_tracing
    def is_compiled() -> bool:
        return rekindle.is_scripting()

    assert not is_compiled()
    monkeypatch.setattr("rekindle.scripting.script.is_tracing", lambda: True)
    assert is_compiled()


def calls_ours(x: Tensor) -> Tensor:
    return ours(x, 2) + ours(x)


def calls_theirs(x: Tensor) -> Tensor:
    return theirs(x, 2) + theirs(x)


@pytest.mark.parametrize("program", [calls_ours, calls_theirs])
def test_programs_call_the_compiled_function(program: Any) -> None:
    compiled = rekindle.script(program)
    for x in (torch.ones(2), torch.full((2,), 100.0)):
        for _ in range(3):
            assert torch.equal(compiled(x), program(x))
    assert not (comparison := compare(program, rekindle.script)).differences, comparison.differences
    assert compiled.graph.find_nodes("prim::CallFunction")
    assert compiled.inlined_graph.find_nodes("prim::Loop")


@pytest.mark.parametrize("wrapper", [ours, theirs])
def test_the_function_can_be_compiled_by_itself(wrapper: Any) -> None:
    compiled = rekindle.script(wrapper)
    assert compiled.name == "halved"
    assert str(compiled.graph) == str(rekindle.script(halved).graph)


def test_torch_jit_understands_ours() -> None:
    x = torch.full((2,), 100.0)
    assert torch.equal(script_with_torch(ours)(x), halved(x))


class Halver(nn.Module):
    times: int

    def __init__(self) -> None:
        super().__init__()
        self.times = 2
        self.function = ours
        self.other = theirs

    @staticmethod
    @rekindle.script_if_tracing
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    @rekindle.script_if_tracing
    def method(self, x: Tensor) -> Tensor:
        return x - self.times

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.times) + self.other(x) + self.doubled(x) + self.method(x)


def test_modules_have_such_functions_in_every_place() -> None:
    module, x = Halver(), torch.ones(2)
    compiled = rekindle.script(module)
    for _ in range(3):
        assert torch.equal(compiled(x), module(x))


def test_such_a_function_of_one_that_is_compiled_already() -> None:
    wrapper = rekindle.script_if_tracing(script_with_torch(halved))

    def program(x: Tensor) -> Tensor:
        return wrapper(x)

    assert torch.equal(rekindle.script(program)(torch.ones(2)), torch.full((2,), 0.5))
