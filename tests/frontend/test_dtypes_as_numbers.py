"""Dtypes, layouts and memory formats are numbers in the IR, but not in a program."""

from __future__ import annotations

import io
from typing import Any, Optional

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import CompileError
from tests.support.equality import assert_same


def _as_ints(x: Tensor) -> Tensor:
    return x.view(torch.int32)


def _as_other(x: Tensor, y: Tensor) -> Tensor:
    return x.view(y.dtype) + x.view(2, 2).view(-1).view(dtype=torch.int16)[:2]


def _as_given(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.view_copy(x, dtype) if x.dim() > 1 else x.view(dtype)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (_as_ints, (torch.ones(3),)),
        (_as_other, (torch.ones(4), torch.ones(2, dtype=torch.float64))),
        (_as_given, (torch.ones(3), torch.int32)),
    ],
)
def test_a_dtype_is_no_size(function: Any, arguments: tuple[Any, ...]) -> None:
    """``torch.int32`` has the number 3."""
    compiled = rekindle.script(function)
    loaded = io.BytesIO()
    rekindle.save(compiled, loaded)
    loaded.seek(0)
    for each in (compiled, rekindle.load(loaded)):
        assert_same(each(*arguments), function(*arguments))


def test_a_dtype_among_sizes_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"argument 'size': expected List\[int\], got torch\.dtype"):
        rekindle.script(lambda: torch.zeros(2, torch.int32))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.int32,
        lambda x: x == torch.int32,
        lambda x: x.sum([torch.int8]),
        lambda x: x.to(torch.channels_last),
        lambda x: x.to(torch.strided),
        lambda x: x.reshape(torch.int32),
        lambda x: x.unsqueeze(torch.uint8),
        lambda x: x[: torch.int8],
        lambda x: x.new_full((2,), torch.int64),
        lambda x: x.view((torch.int32,)),
        lambda x: torch.eye(2, torch.int32),
        lambda x: torch.arange(2, torch.int32),
        lambda x: torch.zeros((2, torch.int32)),
        lambda x: torch.zeros(2, dtype=torch.channels_last),
        lambda x: torch.full_like(x, torch.int32),
        lambda x: torch.tensor(torch.int32),
        lambda x: torch.int32 + 1,
        lambda x: x.dim() * x.dtype,
    ],
)
def test_a_dtype_is_no_number(function: Any) -> None:
    """Eager raises too, or has another value than that of the number."""
    with pytest.raises(CompileError, match=r"(expected|got) .*torch\.(dtype|layout|memory_format)"):
        rekindle.script(function)


def _in_conditions(x: Tensor, dtype: Optional[torch.dtype] = None) -> tuple[Tensor, bool, bool]:
    chosen = dtype or torch.int16
    return (x.to(x.dtype) if dtype else x).to(chosen), bool(chosen), not chosen


@pytest.mark.parametrize("dtype", [None, torch.uint8, torch.int8])
def test_each_dtype_is_true(dtype: torch.dtype | None) -> None:
    """``torch.uint8`` has the number 0."""
    compiled = rekindle.script(_in_conditions)
    assert_same(compiled(torch.ones(3), dtype), _in_conditions(torch.ones(3), dtype))


def _about(x: Tensor, form: torch.memory_format, layout: torch.layout) -> tuple[str, list[bool], int]:
    among = x.dtype in (torch.int8, torch.float32), x.dtype == torch.float32, {x.dtype: 1} == {torch.float32: 1}
    return f"{x.dtype} {form} {layout}", list(among), [torch.int8, x.dtype].index(x.dtype)


def test_dtypes_are_compared_and_have_texts() -> None:
    arguments = (torch.ones(2), torch.channels_last, torch.strided)
    assert rekindle.script(_about)(*arguments) == _about(*arguments)


def _views(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return x.view(torch.int32), torch.view_copy(x, torch.int32), x.view(x.int().dtype), x.view(dtype=torch.int32)


def test_dtypes_in_traces() -> None:
    traced = rekindle.trace(_views, (torch.ones(3),), check_trace=False)
    assert_same(traced(torch.arange(3.0)), _views(torch.arange(3.0)))
