"""Graphs run from below the runtime, by way of :mod:`rekindle.ir.subgraph_execution`."""

from __future__ import annotations

import pytest
import torch

import rekindle.runtime.executor  # noqa: F401 (fills the slot)
from rekindle.errors import SchemaError
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph

SEVERAL = """
graph(%x : Tensor, %y : Tensor):
  %z : Tensor = aten::mul(%x, %y)
  return (%z, %x)
"""


def test_one_output_comes_as_itself_and_several_as_a_tuple() -> None:
    x, y = torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0])
    both = callable_of(parse_graph(SEVERAL), "both")(x, y)
    assert isinstance(both, tuple)
    assert torch.equal(both[0], x * y)
    assert both[1] is x
    one = parse_graph("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n")
    assert torch.equal(callable_of(one, "negated")(x), -x)


def test_what_no_plan_runs_the_interpreter_does() -> None:
    body = parse_graph("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n")
    graph = parse_graph(
        "graph(%x : Tensor):\n  %f : Future(Tensor) = prim::fork(%x)\n  %r : Tensor = aten::wait(%f)\n  return (%r)\n"
    )
    next(iter(graph.nodes)).attributes["Subgraph"] = body
    x = torch.tensor([2.0, 3.0])
    assert torch.equal(callable_of(graph, "forked")(x), -x)


def test_a_kind_that_nobody_knows_is_refused_at_once() -> None:
    graph = parse_graph("graph(%x : Tensor):\n  %y : Tensor = aten::nobody_knows(%x)\n  return (%y)\n")
    with pytest.raises(SchemaError, match="aten::nobody_knows"):
        callable_of(graph, "unknown")
