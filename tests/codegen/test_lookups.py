"""Lookups in kernels: elements at indices that a tensor has. An index that is none is found, and PyTorch says so."""

from __future__ import annotations

from typing import Final

import pytest
import torch
from torch import Tensor

import rekindle.ops
import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen.fusion import FuseGraph, blockers_of
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.operators.gather import OUT_OF_BOUNDS
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph

EMBEDDING: Final = """
graph(%w : Tensor, %i : Tensor, %y : Tensor):
  %none : int = prim::Constant[value=-1]()
  %no : bool = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %e : Tensor = aten::embedding(%w, %i, %none, %no, %no)
  %r : Tensor = aten::add(%e, %y, %one)
  return (%r)
"""

SELECT: Final = """
graph(%x : Tensor, %i : Tensor, %y : Tensor):
  %dim : int = prim::Constant[value=DIM]()
  %e : Tensor = aten::NAME(%x, %dim, %iEXTRA)
  %r : Tensor = aten::mul(%e, %y)
  return (%r)
"""

INDEX: Final = """
graph(%x : Tensor, %i : Tensor, %y : Tensor):
  %l : Tensor?[] = prim::ListConstruct(%i)
  %e : Tensor = aten::index(%x, %l)
  %r : Tensor = aten::mul(%e, %y)
  return (%r)
"""

COMPUTED: Final = """
graph(%x : Tensor, %i : Tensor):
  %dim : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %j : Tensor = aten::add(%i, %one, %one)
  %h : Tensor = aten::tanh(%x)
  %e : Tensor = aten::index_select(%h, %dim, %j)
  %r : Tensor = aten::neg(%e)
  return (%r)
"""

SUMMED: Final = """
graph(%x : Tensor, %i : Tensor):
  %dim : int = prim::Constant[value=0]()
  %last : int = prim::Constant[value=-1]()
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %e : Tensor = aten::index_select(%x, %dim, %i)
  %dims : int[] = prim::ListConstruct(DIM)
  %r : Tensor = aten::sum(%e, %dims, %no, %none)
  return (%r)
"""


def select(name: str, dim: int) -> str:
    extra = ", %no" if name == "gather" else ""
    text = SELECT.replace("NAME", name).replace("DIM", str(dim)).replace("EXTRA", extra)
    return text.replace("  %e", "  %no : bool = prim::Constant[value=0]()\n  %e", 1) if extra else text


def check(text: str, *inputs: Tensor) -> FusionExecutor:
    graph = parse_graph(text.lstrip())
    group = FusionExecutor(graph)
    expected = callable_of(graph, "eager")(*inputs)
    for _ in range(2):
        found = group(*inputs)
        torch.testing.assert_close(found, expected)
        assert found.stride() == expected.stride()
    assert group.failures == []
    return group


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.bool])
@pytest.mark.parametrize("width", [1, 5, 64])
def test_rows_of_a_table(width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    table = torch.randint(-9, 9, (11, width)).to(dtype)
    for index in (torch.randint(11, (7,)), torch.randint(11, (2, 3), dtype=torch.int32), torch.tensor(3)):
        check(EMBEDDING, table, index, torch.ones(width, dtype=dtype))


def test_the_text_of_a_table() -> None:
    group = check(EMBEDDING, torch.randn(11, 16), torch.tensor([3, 0, 10]), torch.ones(3, 16))
    assert kernel_text(group.recipes[0].kernel.kernel) == (
        "kernel(in0: f32, in1: i64, in2: f32) -> (out0: f32)\n"
        "  for 2 loops:\n"
        "    %0 = load in1[*, 0]\n"
        "    %1 = lookup in0[*, 1] at (%0, g0, g1)\n"
        "    %2 = load in2[*, 1]\n"
        "    %3 : f32 = add(%1, %2)\n"
        "    store out0[*, 1] = %3\n"
    )


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_other_dimensions(dim: int) -> None:
    torch.manual_seed(0)
    x, index = torch.randn(5, 6, 20), torch.tensor([4, 0, 0, 3, 1])
    for given in (x, x.transpose(0, 2).contiguous().transpose(0, 2), torch.randn(5, 6, 40)[..., ::2]):
        check(select("index_select", dim), given, index, torch.tensor(2.0))
        sizes = [3, 4, 17]
        sizes[dim] = 9
        check(select("gather", dim), given, torch.randint(5, sizes), torch.tensor(2.0))


def test_a_single_index() -> None:
    x = torch.randn(5, 18)
    check(select("index_select", 0), x, torch.tensor(3), torch.tensor(2.0))
    check(select("index_select", 1), x, torch.tensor(17), torch.ones(5, 1))
    check(INDEX, x, torch.tensor(-2), torch.ones(18))


def test_indices_from_the_end() -> None:
    x = torch.randn(5, 18)
    check(INDEX, x, torch.tensor([-1, 0, -5, 4]), torch.ones(18))
    check(INDEX, x, torch.tensor([[-1, 0], [2, 2]]), torch.ones(18))
    check(INDEX, x[:, 0], torch.tensor([[-1, 0], [2, 2]]), torch.ones(2))


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (1, 2, 0)])
def test_indexing_keeps_the_order_in_memory(order: tuple[int, int, int]) -> None:
    """Of the dimensions after the first, as PyTorch does, where other lookups give contiguous results."""
    x = torch.randn(4, 5, 6).permute(order)
    for sizes in ((3,), (1,), (2, 3), (1, 2)):
        check(INDEX, x, torch.randint(4, sizes), torch.tensor(2.0))
        check(INDEX, x[:, :1], torch.randint(4, sizes).t(), torch.tensor(2.0))


def test_of_what_is_computed_at_what_is_computed() -> None:
    check(COMPUTED, torch.randn(6, 33), torch.tensor([4, -1, 2]))


@pytest.mark.parametrize("dim", ["%dim", "%last", "%dim, %last"])
def test_what_is_looked_up_is_folded(dim: str) -> None:
    torch.manual_seed(0)
    check(SUMMED.replace("DIM", dim), torch.randn(9, 70), torch.randint(9, (40,)))


ERRORS: Final = {
    "embedding": (EMBEDDING, r"^index out of range in self$"),
    "index_select": (select("index_select", 0), r"^index out of range in self$"),
    "gather": (select("gather", 0), r"^index 11 is out of bounds for dimension 0 with size 11$"),
    "index": (INDEX, r"^index 11 is out of bounds for dimension 0 with size 11$"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_index_that_is_none(name: str) -> None:
    """Where one is, in a whole vector or at its end, nothing is read, and the error is PyTorch's."""
    text, message = ERRORS[name]
    group = FusionExecutor(parse_graph(text.lstrip()))
    function = group.function()
    x = torch.randn(11, 20)
    for place in (0, 16, 19):
        index = torch.zeros(20, dtype=torch.int64)
        if name == "gather":
            index = index.expand(2, 20).contiguous()
        function(x, index, torch.ones(20))
        index.view(-1)[place] = 11
        with pytest.raises((IndexError, RuntimeError), match=message):
            function(x, index, torch.ones(20))
    assert group.fallbacks == {OUT_OF_BOUNDS: 3}


def test_negative_indices_where_none_are_allowed() -> None:
    group = FusionExecutor(parse_graph(EMBEDDING.lstrip()))
    with pytest.raises(IndexError, match=r"^index out of range in self$"):
        group(torch.randn(11, 20), torch.tensor([0, -1]), torch.ones(20))


def test_masks_are_left_to_pytorch() -> None:
    graph = parse_graph(INDEX.lstrip())
    group = FusionExecutor(graph)
    x, mask = torch.randn(4, 3), torch.tensor([True, False, True, True])
    assert torch.equal(group(x, mask, torch.ones(3)), x[mask])
    assert group.failures == ["indices of such a dtype, or no elements"]


PICKS: Final = """
graph(%x : Tensor, %i : TYPE, %j : Tensor):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  INDEX
  %l : Tensor?[] = prim::ListConstruct(%k)
  %e : Tensor = aten::index(%x, %l)
  %r : Tensor = aten::tanh(%e)
  return (%r)
"""

MASKS: Final = (
    "%k : Tensor = aten::gt(%i, %zero)",
    "%k : Tensor = aten::isnan(%i)",
    "%m : Tensor = aten::eq(%i, %j)\n  %k : Tensor = aten::bitwise_not(%m)",
    "%m : Tensor = aten::lt(%i, %j)\n  %n : Tensor = aten::gt(%i, %zero)\n  %k : Tensor = aten::mul(%m, %n)",
    "%m : Tensor = aten::lt(%i, %j)\n  %k : Tensor = aten::select(%m, %zero, %one)",
    "%m : Tensor = aten::lt(%i, %j)\n  %k : Tensor = aten::any(%m, %zero, %false)",
    "%k : Tensor = aten::__and__(%i, %j)",
    "%k : Tensor = aten::bitwise_not(%i)",
)
NO_MASKS: Final = (
    "%k : Tensor = aten::add(%i, %j, %one)",
    "%k : Tensor = aten::__and__(%i, %one)",
    "%m : Tensor = aten::lt(%i, %j)\n  %k : Tensor = aten::mul(%m, %one)",
    "%k : Tensor = aten::argmax(%i, %zero, %false)",
    "%m : Tensor = aten::lt(%i, %j)\n  %k : Tensor = aten::where(%m, %i, %j)",
)


def _picks(index: str, type: str = "Tensor") -> str:
    text = PICKS.replace("TYPE", type).replace("INDEX", index).lstrip()
    return text.replace("  %none", "  %false : bool = prim::Constant[value=0]()\n  %none", 1)


def _is_looked_up(text: str) -> bool:
    graph = parse_graph(text)
    FuseGraph().run(graph)
    reasons = [each.reason for each in blockers_of(graph) if each.kind == "aten::index"]
    assert reasons in ([], ["its indices are truth values"])
    return not reasons


@pytest.mark.parametrize("index", MASKS)
def test_masks_are_no_lookups(index: str) -> None:
    """A group with one would never have a kernel, so that its definition is followed back to a value of known kind."""
    assert not _is_looked_up(_picks(index))


@pytest.mark.parametrize("index", NO_MASKS)
def test_what_may_be_indices_is_looked_up(index: str) -> None:
    assert _is_looked_up(_picks(index))


def test_bits_of_integers_are_indices() -> None:
    assert _is_looked_up(_picks("%k : Tensor = aten::__and__(%i, %j)", "Long(*)"))
    assert not _is_looked_up(_picks("%k : Tensor = aten::__and__(%i, %j)", "Bool(*)"))
    check(_picks("%k : Tensor = aten::__and__(%i, %j)"), torch.randn(8), torch.arange(20), torch.tensor(7))
