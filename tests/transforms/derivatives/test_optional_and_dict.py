"""Arguments and results that may be None, and dicts: derivatives have their form, with the keys that there are."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.ir.verifier import verify

Entries = dict[str, Tensor]


@pytest.fixture(autouse=True)
def simple() -> Iterator[None]:
    before = rekindle.set_execution_strategy("simple")
    yield
    rekindle.set_execution_strategy(before)


def scaled(x: Tensor, by: Tensor | None = None, n: int = 2) -> Tensor:
    if by is not None:
        x = x * by
    for _ in range(n):
        x = x.sin()
        if by is not None:
            x = x + by
    return x.sum()


def seldom_used(x: Tensor, by: Tensor | None) -> Tensor:
    if by is not None and bool(by.sum() > 100):
        return (x * by).sum()
    return x.sum()


def by_key(entries: Entries, x: Tensor) -> Tensor:
    total = x.sum()
    for key in entries:
        total = total + (entries[key] * x).sum()
    if "a" in entries:
        total = total * entries["a"].sum()
    return total


def by_value(entries: Entries) -> Tensor:
    total = torch.zeros([], dtype=torch.float64)
    for value in entries.values():
        total = total + value.sin().sum() * total.exp()
    return total + entries["b"].prod()


def by_item(entries: Entries) -> Tensor:
    total = torch.zeros([], dtype=torch.float64)
    for key, value in entries.items():
        if key != "b":
            total = total + value.sin().sum()
    return total


def by_number(entries: dict[int, Tensor]) -> Tensor:
    return (entries[1] * entries[2]).sum()


def parts(x: Tensor, y: Tensor) -> Entries:
    return {"product": x * y, "power": x.exp()}


def product_or_none(x: Tensor, y: Tensor | None) -> Tensor | None:
    return None if y is None else x * y


def pair() -> tuple[Tensor, Tensor]:
    torch.manual_seed(2)
    x, y = torch.rand(2, 3, dtype=torch.float64).unbind()
    return x.clone(), y.clone()


def test_an_argument_that_is_there() -> None:
    x, y = pair()
    gradient = rekindle.grad(scaled, argnums=(0, 1))
    verify(gradient.graph)
    assert str(gradient.schema) == "scaled_grad(Tensor x, Tensor? by=None, int n=2) -> ((Tensor, Tensor?))"
    torch.testing.assert_close(gradient(x, y), torch.func.grad(scaled, argnums=(0, 1))(x, y))


def test_an_argument_that_is_not_there_has_no_gradient() -> None:
    x, _ = pair()
    by_x, by = rekindle.grad(scaled, argnums=(0, 1))(x)
    assert by is None
    torch.testing.assert_close(by_x, torch.func.grad(scaled)(x))
    assert rekindle.grad(scaled, argnums=1)(x, None) is None
    torch.testing.assert_close(rekindle.grad(scaled)(x, None), by_x)


def test_an_argument_that_is_there_and_not_used_has_zeros() -> None:
    x, y = pair()
    by_x, by = rekindle.grad(seldom_used, argnums=(0, 1))(x, y)
    torch.testing.assert_close((by_x, by), (torch.ones_like(x), torch.zeros_like(y)))
    assert rekindle.grad(seldom_used, argnums=1)(x, None) is None


@pytest.mark.parametrize("is_there", [True, False])
def test_the_way_forward_by_an_argument_that_may_be_none(is_there: bool) -> None:
    x, y = pair()
    found = rekindle.jvp(scaled, argnums=(0, 1))(x, y if is_there else None, tangents=(y, x if is_there else None))
    primals, tangents = ((x, y), (y, x)) if is_there else ((x,), (y,))
    torch.testing.assert_close(found, torch.func.jvp(scaled, primals, tangents))


def test_a_result_that_may_be_none() -> None:
    x, y = pair()
    way = rekindle.vjp(product_or_none, argnums=(0, 1))
    torch.testing.assert_close(way(x, y, x), (x * y, (x * y, x * x)))
    result, (by_x, by_y) = way(x, None, None)
    assert result is None
    assert by_y is None
    assert not by_x.any()


@pytest.mark.parametrize("keys", ["ab", "cb", ""])
def test_dicts(keys: str) -> None:
    """Programs ask which keys there are."""
    x, y = pair()
    entries = dict(zip(keys, (x, y), strict=False))
    found = rekindle.grad(by_key, argnums=(0, 1))(entries, x)
    torch.testing.assert_close(found, torch.func.grad(by_key, argnums=(0, 1))(entries, x))
    assert list(found[0]) == list(entries)


@pytest.mark.parametrize("program", [by_value, by_item], ids=lambda program: program.__name__)
def test_dicts_that_are_walked_through(program: Callable[[Entries], Tensor]) -> None:
    x, y = pair()
    entries, tangents = {"a": x, "b": y}, {"a": y, "b": x}
    gradient: Any = rekindle.grad(program)

    def length(given: Entries) -> Tensor:
        found = gradient(given)
        return (found["a"] * given["b"]).sum() + found["b"].pow(2).sum()

    def length_there(given: Entries) -> Any:
        found: Any = torch.func.grad(program)(given)
        return (found["a"] * given["b"]).sum() + found["b"].pow(2).sum()

    torch.testing.assert_close(gradient(entries), torch.func.grad(program)(entries))
    torch.testing.assert_close(rekindle.grad(length)(entries), torch.func.grad(length_there)(entries))
    torch.testing.assert_close(
        rekindle.jvp(program)(entries, tangents), torch.func.jvp(program, (entries,), (tangents,))
    )


def test_dicts_by_number() -> None:
    x, y = pair()
    torch.testing.assert_close(rekindle.grad(by_number)({1: x, 2: y}), {1: y, 2: x})


def test_results_that_are_dicts() -> None:
    x, y = pair()
    cotangents = {"product": x, "power": y}
    expected, back = torch.func.vjp(parts, x, y)
    torch.testing.assert_close(rekindle.vjp(parts, argnums=(0, 1))(x, y, cotangents), (expected, back(cotangents)))
    found = rekindle.jvp(parts, argnums=(0, 1))(x, y, (y, x))
    torch.testing.assert_close(found, torch.func.jvp(parts, (x, y), (y, x)))


def test_results_that_are_lists() -> None:
    def rows(x: Tensor, y: Tensor) -> list[Tensor]:
        return [x * y, x.exp()]

    x, y = pair()
    found = rekindle.jvp(rows, argnums=(0, 1))(x, y, (y, x))
    torch.testing.assert_close(found, torch.func.jvp(rows, (x, y), (y, x)))


def test_saved_and_loaded() -> None:
    x, y = pair()
    for program, given in ((scaled, (x, None)), (scaled, (x, y)), (by_key, ({"a": x, "b": y}, x))):
        function = rekindle.grad(program, argnums=(0, 1))
        loaded = rekindle.load(io.BytesIO(function.save_to_buffer()))
        torch.testing.assert_close(loaded(*given), function(*given))


def test_no_jacobian_of_a_dict() -> None:
    with pytest.raises(rekindle.errors.DifferentiationError) as caught:
        rekindle.jacrev(parts)
    lines = str(caught.value).splitlines()
    assert lines[0] == "there is no Jacobian of or by a value of type Dict(str, Tensor)"
    assert lines[-1] == "Hint: use tensors, and tuples of them"


def test_what_has_no_gradient() -> None:
    def program(x: Tensor, state: tuple[Tensor, Tensor] | None) -> Tensor:
        return x.sum() if state is None else (x * state[0]).sum()

    with pytest.raises(rekindle.errors.DifferentiationError) as caught:
        rekindle.grad(program, argnums=1)
    assert str(caught.value) == (
        "argument 1 of 'program' is a value of type (Tensor, Tensor)?, of which there is no gradient\n"
        "Hint: gradients are of tensors, and of tuples, lists and dicts of tensors, or None instead of one"
    )
