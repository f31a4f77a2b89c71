"""Kernels that fold rows: as accurate as PyTorch, whatever the length of a row."""

from __future__ import annotations

from typing import Final

import pytest
import torch
from torch import Tensor

import rekindle.ops
import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.support.golden import GoldenTexts

SOFTMAX = """
graph(%x : Tensor):
  %d : int = prim::Constant[value=-1]()
  %n : NoneType = prim::Constant()
  %y : Tensor = aten::NAME(%x, %d, %n)
  return (%y)
"""

FOLD = """
graph(%x : Tensor):
  %d : int = prim::Constant[value=-1]()
  %k : bool = prim::Constant[value=KEEP]()
  %n : NoneType = prim::Constant()
  %l : int[] = prim::ListConstruct(%d)
  %y : Tensor = aten::NAME(%x, %l, ARGUMENTS)
  return (%y)
"""

LAYER_NORM = """
graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %s : int = prim::Constant[value=SIZE]()
  %t : bool = prim::Constant[value=1]()
  %e : float = prim::Constant[value=1e-05]()
  %l : int[] = prim::ListConstruct(%s)
  %y : Tensor = aten::layer_norm(%x, %l, %w, %b, %e, %t)
  return (%y)
"""

MIXED = """
graph(%x : Tensor, %y : Tensor):
  %d : int = prim::Constant[value=-1]()
  %k : bool = prim::Constant[value=1]()
  %n : NoneType = prim::Constant()
  %l : int[] = prim::ListConstruct(%d)
  %a : Tensor = aten::mul(%x, %y)
  %s : Tensor = aten::softmax(%a, %d, %n)
  %m : Tensor = aten::mean(%s, %l, %k, %n)
  %c : Tensor = aten::div(%s, %m)
  %r : Tensor = aten::relu(%c)
  return (%r, %m)
"""

FOLDS: Final = {
    "sum": "%k, %n",
    "mean": "%k, %n",
    "amax": "%k",
    "amin": "%k",
    "var": "%n, %k",
    "std": "%n, %k",
}

SHAPES = ((4, 37), (3, 5, 128), (17,), (1, 300), (0, 5), (2, 1, 2, 70))


def graph_of(name: str, size: int) -> Graph:
    """The operator on rows of ``size`` elements."""
    text = FOLD.replace("KEEP", "0") if name in FOLDS else FOLD.replace("KEEP", "1")
    if name.removesuffix("_keepdim") in FOLDS:
        text = text.replace("ARGUMENTS", FOLDS[name.removesuffix("_keepdim")])
    elif name == "layer_norm":
        text = LAYER_NORM.replace("SIZE", str(size))
    else:
        text = SOFTMAX
    return parse_graph(text.replace("NAME", name.removesuffix("_keepdim")).lstrip())


def inputs_of(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    torch.manual_seed(0)
    others = 2 if name == "layer_norm" else 0
    return [(torch.randn(shape) * 3).to(dtype), *(torch.randn(shape[-1]).to(dtype) for _ in range(others))]


NAMES = ("softmax", "log_softmax", "layer_norm", *FOLDS, *(f"{name}_keepdim" for name in FOLDS))
TOLERANCE: Final = {torch.float32: 3e-6, torch.float64: 1e-14, torch.bfloat16: 1e-2, torch.float16: 2e-3}


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")  # of rows of one number
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", NAMES)
def test_as_eager(name: str, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        inputs = inputs_of(name, shape, dtype)
        graph = graph_of(name, shape[-1])
        group = FusionExecutor(graph)
        found, expected = group(*inputs), callable_of(graph, "eager")(*inputs)
        assert group.failures == []
        assert found.stride() == expected.stride()
        terms = shape[-1] if name.startswith("sum") else 1
        torch.testing.assert_close(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] / 4 * terms)


@pytest.mark.parametrize("name", NAMES)
def test_no_worse_than_eager(name: str) -> None:
    """Beside the same in double precision, on long rows and on rows far from zero."""
    for offset, length in ((0.0, 100_000), (1000.0, 4096)):
        inputs = inputs_of(name, (2, length), torch.float32)
        inputs[0] += offset
        graph = graph_of(name, length)
        exact = callable_of(graph, "exact")(*(each.double() for each in inputs))
        ours = (FusionExecutor(graph)(*inputs).double() - exact).abs().max().item()
        theirs = (callable_of(graph, "eager")(*inputs).double() - exact).abs().max().item()
        assert ours <= 2 * theirs + 4 * 2**-24 * exact.abs().max().item()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "amax", "sum", "mean"])
def test_nan_and_infinities(name: str) -> None:
    x = torch.randn(5, 40)
    x[0, 3], x[1], x[2, 5], x[3, 39] = torch.nan, -torch.inf, torch.inf, -torch.inf
    graph = graph_of(name, 40)
    torch.testing.assert_close(FusionExecutor(graph)(x), callable_of(graph, "eager")(x), equal_nan=True)


@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool])
def test_extremes_of_integers(name: str, dtype: torch.dtype) -> None:
    x = torch.randint(-100, 100, (6, 77)).to(dtype)
    graph = graph_of(name, 77)
    group = FusionExecutor(graph)
    assert torch.equal(group(x), callable_of(graph, "eager")(x))
    assert group.failures == []


def test_with_operators_around_them(golden: GoldenTexts) -> None:
    graph = parse_graph(MIXED.lstrip())
    group = FusionExecutor(graph)
    x, y = torch.randn(6, 50), torch.randn(50)
    for found, expected in zip(group(x, y), callable_of(graph, "eager")(x, y), strict=True):
        torch.testing.assert_close(found, expected)
    (launch,) = group.launches.values()
    assert launch is not None
    golden("codegen/rows", kernel_text(launch.kernel.kernel))


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([torch.randn(3, 0)], "empty rows"),
        ([torch.randint(3, (2, 2))], "rows of integers"),
        ([torch.randn(())], "rows of a tensor without dimensions"),
    ],
)
def test_refusals(inputs: list[Tensor], reason: str) -> None:
    graph = graph_of("softmax", 4)
    group = FusionExecutor(graph)
    if inputs[0].is_floating_point():
        assert torch.equal(group(*inputs), callable_of(graph, "eager")(*inputs))
    else:
        with pytest.raises(RuntimeError):
            group(*inputs)
    assert group.failures == [reason]


def test_a_variance_that_pytorch_warns_of() -> None:
    group = FusionExecutor(graph_of("var", 1))
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert group(torch.randn(3, 1)).isnan().all()
    assert group.failures == ["a variance without degrees of freedom, of which PyTorch warns"]
