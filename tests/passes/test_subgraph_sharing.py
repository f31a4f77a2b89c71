"""Nodes whose graphs are alike share what runs them."""

from __future__ import annotations

import gc
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.passes.simplification.subgraph_sharing import SubgraphCache, structural_key

ONE = """graph(%x : Float(2, 3)):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%x, %x, %1)
  return (%2)
"""


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (ONE, True),
        (ONE.replace("%x", "%given").replace("%2", "%sum"), True),
        (ONE.replace("value=1", "value=2"), False),
        (ONE.replace("value=1", "value=1.").replace("int", "float"), False),
        (ONE.replace("Float(2, 3)", "Float(3, 2)"), False),
        (ONE.replace("Float(2, 3)", "Float(2, 3, requires_grad=1)"), False),
        (ONE.replace("aten::add", "aten::sub"), False),
        (ONE.replace("return (%2)", "return (%x)"), False),
        (ONE.replace("%x, %x", "%x, %1"), False),
    ],
)
def test_what_is_alike(other: str, alike: bool) -> None:
    assert (structural_key(parse_graph(ONE)) == structural_key(parse_graph(other))) is alike


def test_blocks_and_graphs_within_count() -> None:
    text = """graph(%c : bool, %x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = prim::If(%c)
    block0():
      %3 : Tensor = aten::add(%x, %x, %1)
      -> (%3)
    block1():
      -> (%x)
  %4 : Tensor = prim::FusionGroup_0(%2)
  return (%4)
with prim::FusionGroup_0 = graph(%y : Tensor):
  %5 : Tensor = aten::tanh(%y)
  return (%5)
"""
    known = structural_key(parse_graph(text))
    assert known == structural_key(parse_graph(text))
    assert known != structural_key(parse_graph(text.replace("-> (%3)", "-> (%x)")))
    assert known != structural_key(parse_graph(text.replace("aten::tanh", "aten::sigmoid")))


def test_tensors_are_told_apart_by_who_they_are() -> None:
    same = torch.ones(2)

    def holding(tensor: Tensor) -> Graph:
        graph = Graph()
        graph.add_output(graph.insert_constant(tensor))
        return graph

    assert structural_key(holding(same)) == structural_key(holding(same))
    assert structural_key(holding(same)) != structural_key(holding(torch.ones(2)))


TWICE = """graph(%x : Tensor):
  %1 : Tensor = prim::FusionGroup_0(%x)
  %2 : Tensor = prim::FusionGroup_1(%1)
  %3 : Tensor = prim::FusionGroup_2(%2)
  return (%3)
with prim::FusionGroup_0 = graph(%a : Tensor):
  %4 : Tensor = aten::tanh(%a)
  return (%4)
with prim::FusionGroup_1 = graph(%b : Tensor):
  %5 : Tensor = aten::sigmoid(%b)
  return (%5)
with prim::FusionGroup_2 = graph(%c : Tensor):
  %6 : Tensor = aten::tanh(%c)
  return (%6)
"""


@dataclass(eq=False)
class Runner:
    graph: Graph


def test_one_for_all_that_are_alike() -> None:
    nodes = list(parse_graph(TWICE).nodes)
    shared: SubgraphCache[Runner] = SubgraphCache()
    first, second, third = [shared.of(node, Runner) for node in nodes]
    assert first is third
    assert first is not second
    assert first.graph is nodes[0].get_graph("Subgraph")
    assert shared.of(nodes[0], Runner, "another") is not first


def test_graphs_share_nothing_with_others() -> None:
    """Each is optimized with the options of that time, and so is a copy that a bisection makes."""
    graphs = [parse_graph(TWICE) for _ in range(2)]
    shared: SubgraphCache[Runner] = SubgraphCache()
    one, other = [shared.of(next(iter(graph.nodes)), Runner) for graph in graphs]
    assert one is not other


def test_nothing_is_kept() -> None:
    graph = parse_graph(TWICE)
    shared: SubgraphCache[Runner] = SubgraphCache()
    shared.of(next(iter(graph.nodes)), Runner)
    gc.collect()
    made: list[Graph] = []
    shared.of(next(iter(graph.nodes)), lambda subgraph: made.append(subgraph) or Runner(subgraph))
    assert made == [next(iter(graph.nodes)).get_graph("Subgraph")]


class Layers(nn.Module):
    """Eight layers, each with operators after it that fuse, and a part of what the module is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(4, 4, 1) for _ in range(8)])

    def forward(self, x: Tensor) -> Tensor:
        h = x[0] * 2
        for index, layer in enumerate(self.layers):
            y = layer(h)
            h = torch.tanh(y) * torch.sigmoid(y) + x[index] * y
        return h


def test_layers_share_one_derivative() -> None:
    torch.manual_seed(0)
    eager = Layers()
    compiled = rekindle.script(eager)
    x = torch.randn(8, 4, 5)
    for _ in range(3):
        expected = torch.autograd.grad(eager(x).sum(), list(eager.parameters()))
        torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), list(compiled.parameters())), expected)
    report = rekindle.report(compiled)
    (part,) = report.versions
    assert [each.places for each in part.differentiable] == [8]
    assert "a graph with a backward of its own, in 8 places" in str(report)


def test_layers_share_one_group() -> None:
    torch.manual_seed(0)
    eager = nn.Sequential(*[nn.Sequential(nn.Conv1d(4, 4, 1), nn.Tanh(), nn.Sigmoid()) for _ in range(6)])
    compiled = rekindle.script(eager)
    x = torch.randn(4, 5)
    with torch.no_grad():
        for call in range(3):
            torch.testing.assert_close(compiled(x), eager(x))
            (part,) = rekindle.report(compiled).versions
            assert [(each.places, len(each.kernels)) for each in part.groups] == [(6, call // 2)]
    report = rekindle.report(compiled)
    assert "in 6 places" in str(report)
