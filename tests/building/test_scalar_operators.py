"""Operators that take a Scalar, which PyTorch's stable ABI does not pass, replaced by equal ones that it passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle


def norms_of_several_ranks(x: Tensor) -> Tensor:
    return torch.stack([torch.linalg.vector_norm(each) for each in [x, x[0]]])


def norm_along(x: Tensor, dim: int) -> Tensor:
    return torch.linalg.vector_norm(x, 2, dim, True)


def norm_of_complex_numbers(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(torch.complex(x, 2 * x), 2, -1)


def norm_in_double(x: Tensor, dim: int) -> Tensor:
    return torch.linalg.vector_norm(x, 2.0, [dim], dtype=torch.float64)


def sum_of_norms(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for each in [x, x[0]]:
        total = total + each.norm(2, -1).sum() + each.norm()
    return total


def scattered(x: Tensor, index: Tensor) -> Tensor:
    return x.scatter(0, index, 1.5)


def scattered_in_place(x: Tensor, index: Tensor) -> Tensor:
    return torch.zeros_like(x).scatter_(1, index, 1)


def scattered_ints(x: Tensor, index: Tensor) -> Tensor:
    return index.scatter(0, 1 - index.clamp(max=1), 7)


def new_tensors(x: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    sizes = [2, x.size(0)]
    return x.new_full(sizes, 1.5), index.new_zeros(sizes), x.new_ones(sizes, dtype=torch.int32), index.new_full([], 7)


def lines(x: Tensor, end: float) -> tuple[Tensor, Tensor, Tensor]:
    n = x.size(0)
    return (
        torch.linspace(-1, end, n),
        torch.linspace(0, 8, n, dtype=torch.int64),
        torch.logspace(0.0, end, n),
    )


X = torch.arange(12.0).reshape(3, 4) - 5
INDEX = torch.tensor([[0, 2], [1, 1]])


@pytest.mark.parametrize(
    ("function", "arguments", "operators"),
    [
        (norms_of_several_ranks, (X,), {"aten::linalg_norm"}),
        (norm_along, (X, 1), {"aten::linalg_norm"}),
        (norm_of_complex_numbers, (X,), {"aten::linalg_norm", "aten::complex"}),
        (norm_in_double, (X, 0), {"aten::linalg_norm"}),
        (sum_of_norms, (X,), {"aten::linalg_norm", "aten::add.Tensor", "aten::sum"}),
        (scattered, (X, INDEX), {"aten::scatter.src"}),
        (scattered_in_place, (X, INDEX), {"aten::scatter_.src"}),
        (scattered_ints, (X, INDEX), {"aten::scatter.src"}),
        (new_tensors, (X, INDEX), set()),
        (lines, (X, 2.5), {"aten::linspace.Tensor_Tensor", "aten::logspace.Tensor_Tensor"}),
    ],
)
def test_results(function: Callable[..., Any], arguments: tuple[Any, ...], operators: set[str], tmp_path: Path) -> None:
    built = rekindle.build(rekindle.script(function), tmp_path, [arguments])
    assert set(built.torch_operators) == operators
    torch.testing.assert_close(rekindle.NativeLibrary(tmp_path)(*arguments), function(*arguments))


def of_order(x: Tensor, order: float) -> Tensor:
    return torch.linalg.vector_norm(x, order)


def test_a_norm_of_an_order_that_is_known_at_run_time_only(tmp_path: Path) -> None:
    with pytest.raises(rekindle.NotBuildable) as raised:
        rekindle.build(rekindle.script(of_order), tmp_path, [(X, 2.0)])
    assert (
        raised.value.reason
        == "'aten::linalg_vector_norm' takes a Scalar, which the stable ABI of PyTorch does not pass"
    )
