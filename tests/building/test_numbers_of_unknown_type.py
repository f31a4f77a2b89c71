"""Numbers that are ints, floats or bools, which a library knows at run time only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from torch import Tensor

import rekindle


def arithmetic(a: int | float, b: int | float) -> Any:
    return a + b, a - b, a * b, -a, abs(a), a < b, a <= b, a == b, a != b, a > 2, 1.5 >= b, a + 1, 2 * b


def quotients(a: int | float, b: int | float) -> Any:
    return a / b, a // b, a % b


def power(a: int | float, b: float) -> Any:
    return a**b


def texts(a: int | float) -> list[str]:
    return [str(a), f"{a:8}|{a!r:<9}|{a}", str([a]), "%s" % a]


def whole(a: int | float) -> Any:
    return int(a), round(a), bool(a), float(a)


@pytest.fixture(scope="module")
def library_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    known: dict[Any, Any] = {}

    def build(program: Any) -> Any:
        if program not in known:
            folder = tmp_path_factory.mktemp(program.__name__)
            rekindle.build(rekindle.script(program), folder, freestanding=True)
            known[program] = rekindle.NativeLibrary(folder)
        return known[program]

    return build


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        found = function(*arguments)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return type(error)
    return repr(found)


NUMBERS = st.integers(-(2**31), 2**31) | st.integers(-5, 5) | st.floats(-1e9, 1e9) | st.sampled_from([0.5, 2.0, -0.0])


@given(NUMBERS, NUMBERS)
@example(1, 1.0)
@example(3, 0)
@example(2.5, 0.0)
@settings(max_examples=300, deadline=None)
def test_arithmetic(library_of: Any, a: float, b: float) -> None:
    for program in (arithmetic, quotients):
        assert outcome(library_of(program), a, b) == outcome(program, a, b), program


@given(NUMBERS)
@example(float("inf"))
@example(float("nan"))
@settings(max_examples=200, deadline=None)
def test_of_one(library_of: Any, a: float) -> None:
    for program in (texts, whole):
        assert outcome(library_of(program), a) == outcome(program, a), program


@pytest.mark.parametrize(("a", "b"), [(2, 0.5), (2.0, 3.0), (0, -1.0), (-8.0, 2.0)])
def test_powers(library_of: Any, a: float, b: float) -> None:
    assert outcome(library_of(power), a, b) == outcome(power, a, b)


def of_elements(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Any]:
    n = x.item()
    return torch.full([2], n), y * n, torch.remainder(y, n), torch.pow(y, n), n


@pytest.mark.parametrize("number", [3, 2.5, True, 0.5 + 1j])
def test_elements_of_tensors(number: complex, tmp_path: Path) -> None:
    y = torch.rand(3)
    x = torch.tensor(number)
    rekindle.build(rekindle.script(of_elements), tmp_path, [(x, y)] if not isinstance(number, complex) else [])
    library = rekindle.NativeLibrary(tmp_path)
    if isinstance(number, complex):
        with pytest.raises(rekindle.LibraryError, match="of a complex number that is known only at run time"):
            library(x, y)
    else:
        found, expected = library(x, y), of_elements(x, y)
        torch.testing.assert_close(found[:4], expected[:4])
        assert type(found[4]) is type(number)
        assert found[4] == number


def sums(x: Tensor, y: Tensor, n: int) -> list[Tensor]:
    if n == 0:
        return [x + y, x - y, torch.rsub(x, y), torch.add(x, y, alpha=2), x - 1.5, 2 - x, x + 1]
    return sums(x, y, n - 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_sums_outside_of_kernels(dtype: torch.dtype, tmp_path: Path) -> None:
    x, y = torch.rand(2, 3).to(dtype), torch.rand(3).to(dtype)
    built = rekindle.build(rekindle.script(sums), tmp_path, [(x, y, 1)])
    assert "aten::add.Tensor" in built.torch_operators
    library = rekindle.NativeLibrary(tmp_path)
    if dtype is torch.bfloat16:
        with pytest.raises(rekindle.LibraryError, match="with half floats and a number"):
            library(x, y, 1)
    else:
        torch.testing.assert_close(library(x, y, 1), sums(x, y, 1))


def test_sums_of_ints_outside_of_kernels_are_refused(tmp_path: Path) -> None:
    x = torch.arange(3)
    rekindle.build(rekindle.script(sums), tmp_path, [(torch.rand(3), torch.rand(3), 1)])
    with pytest.raises(rekindle.LibraryError, match="argument 0 has another dtype"):
        rekindle.NativeLibrary(tmp_path)(x, x, 1)
