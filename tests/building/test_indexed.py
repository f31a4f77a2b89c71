"""``index_add`` and norms, which PyTorch's stable ABI does not pass: they take a Scalar."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from tests.building.c_process import memory_checker, run


def added(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: int) -> Tensor:
    return torch.index_add(x, dim, index, source, alpha=alpha)


def added_in_place(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: int) -> Tensor:
    y = x.clone()
    y.t().index_add_(dim, index, source.t(), alpha=0.5 * alpha)
    return y


def library_of(function: Callable[..., Any], folder: Path, *examples: Any, **options: Any) -> rekindle.NativeLibrary:
    built = rekindle.build(rekindle.script(function), folder, list(examples), **options)
    return rekindle.NativeLibrary(built.folder)


I = torch.tensor([2, 0, 2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32])
def test_index_add(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, source = (10 * torch.randn(3, 4)).to(dtype), (10 * torch.randn(3, 4)).to(dtype)
    library = library_of(added, tmp_path, (x, 0, I, source, 2), freestanding=True)
    calls = [
        (x, 0, I, source, 2),
        (x, -2, I.clone(), source, -1),
        (x, 1, I, source[:, :3], 1),
        (x.t().contiguous().t(), 0, I[:2], source[1:], 1),
        (x[:, :0], 0, I, source[:, :0], 1),
    ]
    for call in calls:
        torch.testing.assert_close(library(*call), added(*call))


def test_index_add_in_place(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, source = torch.randn(3, 4), torch.randn(3, 4)
    library = library_of(added_in_place, tmp_path, (x, 1, I, source, 2), freestanding=True)
    torch.testing.assert_close(library(x, 1, I, source, 2), added_in_place(x, 1, I, source, 2))


def test_index_add_of_tensors_without_dimensions(tmp_path: Path) -> None:
    x, source, index = torch.tensor(1.0), torch.tensor(2.0), torch.tensor([0])
    library = library_of(added, tmp_path, (x, 0, index, source, 2), freestanding=True)
    assert library(x, 0, index, source, 3).item() == 7.0


@pytest.mark.parametrize(
    ("index", "source", "exception"),
    [
        (torch.tensor([-1, 0, 0]), torch.ones(3, 4), RuntimeError),
        (torch.tensor([3, 0, 0]), torch.ones(3, 4), RuntimeError),
        (torch.tensor([0, 0]), torch.ones(3, 4), RuntimeError),
        (torch.tensor([0, 0, 0]), torch.ones(3, 5), RuntimeError),
    ],
)
def test_errors_of_index_add(index: Tensor, source: Tensor, exception: type[Exception], tmp_path: Path) -> None:
    x = torch.zeros(3, 4)
    library = library_of(added, tmp_path, (x, 0, I, torch.ones(3, 4), 1), freestanding=True)
    for function in (added, library):
        with pytest.raises(exception):
            function(x, 0, index, source, 1)


def of_one_dimension(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return x.index_add(0, index, source)


def test_an_index_out_of_range_of_a_vector(tmp_path: Path) -> None:
    x, one = torch.zeros(3), torch.ones(1)
    library = library_of(of_one_dimension, tmp_path, (x, torch.tensor([1]), one), freestanding=True)
    for function in (of_one_dimension, library):
        with pytest.raises(IndexError):
            function(x, torch.tensor([3]), one)


def onto_itself(x: Tensor, index: Tensor, shares: bool) -> Tensor:
    y = x.clone()
    y.index_add_(0, index, y[:1] if shares else x[:1])
    return y


def test_tensors_that_share_memory_are_refused(tmp_path: Path) -> None:
    x, index = torch.ones(3), torch.tensor([1])
    library = library_of(onto_itself, tmp_path, (x, index, False), freestanding=True)
    assert library(x, index, False).tolist() == [1.0, 2.0, 1.0]
    with pytest.raises(RuntimeError):
        onto_itself(x, index, True)
    with pytest.raises(rekindle.LibraryError, match="'index_add_' of tensors that share memory"):
        library(x, index, True)


def test_half_floats_are_refused(tmp_path: Path) -> None:
    x = torch.ones(3, 4, dtype=torch.float16)
    with pytest.raises(rekindle.NotBuildable) as raised:
        rekindle.build(rekindle.script(added), tmp_path, [(x, 0, I, x, 1)])
    assert raised.value.reason == "'aten::index_add' takes a Scalar, which the stable ABI of PyTorch does not pass"


@pytest.mark.skipif(memory_checker() is None, reason="this machine has no valgrind")
def test_memory(tmp_path: Path) -> None:
    x, source = torch.randn(3, 4), torch.randn(3, 4)
    options: dict[str, Any] = {"cpu": "x86-64-v3", "freestanding": True}
    built = rekindle.build(rekindle.script(added), tmp_path, [(x, 0, I, source, 2)], **options)
    calls = [(x, 0, I, source, 2), (x, 5, I, source, 2), (x, 0, I + 1, source, 2)]
    answers = run(built, "call", calls, tmp_path, prefix=memory_checker() or ())
    assert [each.code for each in answers] == [0, 2, 1]
