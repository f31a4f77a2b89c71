"""Concatenations, by kernels that write each part to its place."""

from __future__ import annotations

import torch

from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.lowering import lower
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.codegen.test_reductions import check, graph_of, layouts
from tests.support.golden import GoldenTexts

JOINED = """
graph(%x : Tensor, %y : Tensor, %z : Tensor):
  %d : int = prim::Constant[value=DIM]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::mul(%y, %y)
  %l : Tensor[] = prim::ListConstruct(%a, %b, %z)
  %c : Tensor = aten::KIND(%l, %d)
  return (%c)
"""

USED = """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %five : int = prim::Constant[value=5]()
  %n : NoneType = prim::Constant()
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %c : Tensor = aten::cat(%l, %one)
  %d : Tensor = aten::tanh(%c)
  %e : Tensor = aten::slice(%c, %one, %one, %two, %one)
  %f : Tensor = aten::neg(%e)
  %g : Tensor = aten::softmax(%c, %one, %n)
  return (%d, %f, %g)
"""

TWICE = """
graph(%x : Tensor, %y : Tensor, %z : Tensor):
  %d : int = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%a, %y)
  %b : Tensor = aten::cat(%l, %d)
  %m : Tensor[] = prim::ListConstruct(%b, %b, %z)
  %c : Tensor = aten::cat(%m, %d)
  return (%c)
"""

GRADIENTS = """
graph(%x : Tensor, %y : Tensor):
  %size : int[] = prim::Constant[value=SIZE]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::_grad_sum_to_size(%a, %size)
  return (%b)
"""


def test_parts_are_written_to_their_places(golden: GoldenTexts) -> None:
    torch.manual_seed(0)
    for dim, kind in ((0, "cat"), (1, "cat"), (-1, "cat"), (0, "stack"), (2, "stack")):
        check(graph_of(JOINED, DIM=dim, KIND=kind), *torch.randn(3, 4, 5))
    parts = [torch.randn(2, size, 7) for size in (3, 0, 20)]
    check(graph_of(JOINED, DIM=1, KIND="cat"), *parts)
    check(graph_of(JOINED, DIM=0, KIND="cat"), *(part.movedim(1, 0) for part in parts))
    check(graph_of(JOINED, DIM=0, KIND="cat"), torch.randn(5), torch.arange(3), torch.tensor([]))
    images = [torch.randn(2, size, 4, 5).contiguous(memory_format=torch.channels_last) for size in (3, 4, 2)]
    check(graph_of(JOINED, DIM=1, KIND="cat"), *images)
    check(graph_of(JOINED, DIM=1, KIND="cat"), *(image[:, 1:] for image in images))
    check(graph_of(JOINED, DIM=2, KIND="cat"), *(image[:, :2, 1:3] for image in images))
    check(graph_of(JOINED, DIM=1, KIND="cat"), *(image.contiguous()[:, 1:] for image in images))
    check(graph_of(JOINED, DIM=1, KIND="cat"), *(image.transpose(2, 3) for image in images))
    graph = graph_of(JOINED, DIM=1, KIND="cat")
    lowered = lower(graph, layouts([torch.empty(4, size) for size in (1, 2, 3)]))
    golden("codegen/joins", kernel_text(lowered.kernel))


def test_parts_are_rounded_to_the_dtypes_of_all_results() -> None:
    """The integers to half precision or float32, before the second concatenation converts them."""
    for first, wider in ((4090, torch.float16), (2**24, torch.float32)):
        last = torch.randn(3, dtype=torch.float64)
        check(parse_graph(TWICE.lstrip()), torch.arange(first, first + 30), torch.randn(4, dtype=wider), last)


def test_what_is_joined_is_used() -> None:
    check(parse_graph(USED.lstrip()), torch.randn(3, 2), torch.randn(3, 20))


def test_sums_to_a_size() -> None:
    x, y = torch.randn(4, 5, 6), torch.randn(4, 5, 6)
    for size in ([6], [5, 6], [4, 1, 6], [1, 5, 1]):
        check(graph_of(GRADIENTS, SIZE=size), x, y)
    for size, reason in (
        ([4, 5, 6], "a sum over what a size lacks and what it has once"),
        ([5, 1], "a sum over what a size lacks and what it has once"),
    ):
        group = FusionExecutor(graph_of(GRADIENTS, SIZE=size))
        torch.testing.assert_close(group(x, y), torch.ops.aten._grad_sum_to_size(x * y, size))
        assert group.failures == [reason]


def test_a_list_that_others_see_is_not_joined_by_a_kernel() -> None:
    text = JOINED.replace("return (%c)", "return (%c, %l)").replace("DIM", "0").replace("KIND", "cat")
    graph = parse_graph(text.lstrip())
    FuseGraph().run(graph)
    assert not graph.find_nodes("prim::FusionGroup")
    found, parts = callable_of(graph, "f")(*torch.randn(3, 4))
    assert torch.equal(found, torch.cat(parts))
