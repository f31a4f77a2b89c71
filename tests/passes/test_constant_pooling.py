"""Constants that can be written to, and the order of those that cannot."""

from __future__ import annotations

import pytest
import torch

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes import ConstantPooling, run_passes


def _graph(first: torch.Tensor, second: torch.Tensor, rest: str) -> Graph:
    """A graph that begins with two tensor constants, ``%a`` and ``%b``."""
    graph = parse_graph(f"graph(%x : Tensor, %a : Tensor, %b : Tensor):\n{rest}")
    for index, tensor in ((2, second), (1, first)):
        constant = graph.block.prepend(graph.create_constant(tensor))
        graph.inputs[index].replace_all_uses_with(constant.output)
        graph.block.erase_input(index)
    return graph


def _constants(graph: Graph) -> int:
    run_passes(graph, [ConstantPooling()], verify)
    return len(graph.find_nodes("prim::Constant"))


READ = """  %1 : Tensor = aten::mul(%x, %a)
  %2 : Tensor = aten::mul(%1, %b)
  return (%2)
"""

WRITTEN = """  %1 : Tensor = aten::mul_(%a, %x)
  %2 : Tensor = aten::mul(%1, %b)
  return (%2)
"""

RETURNED = """  %1 : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
  return (%1)
"""

HANDED_ON = """  %1 : Tensor = mystery::op(%a)
  %2 : Tensor = aten::mul(%1, %b)
  return (%2)
"""


IDS = ["read", "written", "returned", "handed_on"]


@pytest.mark.parametrize(("rest", "count"), [(READ, 1), (WRITTEN, 2), (RETURNED, 2), (HANDED_ON, 2)], ids=IDS)
def test_equal_tensors_are_one_where_nothing_can_tell(rest: str, count: int) -> None:
    assert _constants(_graph(torch.ones(3), torch.ones(3), rest)) == count


@pytest.mark.parametrize("rest", [READ, WRITTEN, RETURNED, HANDED_ON], ids=IDS)
def test_the_same_tensor_is_one(rest: str) -> None:
    tensor = torch.ones(3)
    assert _constants(_graph(tensor, tensor, rest)) == 1


@pytest.mark.parametrize(
    "other",
    [torch.zeros(3), torch.ones(3, dtype=torch.float64), torch.ones(1, 3), torch.ones(3, requires_grad=True)],
    ids=["numbers", "dtype", "sizes", "requires_grad"],
)
def test_other_tensors_stay_two(other: torch.Tensor) -> None:
    assert _constants(_graph(torch.ones(3), other, READ)) == 2


def test_latest_first() -> None:
    graph = parse_graph(
        """
graph(%x : int):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = aten::add(%x, %1)
  %4 : int = prim::Constant[value=3]()
  %5 : int = prim::Constant[value=1]()
  %6 : int = aten::mul(%3, %2)
  %7 : int = aten::mul(%6, %4)
  %8 : int = aten::mul(%7, %5)
  return (%8)
""".lstrip()
    )
    assert run_passes(graph, [ConstantPooling(latest_first=True)], verify)
    assert [node["value"] for node in graph.find_nodes("prim::Constant")] == [3, 2, 1]
