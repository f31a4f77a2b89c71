"""``hasattr`` of values that are not objects of the program's classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import pytest
import torch
from torch import Tensor

import rekindle

VECTOR = torch.tensor([1.0, -2.0, 3.0])


def of_tensors_and_containers(x: Tensor, flag: bool):  # type: ignore[no-untyped-def]
    of_values = hasattr(x, "item"), hasattr(x, "nothing"), hasattr(3, "real"), hasattr("a", "upper"), hasattr(None, "x")
    containers = hasattr([1], "append"), hasattr({}, "keys"), hasattr((1, 2), "index"), hasattr({1}, "keys")
    return of_values, containers, hasattr(x.shape, "numel"), hasattr(x.shape, "append")


def of_a_tensor_or_a_number(x: Tensor, flag: bool):  # type: ignore[no-untyped-def]
    value = 2
    if flag:
        value = x.sum()  # type: ignore[assignment]
    return value.item() if hasattr(value, "item") else value


def of_an_optional(x: Tensor, flag: bool):  # type: ignore[no-untyped-def]
    value: Optional[Tensor] = None
    if flag:
        value = x
    return hasattr(value, "item"), hasattr(value, "__class__")


def of_a_device(x: Tensor, flag: bool):  # type: ignore[no-untyped-def]
    return hasattr(x.device, "type"), getattr(x.device, "index", 7), hasattr(x.device, "nothing")


@pytest.mark.parametrize("program", [of_tensors_and_containers, of_a_tensor_or_a_number, of_an_optional, of_a_device])
@pytest.mark.parametrize("flag", [True, False])
def test_questions(program: Callable[..., Any], flag: bool) -> None:
    assert repr(rekindle.script(program)(VECTOR, flag)) == repr(program(VECTOR, flag))
