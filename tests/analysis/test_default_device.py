"""Default devices: compiled code runs outside their mode, unless its results depend on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._device import DeviceContext

import rekindle
from rekindle.analysis.default_device import is_sole_function_mode, may_read_default_device


@pytest.fixture
def intercepted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The operators that modes of default devices have intercepted: functions that return tensors."""
    found: list[object] = []
    plain = DeviceContext.__torch_function__

    def recording(self: DeviceContext, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = plain(self, function, types, args, kwargs)
        if isinstance(result, Tensor | tuple) and not isinstance(result, torch.Size):
            found.append(function)
        return result

    monkeypatch.setattr(DeviceContext, "__torch_function__", recording)
    return found


@pytest.fixture
def default_device() -> Iterator[None]:
    torch.set_default_device("cpu")
    yield
    torch.set_default_device(None)


def fused(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sigmoid() + 1


def operators(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = torch.sort(x, 1)
    return torch.cat([values, y]).flip(0), indices.cumsum(0)


def in_a_loop(x: Tensor, y: Tensor) -> Tensor:
    for _ in range(3):
        x = (x * y).tanh() + y
    return x


def with_an_assigned_number(x: Tensor, y: Tensor) -> Tensor:
    z = x + y
    z[0] = 2
    return torch.cat([z, y])


def with_factories(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x + y, torch.zeros(2, 3), torch.full((1, 3), 1.5)])


X, Y = torch.linspace(-1, 1, 12).reshape(4, 3), torch.linspace(2, 3, 12).reshape(4, 3)


@pytest.mark.parametrize("program", [fused, operators, in_a_loop, with_an_assigned_number, with_factories])
@pytest.mark.parametrize("first", ["plain", "default device"])
def test_no_operator_is_intercepted(
    program: Callable[..., Any], first: str, default_device: None, intercepted: list[object]
) -> None:
    compiled = rekindle.script(program)
    expected = program(X, Y)
    calls = 6
    if first == "plain":
        torch.set_default_device(None)
        for _ in range(calls):
            compiled(X, Y)
        torch.set_default_device("cpu")
    for _ in range(calls):
        compiled(X, Y)
    intercepted.clear()
    found = compiled(X, Y)
    assert intercepted == []
    torch.testing.assert_close(found, expected)
    assert torch._C._len_torch_function_stack() == 1


def differentiated(x: Tensor, y: Tensor) -> Tensor:
    for _ in range(3):
        x = (x * y).sigmoid() * (x - y).tanh() + (x + 1).sin() * y
    return x + y


def test_a_training_step(default_device: None, intercepted: list[object]) -> None:
    compiled = rekindle.script(differentiated)
    x = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad(differentiated(x, Y).sum(), x)
    ones = torch.ones_like(X)
    for _ in range(6):
        intercepted.clear()
        result = compiled(x, Y)
        (found,) = torch.autograd.grad(result, x, ones)
        count = len(intercepted)
        torch.testing.assert_close(found, expected)
    assert type(result.grad_fn).__name__ == "DifferentiableGraphBackward"
    assert count == 1  # autograd.grad itself


def test_programs_that_read_the_default_device() -> None:
    compiled = rekindle.script(numbers)
    for device in ["cpu", "meta", "cpu", "meta"] * 2:
        with torch.device(device):
            assert [each.device.type for each in compiled(1.5)] == [device, device, "cpu"]


def numbers(x: float) -> tuple[Tensor, Tensor, Tensor]:
    return torch.tensor(x), torch.as_tensor([x]), torch.tensor(x, device="cpu")


@rekindle.ignore
def filled(x: Tensor) -> Tensor:
    return torch.ones(2)


def test_python_functions_see_the_default_device() -> None:
    compiled = rekindle.script(lambda x: filled(x * 2))
    for device in ["cpu", "meta"] * 3:
        with torch.device(device):
            assert compiled(X).device.type == device


class Subclass(Tensor):
    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "mul" in function.__name__:
            return torch.ones(4, 3)
        return super().__torch_function__(function, types, args, kwargs)


@torch.library.custom_op("default_device::ones", mutates_args=())
def ones(x: Tensor) -> Tensor:
    return torch.ones(len(x))


def test_subclasses_and_custom_operators_do_not_see_the_default_device() -> None:
    for program, x in ((lambda x: x * x, X.as_subclass(Subclass)), (lambda x: torch.ops.default_device.ones(x), X)):
        compiled = rekindle.script(program)
        for device in ["cpu", "meta"] * 3:
            with torch.device(device):
                assert compiled(x).device.type == program(x).device.type == "cpu"


def test_the_mode_is_restored_after_an_error() -> None:
    compiled = rekindle.script(fused)
    with torch.device("cpu"):
        for _ in range(5):
            with pytest.raises(RuntimeError, match="The size of tensor a"):
                compiled(X, X[:2])
            assert torch._C._len_torch_function_stack() == 1
            assert torch.get_default_device() == torch.device("cpu")
            compiled(X, Y)
    assert torch._C._len_torch_function_stack() == 0


def test_other_modes_are_kept(intercepted: list[object]) -> None:
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found.append(function)
            return function(*args, **(kwargs or {}))

    found: list[object] = []
    compiled = rekindle.script(fused)
    for _ in range(5):
        compiled(X, Y)
    with torch.device("cpu"):
        assert is_sole_function_mode()
        with Mode():
            assert not is_sole_function_mode()
            compiled(X, Y)
    with Mode():
        assert not is_sole_function_mode()
    assert not is_sole_function_mode()
    assert torch.ops.aten.sigmoid.default in found or torch.sigmoid in found
    assert intercepted


def test_readers() -> None:
    assert may_read_default_device(rekindle.script(numbers).graph)
    assert may_read_default_device(rekindle.script(lambda x: filled(x)).graph)
    for program in (fused, operators, with_an_assigned_number, with_factories):
        assert not may_read_default_device(rekindle.script(program).graph)
