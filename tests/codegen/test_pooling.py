"""Pooling in kernels: windows within an image, and over its edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import rekindle.ops
import rekindle.runtime.executor
from rekindle.codegen.fusion import KIND
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph

HEAD: Final = """
graph(%x : Tensor):
  %no : bool = prim::Constant[value=0]()
  %yes : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %kernel : int[] = prim::Constant[value=KERNEL]()
  %stride : int[] = prim::Constant[value=STRIDE]()
  %padding : int[] = prim::Constant[value=PADDING]()
  %dilation : int[] = prim::Constant[value=DILATION]()
  %a : Tensor = aten::neg(%x)
"""
MAXIMUM: Final = (
    HEAD
    + """  %p : Tensor = aten::max_pool2d(%a, %kernel, %stride, %padding, %dilation, %no)
  return (%p)
"""
)
MEAN: Final = (
    HEAD
    + """  %p : Tensor = aten::avg_pool2d(%a, %kernel, %stride, %padding, %no, %yes, %none)
  return (%p)
"""
)
LINES: Final = (
    HEAD
    + """  %p : Tensor = aten::max_pool1d(%a, %kernel, %stride, %padding, %dilation, %no)
  return (%p)
"""
)
WHOLE: Final = (
    HEAD
    + """  %p : Tensor = aten::adaptive_avg_pool2d(%a, %kernel)
  %q : Tensor = aten::tanh(%p)
  return (%q)
"""
)


def text(of: str, kernel: list[int], stride: list[int], dilation: list[int], padding: list[int] | None = None) -> str:
    for name, value in (("KERNEL", kernel), ("STRIDE", stride), ("DILATION", dilation), ("PADDING", padding or [0])):
        of = of.replace(name, str(value))
    return of.lstrip()


def check(of: str, *images: Tensor) -> FusionExecutor:
    graph = parse_graph(of)
    group = FusionExecutor(graph)
    for image in images:
        expected = callable_of(graph, "eager")(image)
        found = group(image)
        torch.testing.assert_close(found, expected, equal_nan=True)
        assert found.stride() == expected.stride()
    return group


IMAGE: Final = torch.randn(2, 3, 9, 40, generator=torch.Generator().manual_seed(0))
NOT_FINITE: Final = IMAGE.clone()
NOT_FINITE[0, 1, 2:5, 7:20:3] = torch.nan
NOT_FINITE[1, 0, 2:5, 7:20:3] = torch.inf
LAST: Final = IMAGE.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("of", [MAXIMUM, MEAN], ids=["maximum", "mean"])
@pytest.mark.parametrize(("kernel", "stride"), [([2, 2], []), ([3], [1, 2])], ids=["beside each other", "overlapping"])
def test_windows(of: str, kernel: list[int], stride: list[int]) -> None:
    dilation = [2] if of is MAXIMUM and stride else [1]
    group = check(text(of, kernel, stride, dilation), IMAGE, IMAGE[0], NOT_FINITE, LAST)
    assert group.failures == []


def test_windows_of_lines() -> None:
    assert check(text(LINES, [3], [2], [1]), IMAGE[0], IMAGE[0, 0]).failures == []


@pytest.mark.parametrize("image", [IMAGE, IMAGE[0], LAST, NOT_FINITE], ids=["images", "image", "last", "not finite"])
def test_whole_images(image: Tensor) -> None:
    assert check(text(WHOLE, [1, 1], [], [1]), image).failures == []


def test_the_text_of_windows() -> None:
    group = check(text(MAXIMUM, [2], [], [1]), IMAGE)
    assert kernel_text(group.recipes[0].kernel.kernel) == (
        "kernel(in0: f32) -> (out0: f32)\n"
        "  for 5 loops, 2 folded, across:\n"
        "    along the 2 innermost:\n"
        "      %0 = load in0[*, *, s, *, *]\n"
        "      %1 : f32 = neg(%0)\n"
        "      r0 : f32 = maximum of %1\n"
        "    at its end:\n"
        "      store out0[*, *, 1, 0, 0] = r0\n"
    )


CEILING: Final = MAXIMUM.replace("%no)", "%yes)")
MEAN_OF_ELEMENTS: Final = MEAN.replace("%no, %yes, %none", "%no, %no, %none")
MEAN_CEILING: Final = MEAN.replace("%no, %yes, %none", "%yes, %yes, %none")
HALVED: Final = MEAN.replace("%none)", "%two)").replace(
    "  %none", "  %two : int = prim::Constant[value=2]()\n  %none", 1
)


@pytest.mark.parametrize(
    ("of", "kernel", "stride", "dilation", "padding"),
    [
        (MAXIMUM, [3], [2], [1], [1]),
        (MAXIMUM, [3, 2], [], [1], [1, 0]),
        (MAXIMUM, [3], [2, 1], [2, 1], [1]),
        (CEILING, [2], [], [1], [0]),
        (CEILING, [3, 5], [2, 4], [1], [1, 2]),
        (MEAN, [3], [1, 2], [1], [1]),
        (MEAN_CEILING, [3, 4], [2, 3], [1], [1, 2]),
    ],
    ids=["as in ResNet", "above and below", "dilated", "beyond", "all", "means", "means within"],
)
def test_windows_over_the_edge(
    of: str, kernel: list[int], stride: list[int], dilation: list[int], padding: list[int]
) -> None:
    """Whatever numbers the image has: what is beyond its edge never counts, or counts as zero in a mean."""
    group = check(text(of, kernel, stride, dilation, padding), IMAGE, -IMAGE.abs() - 1, IMAGE[0], NOT_FINITE, LAST)
    assert group.failures == []


def test_lines_over_the_edge() -> None:
    assert check(text(LINES, [3], [2], [1], [1]), IMAGE[0], IMAGE[0, 0]).failures == []


def test_the_text_of_windows_over_the_edge() -> None:
    group = check(text(LINES, [3], [2], [1], [1]), IMAGE[0, 0])
    assert kernel_text(group.recipes[0].kernel.kernel) == (
        "kernel(in0: f32) -> (out0: f32) with (temp0: f32)\n"
        "  for 1 loop:\n"
        "    store temp0[s] = f32(-inf)\n"
        "  for 2 loops:\n"
        "    %0 = load in0[*, 1]\n"
        "    %1 : f32 = neg(%0)\n"
        "    store temp0[*, 1] = %1\n"
        "  for 3 loops, 1 folded, across:\n"
        "    along the innermost:\n"
        "      %0 = load temp0[*, s, *]\n"
        "      r0 : f32 = maximum of %0\n"
        "    at its end:\n"
        "      store out0[*, 1, 0] = r0\n"
    )


@pytest.mark.parametrize(
    ("of", "stride", "reason"),
    [
        (MEAN_OF_ELEMENTS, [1], "means over the edge that count fewer elements than others"),
        (MEAN_CEILING, [4], "means over the edge that count fewer elements than others"),
        (HALVED, [1], "means that are divided by another number"),
    ],
    ids=["of elements", "cut off", "divided"],
)
def test_means_that_are_left_to_pytorch(of: str, stride: list[int], reason: str) -> None:
    assert check(text(of, [3], stride, [1], [1]), IMAGE).failures == [reason]


def test_padding_that_is_too_wide() -> None:
    graph = parse_graph(text(MAXIMUM, [2], [], [1], [2]))
    with pytest.raises(RuntimeError, match="pad should be at most half of effective kernel size"):
        FusionExecutor(graph)(IMAGE)


def max_pooled(x: Tensor) -> Tensor:
    return functional.max_pool2d(x, 2) * 2


def averaged(x: Tensor) -> Tensor:
    return functional.avg_pool2d(x, 2) * 2


@pytest.mark.parametrize("function", [max_pooled, averaged])
def test_the_default_stride_of_functions_is_fused(function: Callable[[Tensor], Tensor]) -> None:
    compiled = rekindle.script(function)
    x = torch.randn(2, 3, 8, 6)
    with torch.no_grad():
        (group,) = compiled.graph_for(x).find_nodes("prim::FusionGroup")
        assert len(list(compiled.graph_for(x).nodes)) == 1
        for _ in range(3):
            torch.testing.assert_close(compiled(x), function(x))
    assert [node.kind for node in group.get_graph("Subgraph").nodes][-1] == "aten::mul"


def pooled_line(x: Tensor) -> Tensor:
    return functional.max_pool1d(x, 2)


def pooled_line_of_exp(x: Tensor) -> Tensor:
    return functional.max_pool1d(x.exp(), 2)


@pytest.mark.parametrize(("function", "kind"), [(pooled_line, "aten::max_pool1d"), (pooled_line_of_exp, KIND)])
def test_a_maximum_of_lines_alone_is_left_to_pytorch(function: Callable[[Tensor], Tensor], kind: str) -> None:
    """PyTorch has vectorized code for it; for images it has none."""
    compiled = rekindle.script(function)
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        assert kind in [node.kind for node in compiled.graph_for(x).nodes]
        for _ in range(3):
            torch.testing.assert_close(compiled(x), function(x))
