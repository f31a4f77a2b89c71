"""Whether two results of a program are the same: numbers, strings, tensors, and what is made of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch


def assert_same(actual: Any, expected: Any, where: str = "result", *, exact_dtype: bool = True) -> None:
    """The same structure, types and values; floats within ``torch.testing``'s tolerances, and NaN equals NaN."""
    if isinstance(expected, torch.Tensor):
        _assert_same_tensor(actual, expected, where, exact_dtype)
    elif isinstance(expected, (list, tuple)):
        kind = list if isinstance(expected, list) else tuple
        assert isinstance(actual, kind), f"{where} is a {type(actual).__name__}, not a {type(expected).__name__}"
        assert len(actual) == len(expected), f"{where} has {len(actual)} elements, not {len(expected)}"
        for index, (a, e) in enumerate(zip(actual, expected, strict=True)):
            assert_same(a, e, f"{where}[{index}]", exact_dtype=exact_dtype)
    elif isinstance(expected, dict):
        assert isinstance(actual, dict), f"{where} is a {type(actual).__name__}, not a dict"
        assert list(actual) == list(expected), f"{where} has the keys {list(actual)}, not {list(expected)}"
        for key in expected:
            assert_same(actual[key], expected[key], f"{where}[{key!r}]", exact_dtype=exact_dtype)
    elif isinstance(expected, (float, complex)) and not isinstance(expected, bool):
        assert type(actual) is type(expected), f"{where} is a {type(actual).__name__}, not a {type(expected).__name__}"
        if actual != expected:
            torch.testing.assert_close(actual, expected, equal_nan=True, msg=lambda text: f"{where}: {text}")
    elif dataclasses.is_dataclass(expected):
        assert_same(vars(actual), vars(expected), where, exact_dtype=exact_dtype)
    elif type(expected).__eq__ is object.__eq__ and hasattr(expected, "__dict__"):
        assert type(actual) is type(expected), f"{where} is a {type(actual).__name__}, not a {type(expected).__name__}"
        assert_same(vars(actual), vars(expected), where, exact_dtype=exact_dtype)
    else:
        assert type(actual) is type(expected), f"{where} is a {type(actual).__name__}, not a {type(expected).__name__}"
        assert actual == expected, f"{where} is {actual!r}, not {expected!r}"


def _assert_same_tensor(actual: Any, expected: torch.Tensor, where: str, exact_dtype: bool) -> None:
    assert isinstance(actual, torch.Tensor), f"{where} is a {type(actual).__name__}, not a Tensor"
    if _is_equal(actual, expected):
        return
    torch.testing.assert_close(
        actual,
        expected,
        equal_nan=True,
        check_dtype=exact_dtype,
        check_stride=False,
        msg=lambda text: f"{where}: {text}",
    )


_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


def _is_equal(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors are plainly equal, which ``torch.testing`` takes fifty times as long to say. False does not
    mean that they differ."""
    return (
        type(actual) in _PLAIN
        and type(expected) in _PLAIN
        and actual.dtype is expected.dtype
        and actual.layout is expected.layout is torch.strided
        and actual.device == expected.device
        and not expected.is_meta
        and expected.dtype is not torch.complex32  # which has no kernel for it
        and torch.equal(actual, expected)
    )
