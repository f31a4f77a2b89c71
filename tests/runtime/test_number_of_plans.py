"""However many kinds of arguments there are, a bounded number of plans is made, and each is made once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.runtime.executor import STRATEGIES
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.version import PythonFunction

MOST = 8


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the plans that are made."""
    made: list[str] = []
    init = PythonFunction.__init__

    def counted(self: PythonFunction, code: Code) -> None:
        made.append(code.name)
        init(self, code)

    monkeypatch.setattr(PythonFunction, "__init__", counted)
    return made


@pytest.fixture(params=sorted(STRATEGIES), autouse=True)
def _strategy(request: pytest.FixtureRequest) -> Iterator[None]:
    before = rekindle.set_execution_strategy(request.param)
    yield
    rekindle.set_execution_strategy(before)


TEXT = """
def f(x: Tensor, m: Optional[Tensor]) -> Tensor:
    if x.dim() > 1:
        x = x.sum(0)
    if x.dtype == torch.float64:
        x = x * 2
    if m is not None:
        x = x + m.sum()
    if x.requires_grad:
        x = torch.tanh(x)
    for i in range(x.size(0)):
        x = x + i
    return torch.sigmoid(x) * x
"""


def eager(x: Tensor, m: Optional[Tensor]) -> Tensor:
    names: dict[str, Any] = {"Tensor": Tensor, "Optional": Optional, "torch": torch}
    exec(TEXT, names)
    result: Tensor = names["f"](x, m)
    return result


def _arguments(number: int) -> tuple[Tensor, Tensor | None]:
    """Each of other sizes than all before; of three ranks, two dtypes, with and without a gradient and a mask."""
    shape = ((number + 1,), (number % 7 + 1, number + 1), (2, number + 1, 1))[number % 3]
    dtype = (torch.float32, torch.float64)[number // 3 % 2]
    x = torch.linspace(-1, 1, torch.Size(shape).numel(), dtype=dtype).reshape(shape)
    return x.requires_grad_(number // 6 % 2 == 1), torch.ones(2, dtype=dtype) if number // 12 % 2 else None


def test_a_thousand_sizes(plans: list[str]) -> None:
    function = rekindle.CompilationUnit(TEXT).f
    for number in range(1000):
        x, m = _arguments(number)
        x = x[..., : number % 5 + 1]
        torch.testing.assert_close(function(x, m), eager(x, m)) if number % 20 == 0 else function(x, m)
    assert 1 <= plans.count("f") <= MOST
    # A version that may need gradients has plans of its own for a part of it, forth and back, for some sizes.
    assert len(plans) <= MOST * MOST
    made = len(plans)
    for number in range(1000, 1500):
        function(*_arguments(number))
    assert len(plans) == made


def test_a_thousand_sizes_of_one_kind(plans: list[str]) -> None:
    """What the program does not ask makes no difference."""
    function = rekindle.CompilationUnit("def f(x: Tensor, y: Tensor):\n  return torch.tanh(x * y) + x\n").f
    for number in range(1000):
        function(torch.ones(number + 1), torch.ones(number + 1))
    assert 1 <= len(plans) <= MOST, plans


def test_what_is_called_the_same_way_is_made_once(plans: list[str]) -> None:
    function = rekindle.CompilationUnit(TEXT).f
    for _ in range(3):
        function(*_arguments(0))
    made = len(plans)
    for _ in range(100):
        function(*_arguments(0))
    assert len(plans) == made
