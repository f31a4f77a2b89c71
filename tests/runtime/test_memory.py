"""What is done again and again takes no more memory after a while, and what is dropped dies."""

from __future__ import annotations

import gc
import io
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.support.memory import Growth, growth
from tests.support.shares import share_seed

LEAST = 0.01
"""A growth below one in a hundred is none."""

CYCLES = int(os.environ.get("REKINDLE_CYCLES", "96" if share_seed() is None else "32"))
"""How often a program is compiled, run and dropped. `make sweep-memory` does it a thousand times."""


@pytest.fixture(autouse=True)
def _verification_costs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nothing is asked of the graphs, and there are many."""
    monkeypatch.delenv("REKINDLE_VERIFY", raising=False)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))
        self.calls = 0

    def forward(self, x: Tensor, steps: int) -> Tensor:
        self.calls += 1
        y = self.linear(x)
        for i in range(steps):
            y = torch.tanh(y) + i
            if i > 3:
                y = y * 0.5
        self.seen.add_(y.detach().sum(0))
        if steps > 5:
            raise ValueError("too many")
        return y


def _assert_none(found: Growth, steps: int) -> None:
    assert found.objects < LEAST * steps, f"{found.objects} more objects"
    assert found.blocks < LEAST
    assert found.pages < LEAST


# ------------------------------------------------------------------------------------------------------------- growth


def _shaped(number: int) -> Tensor:
    """Of 40 sizes, two dtypes, two layouts, with a gradient at times."""
    x = torch.ones(number % 40, 4, dtype=(torch.float32, torch.float64)[number % 7 == 0])
    if number % 3 == 0:
        x = x.t().contiguous().t()
    return x.requires_grad_(number % 5 == 0)


@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "interpreted"])
def test_calls_over_changing_shapes(optimize: bool) -> None:
    steps = 10_000 if optimize else 2_000
    model = {dtype: rekindle.script(Net()).to(dtype) for dtype in (torch.float32, torch.float64)}

    def call(number: int) -> None:
        x = _shaped(number)
        result = model[x.dtype](x, number % 5)
        if x.requires_grad and number % 50 == 0:
            result.sum().backward()

    with rekindle.optimized_execution(optimize):
        _assert_none(growth(call, steps=steps, warm_up=500), steps)


def test_calls_that_fail() -> None:
    model = rekindle.script(Net())

    def call(number: int) -> None:
        with pytest.raises(ValueError, match="too many"):
            model(torch.ones(number % 7, 4), 6 + number % 2)

    _assert_none(growth(call, steps=800, warm_up=100), 800)


@pytest.fixture(scope="module")
def archive() -> bytes:
    file = io.BytesIO()
    rekindle.save(rekindle.script(Net()), file)
    return file.getvalue()


def test_archives_that_are_loaded_run_and_dropped(archive: bytes) -> None:
    def cycle(number: int) -> None:
        model = rekindle.load(io.BytesIO(archive))
        for size in (2, number % 5, 3):
            model(torch.ones(size, 4), 2)

    _assert_none(growth(cycle, steps=CYCLES, warm_up=20), CYCLES)


TEXT = """
def g(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x * 2 + i
    return x

def f(x: Tensor, n: int) -> Tensor:
    return g(x, n) + g(x, 2)
"""


def test_compilation_units_that_are_dropped() -> None:
    def cycle(number: int) -> None:
        unit = rekindle.CompilationUnit(TEXT)
        unit.f(torch.ones(number % 5), 3)

    _assert_none(growth(cycle, steps=CYCLES, warm_up=20), CYCLES)


def test_functions_and_modules_that_are_compiled_and_dropped() -> None:
    def cycle(number: int) -> None:
        def local(x: Tensor) -> Tensor:
            return x + number

        rekindle.script(local)(torch.ones(2))
        rekindle.script(Net())(torch.ones(2, 4), 2)
        rekindle.trace(nn.Linear(4, 4), torch.ones(2, 4), check_trace=False)(torch.ones(3, 4))

    _assert_none(growth(cycle, steps=CYCLES, warm_up=20), CYCLES)


# --------------------------------------------------------------------------------------------------------------- death


@pytest.fixture
def _without_the_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _loaded(archive: bytes) -> Any:
    return rekindle.load(io.BytesIO(archive))


KINDS: dict[str, Callable[[bytes], Any]] = {
    "scripted": lambda archive: rekindle.script(Net()),
    "traced": lambda archive: rekindle.trace(nn.Linear(4, 4), torch.ones(2, 4)),
    "loaded": _loaded,
    "loaded and called with gradients": _loaded,
    "frozen": lambda archive: rekindle.freeze(rekindle.script(nn.Sequential(nn.Linear(4, 4), nn.Tanh()).eval())),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("_without_the_collector")
def test_a_module_dies_with_its_last_name(kind: str, archive: bytes) -> None:
    model = KINDS[kind](archive)
    arguments = (2,) if kind in ("scripted", "loaded", "loaded and called with gradients") else ()
    for size in (2, 3, 0, 5):
        x = torch.ones(size, 4, requires_grad="gradients" in kind)
        model(x, *arguments).sum()
    held = [weakref.ref(model), *(weakref.ref(tensor) for tensor in model.state_dict(keep_vars=True).values())]
    del model
    assert [reference() for reference in held] == [None] * len(held)


@pytest.mark.usefixtures("_without_the_collector")
def test_a_module_that_raised_dies_with_its_last_name() -> None:
    model = rekindle.script(Net())
    try:
        model(torch.ones(2, 4), 7)
    except ValueError as error:
        assert str(error) == "too many"  # noqa: PT017 (pytest.raises would keep the frames)
    held = weakref.ref(model), weakref.ref(model.linear.weight)
    del model
    assert [reference() for reference in held] == [None, None]


@pytest.mark.usefixtures("_without_the_collector")
def test_a_compilation_unit_dies_with_its_last_name() -> None:
    unit = rekindle.CompilationUnit(TEXT)
    function = unit.f
    function(torch.ones(2), 3)
    held = weakref.ref(unit)
    del unit
    assert held() is None
    assert function(torch.ones(2), 1).tolist() == [7.0, 7.0]


@pytest.mark.usefixtures("_without_the_collector")
def test_arguments_and_results_belong_to_the_caller() -> None:
    model = rekindle.script(Net())
    for _ in range(4):
        x = torch.ones(2, 4, requires_grad=True)
        result = model(x, 3)
        held = weakref.ref(x), weakref.ref(result)
        del x, result
        assert [reference() for reference in held] == [None, None]


def test_graphs_and_plans_of_what_was_called_last_die() -> None:
    """Though what was called last is remembered: :func:`rekindle.last_executed_graph`."""
    unit = rekindle.CompilationUnit(TEXT)
    unit.f(torch.ones(2), 3)
    ran = rekindle.last_executed_graph()
    assert ran is not None
    held = weakref.ref(unit.f.graph), weakref.ref(ran)
    del unit, ran
    gc.collect()
    assert [reference() for reference in held] == [None, None]
    assert rekindle.last_executed_graph() is None
