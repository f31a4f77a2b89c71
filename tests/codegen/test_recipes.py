"""Kernels that serve all sizes which are alike."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from rekindle.codegen import compiled_kernels
from rekindle.codegen.compiled_kernels import guarded_kernel
from rekindle.codegen.fusion_executor import MAX_KERNELS, FusionExecutor
from rekindle.codegen.layout import Layout
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.lowering import lower
from rekindle.ir.text.parser import parse_graph
from rekindle.passes.simplification.subgraph_sharing import computation_key
from tests.codegen.test_fusion_executor import chain, expected
from tests.codegen.test_loops import CHUNKS
from tests.codegen.test_random_graphs import Program, programs
from tests.codegen.test_rows import MIXED
from tests.support.shares import portion

SLICES = """
graph(%x : Tensor):
  %dim : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %last : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::slice(%x, %dim, %one, %none, %two)
  %b : Tensor = aten::slice(%x, %dim, %none, %last, %two)
  %c : Tensor = aten::sub(%a, %b, %one)
  %d : Tensor = aten::abs(%c)
  return (%d)
"""


def layouts(*shapes: tuple[int, ...]) -> list[Layout]:
    return [Layout(shape, torch.empty(shape).stride(), torch.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("text", "made_for", "serves", "serves_not"),
    [
        (CHUNKS, [(4, 6), (6,)], [[(2, 8), (8,)], [(9, 12), (12,)]], [[(4, 7), (7,)], [(1, 6), (6,)], [(4, 6), (1,)]]),
        (MIXED, [(6, 50), (50,)], [[(7, 9), (9,)], [(2, 1000), (1000,)]], [[(6, 50), (1,)], [(6, 1), (1,)]]),
        (SLICES, [(10,)], [[(6,)], [(1000,)]], [[(2,)], [(3,)]]),
    ],
)
def test_what_a_recipe_serves(
    text: str,
    made_for: list[tuple[int, ...]],
    serves: list[list[tuple[int, ...]]],
    serves_not: list[list[tuple[int, ...]]],
) -> None:
    graph = parse_graph(text.lstrip())
    made = guarded_kernel(graph, layouts(*made_for))
    for shapes in (made_for, *serves):
        launch, exact = made.launch(layouts(*shapes)), lower(graph, layouts(*shapes))
        assert launch is not None
        assert (launch.outputs, tuple(launch.parameters)) == (exact.outputs, exact.parameters)
        assert launch.kernel.text == kernel_text(exact.kernel)
    for shapes in serves_not:
        assert made.launch(layouts(*shapes)) is None


@settings(max_examples=portion(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_a_recipe_is_right_wherever_it_serves(program: Program) -> None:
    """What it says of other sizes is what is worked out for them alone."""
    given_ = [Layout(tuple(each.shape), each.stride(), each.dtype) for each in program.inputs]
    try:
        made = guarded_kernel(program.graph, given_)
    except Unsupported:
        return
    for scale in ({}, {2: 5, 3: 8, 7: 9, 16: 33, 20: 6}, {2: 3, 3: 2}, {2: 1, 16: 1}, {7: 0, 3: 0}):
        others = [_scaled(each, scale) for each in given_]
        launch = made.launch(others)
        if launch is not None:
            exact = lower(program.graph, others)
            assert launch.outputs == exact.outputs
            if launch.kernel.text == kernel_text(exact.kernel):
                assert tuple(launch.parameters) == exact.parameters
            else:  # it made nothing of what is equal for these sizes alone
                assert len(launch.parameters) >= len(exact.parameters)


def _scaled(layout: Layout, scale: dict[int, int]) -> Layout:
    """With other sizes, and laid out in the same order."""
    sizes = tuple(scale.get(size, size) for size in layout.sizes)
    strides, step = list(layout.strides), min(layout.strides, default=1)
    for dim in sorted(range(layout.rank), key=lambda dim: (layout.strides[dim], layout.sizes[dim])):
        strides[dim], step = step, step * max(sizes[dim], 1)
    return Layout(sizes, tuple(strides), layout.dtype)


def test_sizes_that_keep_changing_need_no_more_kernels() -> None:
    group = chain()
    function = group.function()
    for size in range(200):
        x, y = torch.randn(3, size), torch.randn(size)
        assert torch.equal(function(x, y), expected(x, y))
    assert len(group.recipes) == 3  # no columns, one, others


def test_there_is_an_end_to_kernels() -> None:
    """Each rank is another matter: the operators do what no kernel was made for."""
    group = FusionExecutor(parse_graph(CHUNKS.lstrip()))
    function = group.function()
    x, y = torch.randn(4, 12), torch.randn(12)
    wanted = [part.sigmoid() if not index else part for index, part in enumerate((x + y).chunk(2, 1))]
    for rank in range(2, 2 + MAX_KERNELS + 3):
        shape = (4, 12) + (1,) * (rank - 2)
        other = y.view((12,) + (1,) * (rank - 2))
        for _ in range(2):
            product, gate = function(x.view(shape), other)
            assert torch.equal(gate.view(4, 6), wanted[0])
            assert torch.equal(product.view(4, 6), wanted[0] * wanted[1])
    assert len(group.recipes) == MAX_KERNELS


def test_there_is_an_end_to_refusals() -> None:
    group = FusionExecutor(parse_graph(CHUNKS.lstrip()))
    for size in range(20):
        x = torch.randn(2, 6 + 2 * size, dtype=torch.complex64)
        group(x, x)
    assert group.failures == ["elements of torch.complex64"] * (MAX_KERNELS // 4)


def test_equal_computations_share_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of different graphs, as layers of one kind are, lower their computation once."""
    monkeypatch.setattr(compiled_kernels, "_RECIPES", OrderedDict())
    first, second = parse_graph(SLICES.lstrip()), parse_graph(SLICES.replace("%c", "%e").lstrip())
    other = parse_graph(SLICES.replace("aten::abs", "aten::neg").lstrip())
    made = guarded_kernel(first, layouts((10,)))
    assert guarded_kernel(second, layouts((1000,))).recipe.formula is made.recipe.formula
    assert guarded_kernel(second, layouts((2,))).recipe.formula is not made.recipe.formula
    assert guarded_kernel(other, layouts((10,))).kernel is not made.kernel
    integers = [Layout((10,), (1,), torch.int64)]
    assert guarded_kernel(second, integers).recipe.formula is not made.recipe.formula


def test_constant_tensors_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_kernels, "_RECIPES", OrderedDict())
    keys = []
    for number in (1.0, 2.0):
        graph = parse_graph(SLICES.lstrip())
        constant = graph.insert_constant(torch.tensor(number))
        keys.append((computation_key(graph), constant))
    assert [key for key, _ in keys] == [None, None]


def test_a_recipe_for_channels_holds_where_there_are_as_many_examples_as_channels():
    group = parse_graph("""graph(%x : Tensor, %mean : Tensor, %var : Tensor):
  %none : NoneType = prim::Constant()
  %false : bool = prim::Constant[value=0]()
  %rate : float = prim::Constant[value=0.1]()
  %y : Tensor = aten::batch_norm(%x, %none, %none, %mean, %var, %false, %rate, %rate, %false)
  return (%y)""")
    made = guarded_kernel(group, layouts((23, 8, 9, 11), (8,), (8,)))
    assert made.launch(layouts((8, 8, 9, 11), (8,), (8,))) is not None
    assert made.launch(layouts((8, 9, 9, 11), (8,), (8,))) is None
