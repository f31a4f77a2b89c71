"""Operators of PyTorch that take numbers: a library passes them as tensors, with the dtypes that numbers lead to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle


def quotient(x: Tensor, n: int) -> Tensor:
    return torch.floor_divide(x, n)


def quotient_of_float(x: Tensor) -> Tensor:
    return torch.floor_divide(x, 1.5)


def power(x: Tensor, n: float) -> Tensor:
    return torch.pow(x, n)


def rest(x: Tensor, n: int) -> Tensor:
    return torch.remainder(x, n)


def rest_of_number(x: Tensor) -> Tensor:
    return 7 % x


def shifted_number(x: Tensor) -> Tensor:
    return 1 << x


def with_bits(x: Tensor) -> Tensor:
    y = x.clone()
    y |= 3
    y <<= 2
    return y


_INTS = torch.arange(1, 9)

CASES: list[tuple[Callable[..., Tensor], tuple[Any, ...], str]] = [
    (quotient, (torch.arange(-5, 9), 3), "aten::floor_divide"),
    (quotient, (torch.arange(9, dtype=torch.uint8), 4), "aten::floor_divide"),
    (quotient_of_float, (torch.arange(-5, 9),), "aten::floor_divide"),
    (power, (torch.linspace(0, 4, 9), 0.1), "aten::pow.Tensor_Tensor"),
    (power, (_INTS, 0.3), "aten::pow.Tensor_Tensor"),
    (power, (torch.linspace(0, 4, 9).double(), 0.1), "aten::pow.Tensor_Tensor"),
    (power, (torch.tensor(3), 2.5), "aten::pow.Tensor_Tensor"),
    (rest, (torch.arange(-5, 9), 3), "aten::remainder.Tensor"),
    (rest, (torch.tensor([True, False]), 2), "aten::remainder.Tensor"),
    (rest_of_number, (_INTS,), "aten::remainder.Tensor"),
    (shifted_number, (torch.arange(5, dtype=torch.uint8),), "aten::bitwise_left_shift.Tensor"),
    (with_bits, (_INTS.to(torch.int8),), "aten::__ior__.Tensor"),
]


@pytest.mark.parametrize(("program", "args", "operator"), CASES)
def test_numbers_become_tensors(
    program: Callable[..., Tensor], args: tuple[Any, ...], operator: str, tmp_path: Path
) -> None:
    built = rekindle.build(rekindle.script(program), tmp_path, [args])
    assert operator in built.torch_operators
    found, expected = rekindle.NativeLibrary(tmp_path)(*args), program(*args)
    torch.testing.assert_close(found, expected)  # dtypes, too


def test_a_number_that_the_dtype_does_not_hold_is_an_error(tmp_path: Path) -> None:
    x = torch.arange(9, dtype=torch.uint8)
    rekindle.build(rekindle.script(quotient), tmp_path, [(x, 3)])
    with pytest.raises(RuntimeError, match=r"^value cannot be converted to dtype 0 without overflow"):
        rekindle.NativeLibrary(tmp_path)(x, 300)


def test_half_floats_with_numbers_are_refused(tmp_path: Path) -> None:
    x = torch.rand(4).bfloat16()
    rekindle.build(rekindle.script(power), tmp_path, [(x, 0.5)])
    with pytest.raises(rekindle.LibraryError, match=r"^an operator of PyTorch with half floats and a number"):
        rekindle.NativeLibrary(tmp_path)(x, 0.5)


def scaled(x: Tensor, factor: float) -> Tensor:
    return (x * factor + 1.0).tanh() * factor


@pytest.mark.parametrize("factor", [2.0, 1e39, -1e300, float("inf")])
def test_float64_programs_take_floats_beyond_the_range_of_float32(factor: float, tmp_path: Path) -> None:
    x = torch.rand(40, dtype=torch.float64)
    built = rekindle.build(rekindle.script(scaled), tmp_path, [(x, 2.0)])
    assert "aten::tanh" not in built.torch_operators
    torch.testing.assert_close(rekindle.NativeLibrary(tmp_path)(x, factor), scaled(x, factor))


def test_float32_programs_do_not(tmp_path: Path) -> None:
    x = torch.rand(40)
    rekindle.build(rekindle.script(scaled), tmp_path, [(x, 2.0)])
    with pytest.raises(rekindle.LibraryError, match=r"^the library has no kernel for such sizes or dtypes"):
        rekindle.NativeLibrary(tmp_path)(x, 1e39)
