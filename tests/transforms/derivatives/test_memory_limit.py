"""Derivatives that save no more of loops than the limit allows: the same gradients, from less memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import rekindle
from benchmarks.execution import peak_memory
from rekindle.autodiff.residuals.checkpoint_schedule import (
    bytes_per_iteration,
    saves_segment,
    segment_length,
    storage_bytes,
)
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from tests.support.golden import GoldenTexts

Program = Callable[[Tensor, Tensor, int], Tensor]
LIMITS = (0, 500, 1 << 40)
"""Room for nothing, for some turns, and for all."""


@pytest.fixture(autouse=True)
def simple() -> Iterator[None]:
    before = rekindle.set_execution_strategy("simple")
    yield
    rekindle.set_execution_strategy(before)


def loop(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.tanh(x * w)
    return x.sum()


def uses_the_turn(x: Tensor, w: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i % 3 == 0:
            x = x * w + i
        else:
            w = w.cos() * x.sin()
    return (x * w).sum()


def while_small(x: Tensor, w: Tensor, n: int) -> Tensor:
    turns = 0
    while bool(x.sum() < 100) and turns < n:
        x = x * (1 + w)
        turns += 1
    return x.sum() * turns


def leaves_early(x: Tensor, w: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x * w.exp()
        if bool(x.max() > 5):
            break
    return x.sum()


def nested(x: Tensor, w: Tensor, n: int) -> Tensor:
    for i in range(n):
        for j in range(i % 3):
            x = x + (x * w).sin() * j
        w = w * x.mean()
    return (x + w).sum()


def two_loops(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.sin(x * w)
    for _ in range(n // 2):
        w = torch.tanh(x + w)
    return (x * w).sum()


def keeps_a_list(x: Tensor, w: Tensor, n: int) -> Tensor:
    found = [x]
    for _ in range(n):
        x = x.sin() * w
        found.append(x)
    return torch.stack(found).prod()


def writes(x: Tensor, w: Tensor, n: int) -> Tensor:
    state = x
    for i in range(n):
        value = (state * w).sum().sin()
        state = state.clone()
        state[i % 3] = value
    return state.sum()


PROGRAMS = (loop, uses_the_turn, while_small, leaves_early, nested, two_loops, keeps_a_list, writes)


def arguments(n: int) -> tuple[Tensor, Tensor, int]:
    torch.manual_seed(3)
    x, w = torch.rand(2, 3, dtype=torch.float64).unbind()
    return x.clone(), w.clone(), n


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_those_of_eager(program: Program, limit: int) -> None:
    function = rekindle.value_and_grad(program, argnums=(0, 1), memory_limit=limit)
    verify(function.graph)
    for n in (0, 1, 11):
        value, found = function(*arguments(n))
        gradients, expected = torch.func.grad_and_value(program, argnums=(0, 1))(*arguments(n))
        torch.testing.assert_close((value, found), (expected, gradients))


@pytest.mark.parametrize("limit", LIMITS)
def test_products_with_vectors(limit: int) -> None:
    def program(x: Tensor, w: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = torch.tanh(x * w)
        return x

    x, w, n = arguments(9)
    found = rekindle.vjp(program, argnums=(0, 1), memory_limit=limit)(x, w, n, torch.ones_like(x))
    expected = torch.func.grad(lambda x, w: program(x, w, n).sum(), argnums=(0, 1))(x, w)
    torch.testing.assert_close(found[1], expected)


@pytest.mark.parametrize(("program", "limit", "outer"), [(uses_the_turn, 0, None), (while_small, 500, 500)])
def test_gradients_of_gradients(program: Program, limit: int, outer: int | None) -> None:
    gradient: Any = rekindle.grad(program, argnums=(0, 1), memory_limit=limit)

    def length(x: Tensor, w: Tensor, n: int) -> Tensor:
        a, b = gradient(x, w, n)
        return (a * a).sum() + (b * b).sum()

    def length_there(x: Tensor, w: Tensor, n: int) -> Any:
        a, b = torch.func.grad(program, argnums=(0, 1))(x, w, n)
        return (a * a).sum() + (b * b).sum()

    expected = torch.func.grad(length_there, argnums=(0, 1))(*arguments(7))
    found = rekindle.grad(length, argnums=(0, 1), memory_limit=outer)(*arguments(7))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("limit", LIMITS)
def test_random_numbers_are_drawn_as_they_were(limit: int) -> None:
    def program(x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = F.dropout(x, 0.5) * 1.5 + torch.rand_like(x)
        return (x * x).sum()

    x = torch.rand(20, dtype=torch.float64)
    torch.manual_seed(5)
    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(program(leaf, 10), leaf)
    following = torch.rand(3)
    torch.manual_seed(5)
    torch.testing.assert_close(rekindle.grad(program, memory_limit=limit)(x, 10), expected)
    torch.testing.assert_close(torch.rand(3), following)


def test_what_is_printed_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def program(x: Tensor, n: int) -> Tensor:
        for i in range(n):
            print("turn", i)  # noqa: T201
            x = x * x
        return x

    assert rekindle.grad(program, memory_limit=0)(torch.tensor(1.0), 3).item() == 8
    assert capsys.readouterr().out == "turn 0\nturn 1\nturn 2\n"


def test_saved_and_loaded() -> None:
    for program in (uses_the_turn, leaves_early):
        function = rekindle.grad(program, argnums=(0, 1), memory_limit=300)
        loaded = rekindle.load(io.BytesIO(function.save_to_buffer()))
        torch.testing.assert_close(loaded(*arguments(8)), function(*arguments(8)))


def test_graph(golden: GoldenTexts) -> None:
    golden(
        "transforms/grad_with_a_memory_limit", print_graph(rekindle.grad(loop, memory_limit=4096).graph, ranges=False)
    )


def test_no_number_of_bytes() -> None:
    with pytest.raises(rekindle.errors.DifferentiationError) as found:
        rekindle.grad(loop, memory_limit=-1)
    assert str(found.value) == "memory_limit=-1 is not a number of bytes\nHint: pass an int, or None for no limit"


# --------------------------------------------------------------------------------------------------------------- memory


def recurrence(x: Tensor, w: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.tanh(x @ w)
    return x.sum()


def test_memory_stays_below_the_limit() -> None:
    x, w = torch.randn(64, 64), torch.randn(64, 64) / 8
    turns, size = 200, 64 * 64 * 4
    without = peak_memory(lambda: rekindle.grad(recurrence, argnums=1)(x, w, turns))
    assert without > turns * size
    for limit in (40 * size, 100 * size):
        function = rekindle.grad(recurrence, argnums=1, memory_limit=limit)
        assert peak_memory(partial(function, x, w, turns)) < limit + 12 * size


@pytest.mark.parametrize("carried", [1, 3, 50])
@pytest.mark.parametrize("kept", [1, 7, 40])
@pytest.mark.parametrize("turns", [1, 10, 1000])
def test_what_is_decided_fits(turns: int, kept: int, carried: int) -> None:
    least = min(-(-turns // size) * carried + size * kept for size in range(1, turns + 1))
    for limit in (least, 2 * least + 100, turns * kept, 10 * turns * kept):
        at_once = segment_length(limit, turns, kept, carried)
        segments = -(-turns // at_once)
        held = sum(saves_segment(limit, turns, kept, carried, at_once, number) for number in range(segments))
        if limit >= turns * kept:
            assert (segments, held) == (1, 1)
        else:
            room = held * at_once * kept + (at_once * kept if held < segments else 0)
            assert room + segments * carried <= max(limit, least + kept + carried + 2 * at_once)


def test_bytes_are_counted_once() -> None:
    x = torch.zeros(10)
    assert storage_bytes([x, x[:5]], {"a": torch.zeros(2, dtype=torch.float64)}, 3) == 56
    y, z = torch.zeros(20), torch.zeros(30)
    assert bytes_per_iteration([x, y], [y, z], [None, None]) == 120  # the first iteration passes y to the second
    assert bytes_per_iteration([x], [y]) == 120
    assert bytes_per_iteration([], []) == 0
