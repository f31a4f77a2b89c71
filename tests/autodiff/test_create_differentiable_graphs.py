"""Which nodes are gathered in a differentiable graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.printer import print_graph
from rekindle.ir.types import TensorType, Type
from rekindle.ir.verifier import verify
from rekindle.passes import CanonicalizeOps
from tests.autodiff.graphs import graph_of
from tests.overview_programs import lstm_cell
from tests.support.golden import GoldenTexts


def with_something_between(x: Tensor, w: Tensor) -> Tensor:
    a = x * w
    print("between")  # noqa: T201
    b = torch.special.i1e(x)
    return torch.tanh(a) * b


def with_a_wall(x: Tensor, w: Tensor) -> Tensor:
    a = torch.tanh(x * w)
    b = torch.special.i1e(a)
    return torch.tanh(b * a + x)


def gives_views(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a = torch.tanh(x.mm(w.t()))
    b = a.t()
    first, second = a.chunk(2, 1)
    return b, a.mm(a), first * second + second


def writes(x: Tensor, w: Tensor) -> Tensor:
    a = torch.tanh(x * w)
    b = a.t()
    a.add_(1)
    return torch.tanh(b * w) + a


def within_a_loop(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i > 2:
            x = torch.tanh(x * x)
        x = torch.sigmoid(x + x * i)
    return x


def without_gradients(x: Tensor, w: Tensor) -> Tensor:
    with torch.no_grad():
        a = torch.tanh(x * w)
    return torch.tanh(a * w)


def too_few(x: Tensor, w: Tensor) -> Tensor:
    return torch.special.i1e(torch.tanh(x).t())


PROGRAMS = [
    lstm_cell,
    with_something_between,
    with_a_wall,
    gives_views,
    writes,
    within_a_loop,
    without_gradients,
    too_few,
]


def split(graph: Graph, threshold: int = 2) -> Graph:
    before = str(graph)
    changed = CreateDifferentiableGraphs(threshold).run(graph)
    assert changed == (str(graph) != before)
    verify(graph)
    return graph


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs(program: Callable[..., Any], golden: GoldenTexts) -> None:
    graph = graph_of(program)
    CanonicalizeOps().run(graph)
    golden(f"autodiff/split/{program.__name__}", print_graph(split(graph), ranges=False))


def test_what_needs_no_gradient_stays_outside() -> None:
    text = """graph(%x : Float(2, 3, requires_grad=0), %y : Float(2, 3, requires_grad=1)):
  %1 : Tensor = aten::mul(%x, %x)
  %2 : Tensor = aten::mul(%1, %1)
  %3 : Tensor = aten::tanh(%y)
  %4 : Tensor = aten::mul(%3, %2)
  return (%4)
"""
    graph = split(parse_graph(text))
    assert [node.kind for node in graph.nodes] == ["aten::mul", "aten::mul", "prim::DifferentiableGraph"]


def test_complex_numbers_are_left_to_autograd() -> None:
    text = """graph(%x : Tensor, %i : complex):
  %1 : Tensor = aten::mul(%x, %i)
  %2 : Tensor = aten::mul(%1, %i)
  return (%2)
"""
    assert [node.kind for node in split(parse_graph(text)).nodes] == ["aten::mul", "aten::mul"]


def test_threshold() -> None:
    graph = graph_of(too_few)
    assert "DifferentiableGraph" not in str(split(graph))
    assert "DifferentiableGraph" in str(split(graph, 1))


OVERVIEW = """graph(%13 : Float(*, *),
      %29 : Float(*),
      %33 : Float(*),
      %40 : Float(*, *),
      %43 : Float(*, *),
      %45 : Float(*, *),
      %48 : Float(*, *)):
  %49 : Float(*, *) = aten::t(%48)
  %47 : Float(*, *) = aten::mm(%45, %49)
  %44 : Float(*, *) = aten::t(%43)
  %42 : Float(*, *) = aten::mm(%40, %44)
  %38 : int = prim::Constant[value=1]()
  %39 : Float(*, *) = aten::add(%47, %42, %38)
  %35 : Float(*, *) = aten::add(%39, %33, %38)
  %gates : Float(*, *) = aten::add(%35, %29, %38)
  %24 : FLOAT, %25 : FLOAT, %26 : FLOAT, %27 : FLOAT = prim::ConstantChunk[chunks=4, dim=1](%gates)
  %ingate : Float(*, *) = aten::sigmoid(%24)
  %forgetgate : Float(*, *) = aten::sigmoid(%25)
  %cellgate : Float(*, *) = aten::tanh(%26)
  %outgate : Float(*, *) = aten::sigmoid(%27)
  %14 : Float(*, *) = aten::mul(%forgetgate, %13)
  %11 : Float(*, *) = aten::mul(%ingate, %cellgate)
  %cy : Float(*, *) = aten::add(%14, %11, %38)
  %4 : Float(*, *) = aten::tanh(%cy)
  %hy : Float(*, *) = aten::mul(%outgate, %4)
  return (%hy)
""".replace("FLOAT", "Float(*, *)")
"""The DifferentiableGraph of the technical overview, without its second result: code outside could differentiate %hy
with respect to %cy."""


def plain(type: Type) -> str:
    """A type without the device, which the overview does not print."""
    return str(replace(type, device=None, requires_grad=None) if isinstance(type, TensorType) else type)


def shape_of(graph: Graph) -> list[tuple[object, ...]]:
    """The graph without names: the types of its inputs; each node with its attributes, and where its inputs come from;
    where its outputs do."""
    numbers = {value: number for number, value in enumerate(graph.inputs)}
    found: list[tuple[object, ...]] = [tuple(plain(value.type) for value in graph.inputs)]
    for node in graph.nodes:
        numbers.update((output, len(numbers) + index) for index, output in enumerate(node.outputs))
        found.append((node.kind, tuple(node.attributes.items()), tuple(numbers[value] for value in node.inputs)))
    return [*found, tuple(numbers[value] for value in graph.outputs)]


def test_lstm_of_the_overview() -> None:
    graph = graph_of(lstm_cell)
    graph.block.erase_output(1)
    CanonicalizeOps().run(graph)
    matrix, vector = (TensorType.of(torch.zeros([4] * rank, requires_grad=True)).with_rank_only() for rank in (2, 1))
    refine_types(graph, propagate_types(graph, [matrix] * 5 + [vector] * 2))
    (node,) = split(graph).find_nodes("prim::DifferentiableGraph")
    assert shape_of(node.get_graph("Subgraph")) == shape_of(parse_graph(OVERVIEW))
    assert [value.base_name for value in node.inputs] == ["cx", "b_hh", "b_ih", "hx", "w_hh", "x", "w_ih"]
