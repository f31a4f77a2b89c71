"""Normalization of images by channels and by groups of channels, with statistics that are known or their own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rekindle.codegen.fusion import FuseGraph, blockers_of
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.lowering import lower
from tests.codegen.test_reductions import check, graph_of, layouts
from tests.support.golden import GoldenTexts

BATCH = """
graph(%x : Tensor, %w : Tensor, %b : Tensor, %m : Tensor, %v : Tensor):
  %training : bool = prim::Constant[value=TRAINING]()
  %true : bool = prim::Constant[value=1]()
  %momentum : float = prim::Constant[value=0.1]()
  %eps : float = prim::Constant[value=1e-05]()
  %y : Tensor = aten::batch_norm(%x, %w, %b, %m, %v, %training, %momentum, %eps, %true)
  %z : Tensor = aten::relu(%y)
  return (%z)
"""

GROUP = """
graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %groups : int = prim::Constant[value=GROUPS]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %eps : float = prim::Constant[value=1e-05]()
  %a : Tensor = aten::add(%x, %x, %one)
  %y : Tensor = aten::group_norm(%a, %groups, %w, %b, %eps, %true)
  %z : Tensor = aten::silu(%y)
  return (%z)
"""

INSTANCE = """
graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %n : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %momentum : float = prim::Constant[value=0.1]()
  %eps : float = prim::Constant[value=1e-05]()
  %y : Tensor = aten::instance_norm(%x, %w, %b, %n, %n, %true, %momentum, %eps, %true)
  %z : Tensor = aten::relu(%y)
  return (%z)
"""

SEVERAL_BY_GROUPS = """
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %true : bool = prim::Constant[value=1]()
  %eps : float = prim::Constant[value=1e-05]()
  %y : Tensor = aten::group_norm(%x, %two, %w, %w, %eps, %true)
  %z : Tensor = aten::group_norm(%x, %three, %w, %w, %eps, %true)
  RESULTS
"""

SHAPES = ((2, 6, 5, 7), (3, 6, 40), (4, 6, 2, 3, 4))


def of_channels(count: int, channels: int) -> list[Tensor]:
    return [torch.rand(channels) + 0.5 for _ in range(count)]


def test_with_known_statistics() -> None:
    torch.manual_seed(0)
    graph = graph_of(BATCH, TRAINING=0)
    for shape in (*SHAPES, (5, 6)):
        check(graph, torch.randn(shape), *of_channels(4, 6))
    check(graph, torch.randn(2, 6, 5, 7).contiguous(memory_format=torch.channels_last), *of_channels(4, 6))
    check(graph, torch.randn(2, 6, 5).double(), *(each.double() for each in of_channels(4, 6)), tolerance=1e-14)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_by_groups(groups: int) -> None:
    torch.manual_seed(0)
    graph = graph_of(GROUP, GROUPS=groups)
    for shape in SHAPES:
        check(graph, torch.randn(shape), *of_channels(2, 6))


@pytest.mark.parametrize(
    "results",
    [
        """%l : Tensor[] = prim::ListConstruct(%y, %x)
  %c : Tensor = aten::cat(%l, %zero)
  return (%y, %c)""",
        """%r : Tensor = aten::relu(%y)
  %l : Tensor[] = prim::ListConstruct(%y, %r, %z)
  %c : Tensor = aten::cat(%l, %one)
  return (%c, %r, %z)""",
        """%a : Tensor = aten::add(%y, %z, %one)
  %b : Tensor = aten::mul(%z, %y)
  return (%a, %b)""",
        """%n : NoneType = prim::Constant()
  %s : Tensor = aten::softmax(%y, %one, %n)
  %a : Tensor = aten::add(%y, %s, %one)
  return (%s, %a)""",
    ],
    ids=["a part that is a result", "parts", "other groups", "rows across groups"],
)
def test_several_results_by_groups(results: str) -> None:
    """One nest writes them, whose loops over groups all of them share."""
    torch.manual_seed(0)
    for shape in (*SHAPES, (2, 6, 20)):
        check(graph_of(SEVERAL_BY_GROUPS, RESULTS=results), torch.randn(shape), *of_channels(1, 6))


def test_by_channels() -> None:
    torch.manual_seed(0)
    for shape in SHAPES:
        check(graph_of(INSTANCE), torch.randn(shape), *of_channels(2, 6))


def test_texts(golden: GoldenTexts) -> None:
    x, channels = torch.empty(2, 6, 5, 7), [torch.empty(6) for _ in range(4)]
    texts = []
    for title, graph, inputs in (
        ("with known statistics", graph_of(BATCH, TRAINING=0), [x, *channels]),
        ("by channels", graph_of(INSTANCE), [x, *channels[:2]]),
        ("by groups of channels", graph_of(GROUP, GROUPS=2), [x, *channels[:2]]),
    ):
        texts.append(f"# {title}\n{kernel_text(lower(graph, layouts(inputs)).kernel)}")
    golden("codegen/normalization", "\n".join(texts))


def test_what_is_left_to_pytorch() -> None:
    graph = graph_of(BATCH, TRAINING=1)
    FuseGraph().run(graph)
    assert [each.reason for each in blockers_of(graph) if each.kind == "aten::batch_norm"] == [
        "it takes the statistics of the batch"
    ]
    last = torch.randn(2, 6, 5, 7).contiguous(memory_format=torch.channels_last)
    group = FusionExecutor(graph_of(INSTANCE))
    group(last, *of_channels(2, 6))
    assert group.failures == ["a normalization of a tensor with gaps, of another memory format, or without elements"]
