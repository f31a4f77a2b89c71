"""Folding along any dimensions: the answers of PyTorch, whichever way a tensor lies in memory and however many
threads share the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
import torch
from torch import Tensor

import rekindle.ops
import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.layout import Layout
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.lowering import lower
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.codegen.comparison import units_apart
from tests.support.golden import GoldenTexts

CHAIN = """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %k : bool = prim::Constant[value=KEEP]()
  %n : NoneType = prim::Constant()
  %d : int[] = prim::Constant[value=DIMS]()
  %a : Tensor = aten::sub(%x, %y, %one)
  %b : Tensor = aten::mul(%a, %a)
  %s : Tensor = aten::sum(%b, %d, %k, %n)
  %r : Tensor = aten::sqrt(%s)
  return (%r)
"""

CENTRED = """
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %k : bool = prim::Constant[value=1]()
  %n : NoneType = prim::Constant()
  %d : int[] = prim::Constant[value=DIMS]()
  %m : Tensor = aten::mean(%x, %d, %k, %n)
  %c : Tensor = aten::sub(%x, %m, %one)
  return (%c)
"""

LOSS = """
graph(%x : Tensor):
  %d : int = prim::Constant[value=1]()
  %n : NoneType = prim::Constant()
  %p : Tensor = aten::log_softmax(%x, %d, %n)
  %m : Tensor = aten::mean(%p, %n)
  %l : Tensor = aten::neg(%m)
  return (%l)
"""

MEAN = """
graph(%x : Tensor):
  %k : bool = prim::Constant[value=0]()
  %n : NoneType = prim::Constant()
  %d : int[] = prim::Constant[value=[0]]()
  %s : Tensor = aten::mean(%x, %d, %k, %n)
  return (%s)
"""

WHERE = """
graph(%x : Tensor):
  %d : int = prim::Constant[value=DIM]()
  %k : bool = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %v : Tensor, %i : Tensor = aten::max(%a, %d, %k)
  return (%v, %i)
"""


def graph_of(text: str, **words: object) -> Graph:
    for word, value in words.items():
        text = text.replace(word, str(value))
    return parse_graph(text.lstrip())


def layouts(inputs: Sequence[Tensor]) -> list[Layout | type]:
    return [Layout(tuple(each.shape), each.stride(), each.dtype) for each in inputs]


def check(graph: Graph, *inputs: Tensor, tolerance: float = 2e-6) -> None:
    """Fails unless a kernel gives what the operators give."""
    group = FusionExecutor(graph)
    found: Any = group(*inputs)
    expected: Any = callable_of(graph, "eager")(*inputs)
    assert group.failures == []
    pairs = [(found, expected)] if isinstance(expected, Tensor) else zip(found, expected, strict=True)
    for mine, theirs in pairs:
        assert mine.stride() == theirs.stride()
        torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)


ORDERS: Final = ((0, 1, 2), (2, 0, 1), (1, 2, 0))


@pytest.mark.parametrize("dims", [[0], [1], [0, 1], [0, 2], [1, 2], [-3], []])
def test_dimensions(dims: list[int]) -> None:
    torch.manual_seed(0)
    for keep in (0, 1):
        graph = graph_of(CHAIN, DIMS=dims or "annotate(List[int], [])", KEEP=keep)
        for order in ORDERS:
            x = torch.randn(7, 20, 33).permute(order)
            check(graph, x, torch.randn(x.shape))
            check(graph, x, torch.randn(x.shape[-1]))
    if dims == [0]:
        check(graph, torch.randn(7, 0, 33), torch.randn(1))


@pytest.mark.parametrize("dims", [[0], [1], [0, 2], [0, 1, 2]])
def test_what_needs_the_result_along_the_row(dims: list[int]) -> None:
    graph = graph_of(CENTRED, DIMS=dims)
    for order in ORDERS:
        check(graph, torch.randn(5, 20, 18).permute(order).contiguous())


def test_folding_what_was_folded_along_other_dimensions() -> None:
    graph = graph_of(LOSS)
    for shape in ((6, 10), (3, 10, 17), (64, 1000)):
        check(graph, torch.randn(shape))


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8, torch.bool])
def test_the_first_of_the_largest(dim: int, dtype: torch.dtype) -> None:
    graph = graph_of(WHERE.replace("aten::neg", "aten::logical_not" if dtype is torch.bool else "aten::neg"), DIM=dim)
    torch.manual_seed(0)
    for shape in ((3, 50), (40, 3), (5, 16, 20)):
        check(graph, torch.randint(-4, 4, shape).to(dtype))
    if dtype.is_floating_point:
        x = torch.full((40, 40), torch.inf).to(dtype)
        x[5, 7] = x[30, 7] = x[5, 30] = torch.nan
        check(graph, x)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_one_row_for_several_threads(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(0)
        x = torch.randn(1003, 1001)
        everything = "annotate(List[int], [])"
        for each in (x, x.t(), x[:, :900]):
            check(graph_of(CHAIN, DIMS=everything, KEEP=0), each, torch.randn(each.shape[1]), tolerance=1e-5)
            check(graph_of(CENTRED, DIMS=[0, 1]), each)
        check(graph_of(WHERE, DIM=0), torch.randint(0, 1000, (300_001,)))
        check(graph_of(WHERE, DIM=0), torch.zeros(300_001))
    finally:
        torch.set_num_threads(before)


def test_long_columns_are_summed_up_in_doubles() -> None:
    x = torch.rand(50_000, 16) + 1000
    graph = graph_of(MEAN)
    assert units_apart(FusionExecutor(graph)(x), x.double().mean(0).float()) <= 1


DEVIATION = """
graph(%x : Tensor):
  %k : bool = prim::Constant[value=0]()
  %u : bool = prim::Constant[value=1]()
  %d : int[] = prim::Constant[value=[1]]()
  %y : Tensor = aten::abs(%x)
  %s : Tensor = aten::NAME(%y, %d, %u, %k)
  return (%s)
"""


@pytest.mark.parametrize("name", ["std", "var"])
@pytest.mark.parametrize("low", [1.0, 1e6, 1e19])
@pytest.mark.parametrize("units", [1, 10, 1000])
def test_deviations_of_what_hardly_varies(name: str, low: float, units: int) -> None:
    """Nothing cancels, and a deviation is finite where its square is not."""
    generator = torch.Generator().manual_seed(0)
    steps = torch.randint(0, units + 1, (3, 100), generator=generator)
    x = low * (1 + steps * torch.finfo(torch.float32).eps)
    x[2] = torch.linspace(0, 3e38 if name == "std" else 1e19, 100)
    graph = graph_of(DEVIATION, NAME=name)
    group = FusionExecutor(graph)
    found: Any = group(x)
    assert group.failures == []
    assert found.isfinite().all()
    expected = getattr(x.double(), name)(dim=1).float()
    assert units_apart(found, expected) <= 1


def test_texts(golden: GoldenTexts) -> None:
    x = torch.empty(4, 6, 8)
    cases: list[tuple[str, Graph, list[Tensor]]] = [
        ("along the last dimension", graph_of(CHAIN, DIMS=[2], KEEP=0), [x, x]),
        ("along the first: each lane for itself", graph_of(CHAIN, DIMS=[0], KEEP=0), [x, x]),
        ("along the first and the last", graph_of(CHAIN, DIMS=[0, 2], KEEP=1), [x, x]),
        ("everything", graph_of(CHAIN, DIMS=[0, 1, 2], KEEP=0), [x, x]),
        ("short rows, many of them", graph_of(CHAIN, DIMS=[1], KEEP=0), [torch.empty(64, 3), torch.empty(64, 3)]),
        ("what needs the result along the row", graph_of(CENTRED, DIMS=[1]), [x]),
        ("values and places", graph_of(WHERE, DIM=2), [x]),
        ("reductions along other dimensions use intermediate buffers", graph_of(LOSS), [x]),
    ]
    texts = []
    for title, graph, inputs in cases:
        lowered = lower(graph, layouts(inputs))
        numbers = " ".join(map(str, lowered.parameters))
        texts.append(f"# {title}\n{kernel_text(lowered.kernel)}# called with {numbers}\n")
    golden("codegen/reductions", "\n".join(texts))
