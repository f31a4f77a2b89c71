"""Arguments ``out``: results are copied to tensors of the same sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle


def written_to_itself(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.clone()
    row = y[0]
    torch.add(y, y, out=y)
    return y, row


def several_operators(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    torch.add(x, 1, alpha=2, out=out)
    return torch.mul(out, 2, out=out)


def several_results(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    values, indices = torch.zeros(3), torch.zeros(3, dtype=torch.int64)
    found = torch.max(x, 1, out=(values, indices))
    return values, indices, found[0]


def rows(x: Tensor, size: int) -> Tensor:
    out = torch.zeros(size, 4)
    torch.exp(x, out=out)
    return out


def resized(x: Tensor) -> Tensor:
    out = torch.empty(0)
    torch.exp(x, out=out)
    return out


X = torch.arange(12.0).reshape(3, 4) - 5
TEXT = "an argument 'out' has another dtype or other sizes than the result"


@pytest.mark.parametrize("function", [written_to_itself, several_operators, several_results])
def test_results(function: Callable[..., Any], tmp_path: Path) -> None:
    rekindle.build(rekindle.script(function), tmp_path, [(X,)])
    torch.testing.assert_close(rekindle.NativeLibrary(tmp_path)(X), function(X))


def test_other_sizes_in_a_call(tmp_path: Path) -> None:
    rekindle.build(rekindle.script(rows), tmp_path, [(X, 3)])
    library = rekindle.NativeLibrary(tmp_path)
    torch.testing.assert_close(library(X, 3), rows(X, 3))
    with pytest.raises(rekindle.LibraryError) as raised:
        library(X[:2].clone(), 3)
    assert str(raised.value) == f"{TEXT}\n  at test_out_arguments.py, line 37: torch.exp(x, out=out)"


def test_a_tensor_that_is_resized_by_an_example(tmp_path: Path) -> None:
    with pytest.raises(rekindle.NotBuildable) as raised:
        rekindle.build(rekindle.script(resized), tmp_path, [(X,)])
    assert raised.value.reason == f"the program raises an error on example 1 of 'resized': RuntimeError: {TEXT}"
