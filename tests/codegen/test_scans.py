"""Sums and products up to each element of a row."""

from __future__ import annotations

import pytest
import torch

from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.lowering import lower
from tests.codegen.test_reductions import check, graph_of, layouts
from tests.support.golden import GoldenTexts

SCAN = """
graph(%x : Tensor):
  %d : int = prim::Constant[value=DIM]()
  %n : NoneType = prim::Constant()
  %a : Tensor = aten::neg(%x)
  %s : Tensor = aten::KIND(%a, %d, %n)
  %r : Tensor = aten::abs(%s)
  return (%r)
"""

NORMALIZED = """
graph(%x : Tensor):
  %d : int = prim::Constant[value=-1]()
  %n : NoneType = prim::Constant()
  %s : Tensor = aten::cumsum(%x, %d, %n)
  %y : Tensor = aten::softmax(%s, %d, %n)
  %t : Tensor = aten::cumsum(%y, %d, %n)
  return (%t)
"""


@pytest.mark.parametrize("kind", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_along_a_dimension(kind: str, dim: int) -> None:
    torch.manual_seed(0)
    graph = graph_of(SCAN, KIND=kind, DIM=dim)
    for shape in ((5, 70), (70, 5), (3, 33, 20), (4, 1), (2, 20_000)):
        x = torch.rand(shape) + (0.5 if kind == "cumprod" and max(shape) < 1000 else 0.0)
        check(graph, x, tolerance=1e-6)
        check(graph, x.movedim(0, -1))
        check(graph, x.double(), tolerance=1e-13)
    check(graph, torch.randint(-3, 4, (6, 40)))
    check(graph, torch.randint(-3, 4, (40, 6)).to(torch.int8))
    check(graph, torch.randn(6, 40).bfloat16(), tolerance=2e-2)


def test_of_one_row() -> None:
    x = torch.randn(1003)
    x[200], x[500] = torch.inf, torch.nan
    check(graph_of(SCAN, KIND="cumsum", DIM=0), x, tolerance=1e-5)


def test_beside_folds(golden: GoldenTexts) -> None:
    graph = graph_of(NORMALIZED)
    check(graph, torch.randn(7, 50), tolerance=1e-5)
    golden("codegen/scans", kernel_text(lower(graph, layouts([torch.empty(7, 50)])).kernel))
