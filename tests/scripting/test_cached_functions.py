"""Functions with ``functools.lru_cache``."""

import functools
from typing import Any, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import UnsupportedError
from tests.frontend.outcomes import agrees


@functools.cache
def doubled(n: int):
    return n * 2


@functools.cache
def repeated(n: int, s: str = "a") -> str:
    if n < 0:
        raise ValueError("negative")
    return s * n


@functools.lru_cache
def untyped(n, m=2):
    return n / m, (n, m)


@functools.lru_cache
def steps(n):
    return torch.arange(n)


def prints(n: int) -> int:
    print(n)  # noqa: T201
    return n


@functools.lru_cache
def drawn(n: int) -> float:
    return torch.rand(n).sum().item()


@functools.lru_cache
def total(x: Tensor) -> float:
    return x.sum().item()


@functools.lru_cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def calls(n: int) -> Tuple[int, str, str, int]:
    return doubled(n), repeated(n), repeated(n, s="b"), doubled(n).bit_length()


def calls_untyped(n: int, y: float) -> Any:
    return untyped(n), untyped(y, m=n), untyped(n, 3)


def test_calls_of_cached_functions() -> None:
    agrees(calls, (1,), (2,), (-1,))
    agrees(calls_untyped, (1, 1.5), (2, 2.5))


def uses_tensors(n: int) -> Tensor:
    return steps(n) + 1


def uses_prints(n: int) -> int:
    return shouted(n)


@functools.lru_cache
def shouted(n: int) -> int:
    return prints(n)


def uses_numbers(n: int) -> float:
    return drawn(n)


def uses_totals(x: Tensor) -> float:
    return total(x)


def uses_recursion(n: int) -> int:
    return fibonacci(n)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (
            uses_tensors,
            (
                "the cached function 'steps' cannot be compiled without its cache: its result, a Tensor, is mutable, "
                "and calls share it"
            ),
        ),
        (
            uses_prints,
            "the cached function 'shouted' cannot be compiled without its cache: it does more than compute a result",
        ),
        (
            uses_numbers,
            "the cached function 'drawn' cannot be compiled without its cache: it does more than compute a result",
        ),
        (uses_totals, "the cached function 'total' cannot be compiled without its cache: an argument is mutable"),
    ],
)
def test_caches_that_show_are_rejected(function: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(function)
    assert str(caught.value).partition("\n")[0] == reason


def test_recursion_is_rejected() -> None:
    with pytest.raises(rekindle.RekindleError) as caught:
        rekindle.script(uses_recursion)
    assert "it calls itself, which without the cache may take very long" in str(caught.value)


class SizesInAMethod(torch.nn.Module):
    @functools.lru_cache  # noqa: B019
    def size(self, n: int) -> int:
        return n * 2

    def forward(self, x: Tensor) -> Tensor:
        return x * self.size(x.size(0))


def test_cached_methods_are_rejected() -> None:
    with pytest.raises(rekindle.RekindleError) as caught:
        rekindle.script(SizesInAMethod())
    assert str(caught.value).partition("\n")[0] == (
        "'size' is a 'functools._lru_cache_wrapper', which has no Python source to compile"
    )
