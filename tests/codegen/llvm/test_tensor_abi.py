"""The probe of Tensor objects: what it finds does not depend on the modes of the thread that asks first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from rekindle.codegen.llvm import tensor_abi
from rekindle.codegen.llvm.tensor_abi import tensor_objects

MODES: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "inference": torch.inference_mode,
    "no gradients": torch.no_grad,
    "default device": lambda: torch.device("meta"),
    "fake tensors": FakeTensorMode,
    "autocast": lambda: torch.autocast("cpu"),
}


@pytest.mark.parametrize("mode", sorted(MODES))
def test_modes_of_the_caller_have_no_effect(mode: str) -> None:
    expected = tensor_objects()
    assert expected is not None
    assert expected.plain_keys != expected.inference_keys
    with MODES[mode]():
        assert tensor_objects.__wrapped__() == expected


def test_transforms_of_the_caller_have_no_effect() -> None:
    found: list[object] = []

    def probing(x: torch.Tensor) -> torch.Tensor:
        found.append(tensor_objects.__wrapped__())
        return x

    torch.func.vmap(probing)(torch.ones(2))
    torch.func.grad(lambda x: probing(x).sum())(torch.ones(2))
    assert found == [tensor_objects()] * 2


def test_a_deep_stack_of_the_caller_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(workers: int) -> None:
        raise RecursionError

    monkeypatch.setattr(tensor_abi, "ThreadPoolExecutor", refuse)
    with pytest.raises(RecursionError):
        tensor_objects.__wrapped__()
    assert tensor_objects() is not None
