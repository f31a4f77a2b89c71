"""Traces hold the nodes that torch.jit's hold, in the same order, but for what the normal form lists."""

from __future__ import annotations

import difflib
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from tests.support import deprecation
from tests.tracing.normal_form import normal_form
from tests.tracing.programs import PROGRAMS, Traced

_CONVOLUTION = "torch.jit records the aten::_convolution that convolutions are made of; here they stay what they are"

KNOWN_DIFFERENCES: dict[str, str] = {
    "convolution": _CONVOLUTION,
    "Conv1d": _CONVOLUTION,
    "Conv2d": _CONVOLUTION,
    "ConvTranspose2d": _CONVOLUTION,
    "convolutional net": _CONVOLUTION,
    "Block": _CONVOLUTION,
    "to_dtypes": "x.type_as(x) gives x itself in the example, and torch.jit takes x to be the result from there on",
    "LSTMCell": "torch.jit records what aten::lstm_cell is made of",
}
"""Programs whose traces differ from those of torch.jit; the list is strict."""


def traced_by_torch(function: Any, inputs: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings():
        deprecation.silence()
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        return torch.jit.trace(function, inputs, check_trace=False)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_nodes_are_those_of_torch_jit(program: Traced) -> None:
    theirs = normal_form(traced_by_torch(program.make(), program.inputs()).inlined_graph)
    traced = rekindle.trace(program.make(), program.inputs(), check_trace=False)
    ours = normal_form(traced.inlined_graph, program.inputs())
    difference = "\n".join(difflib.unified_diff(theirs, ours, "torch.jit", "rekindle", lineterm="", n=3))
    if program.name in KNOWN_DIFFERENCES:
        assert difference, f"{program.name} has torch.jit's nodes now: take it off the list of known differences"
    else:
        assert not difference, difference


def test_list_names_programs() -> None:
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names)
    assert set(KNOWN_DIFFERENCES) <= set(names)


def test_page_counts_them() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "tracing.md").read_text(encoding="utf-8").split())
    assert f"them for {len(PROGRAMS)} programs and modules" in page
    assert f"{len(PROGRAMS) - len(KNOWN_DIFFERENCES)} of the {len(PROGRAMS)} are the same." in page


def test_differences_are_few() -> None:
    assert len(PROGRAMS) >= 60
    assert len(KNOWN_DIFFERENCES) <= 0.1 * len(PROGRAMS)


def test_normal_form() -> None:
    text = """graph(%self : __torch__.torch.nn.modules.linear.___torch_mangle_3.Linear, %x : Float(2, 3)):
  %2 : Tensor = prim::GetAttr[name="weight"](%self)
  %3 : int = prim::Constant[value=0]()
  %4 : int = aten::size(%x, %3)
  %5 : Tensor = prim::NumToTensor(%4)
  %6 : Long() = prim::Constant[value={2}]()
  %7 : Tensor = aten::floor_divide(%5, %6)
  %8 : int = aten::Int(%7)
  %9 : int[] = prim::ListConstruct(%8, %3)
  %10 : Tensor = aten::view(%2, %9)
  return (%10)
"""
    assert normal_form(text) == [
        "  %1 = aten::size(%0, 0)",
        "  %2 = floordiv of sizes(%1, 2)",
        "  %3 = aten::view(self.weight, [%2, 0])",
        "  return (%3)",
    ]
