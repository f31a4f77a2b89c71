"""Numbers of the CPU in groups on a GPU, whose part the device ``meta`` plays."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rekindle.codegen import fusion_executor, host_scalars
from rekindle.codegen.fusion_executor import INTERCEPTED, RECORDED, SEVERAL_DEVICES, FusionExecutor
from rekindle.codegen.host_scalars import on_one_device
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ops import tensor as tensor  # registers the operators that the graphs call

SCALED = """
graph(%x : Tensor, %by : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %by)
  %b : Tensor = aten::add(%a, %by, %n)
  return (%b)
"""
OF_THE_CPU = """
graph(%x : Tensor, %by : Tensor, %n : int):
  %a : Tensor = aten::mul(%by, %n)
  %b : Tensor = aten::mul(%x, %a)
  return (%a, %b)
"""
NOT_ELEMENTWISE = """
graph(%x : Tensor, %by : Tensor, %n : int):
  %list : Tensor[] = prim::ListConstruct(%x, %by)
  %a : Tensor = aten::stack(%list, %n)
  %b : Tensor = aten::linear(%x, %x, %by)
  return (%a, %b)
"""


def _graph(text: str) -> Graph:
    return parse_graph(text.lstrip())


def _far(*sizes: int) -> Tensor:
    return torch.empty(sizes, device="meta")


def _number(value: float | int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(value, dtype=dtype)


def test_numbers_move_to_the_device_of_the_tensors() -> None:
    found = on_one_device(_graph(SCALED), [_far(3), _number(2.5), 7])
    assert found is not None
    assert [each.device.type for each in found[:2]] == ["meta", "meta"]
    assert (found[1].dtype, found[1].shape, found[2]) == (torch.float32, (), 7)


@pytest.mark.parametrize("value", [0.0, -0.0, 2.5, float("nan"), float("-inf"), 1e-40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_numbers_keep_their_bits(value: float, dtype: torch.dtype) -> None:
    number = _number(value, dtype)
    found = host_scalars._copy(number, torch.device("cpu"))
    assert found.dtype == dtype
    assert found.double().view(torch.int64).item() == number.double().view(torch.int64).item()


def _key(*inputs: object) -> object:
    return FusionExecutor._key(inputs)


def test_what_matters_more_than_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number whose gradient is recorded, or that a transform has to see, stays where it is."""
    monkeypatch.setattr(fusion_executor, "DEVICE_TYPES", ("cpu", "meta"))
    monkeypatch.setattr(fusion_executor, "_is_intercepted", lambda: False)
    far, number = _far(3), _number(2.0)
    assert _key(far, number) == SEVERAL_DEVICES
    assert _key(far, _number(2.0).requires_grad_()) == RECORDED
    assert _key(_number(2.0), far.clone().requires_grad_()) == RECORDED
    assert _key(far, torch.view_as_complex(torch.ones(2)).conj()) == "an input is negated or conjugated lazily"
    monkeypatch.setattr(fusion_executor, "_is_intercepted", lambda: True)
    assert _key(far, number) == INTERCEPTED


@pytest.mark.parametrize("text", [OF_THE_CPU, NOT_ELEMENTWISE], ids=["of the CPU", "not elementwise"])
def test_what_the_operators_would_do_otherwise_stays(text: str) -> None:
    assert on_one_device(_graph(text), [_far(3), _number(2.5), 0]) is None


@pytest.mark.parametrize(
    "inputs",
    [
        [_number(1.0), _number(2.0), 1],
        [torch.ones(3), _number(2.0), 1],
        [torch.ones(3), _far(), 1],
        [_far(3), torch.ones(1), 1],
    ],
    ids=["numbers", "on the CPU", "tensors on both", "a tensor with a dimension"],
)
def test_other_inputs_stay(inputs: list[object]) -> None:
    assert on_one_device(_graph(SCALED), inputs) is None
