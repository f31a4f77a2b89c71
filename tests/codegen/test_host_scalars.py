"""Numbers of the CPU in groups on a GPU, whose part the device ``meta`` plays."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rekindle.codegen import host_scalars
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


def test_numbers_move_to_the_device_of_the_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_scalars, "_COPIES", {})
    inputs = [_far(3), _number(2.5), 7]
    found = on_one_device(_graph(SCALED), inputs)
    assert found is not None
    assert [each.device.type for each in found[:2]] == ["meta", "meta"]
    assert (found[1].dtype, found[1].shape, found[2]) == (torch.float32, (), 7)
    again = on_one_device(_graph(SCALED), [_far(3), _number(2.5), 7])
    assert again is not None
    assert again[1] is found[1], "equal numbers share a copy"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_number(0.0), _number(-0.0)),
        (_number(1.0), _number(1.0, torch.float64)),
        (_number(1, torch.int64), _number(1, torch.bool)),
    ],
)
def test_different_numbers_have_copies_of_their_own(
    monkeypatch: pytest.MonkeyPatch, first: Tensor, second: Tensor
) -> None:
    monkeypatch.setattr(host_scalars, "_COPIES", {})
    for each in (first, second):
        on_one_device(_graph(SCALED), [_far(3), each, 1])
    assert len(host_scalars._COPIES) == 2


def test_copies_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_scalars, "_COPIES", {})
    monkeypatch.setattr(host_scalars, "_MAX_COPIES", 5)
    for value in range(20):
        on_one_device(_graph(SCALED), [_far(3), _number(float(value)), 1])
    assert len(host_scalars._COPIES) <= 5


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
