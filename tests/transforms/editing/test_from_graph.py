"""Functions, methods and modules made from graphs."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

import rekindle
from rekindle.errors import GraphError, VerificationError
from rekindle.ir.text.parser import parse_graph

LINEAR = """graph(%x : Tensor,
      %weight : Tensor,
      %bias : Tensor?,
      %times : int):
  %1 : Tensor = aten::linear(%x, %weight, %bias)
  %2 : Tensor = aten::mul(%1, %times)
  return (%2)
"""
X = torch.ones(2, 3)


def test_a_graph_becomes_a_function() -> None:
    function = rekindle.create_function(parse_graph(LINEAR), "scaled")
    assert str(function.schema) == "scaled(Tensor x, Tensor weight, Tensor? bias, int times) -> Tensor"
    assert torch.equal(function(X, torch.ones(2, 3), None, times=2), torch.full((2, 2), 6.0))


def test_several_outputs_come_as_a_tuple_and_none_as_none() -> None:
    graph = parse_graph("graph(%x : Tensor, %x.2 : Tensor, %3 : int):\n  return (%x, %3)\n")
    function = rekindle.create_function(graph, "pick")
    assert str(function.schema) == "pick(Tensor x, Tensor x_1, int arg2) -> ((Tensor, int))"
    assert function(X, X, 4) == (X, 4)
    assert rekindle.create_function(parse_graph("graph(%x : Tensor):\n  return ()\n"))(X) is None


def test_the_function_has_a_graph_of_its_own() -> None:
    graph = parse_graph(LINEAR)
    function = rekindle.create_function(graph)
    with graph.inserting_before(graph.return_node) as build:
        graph.block.replace_output(0, build.neg(graph.outputs[0]))
    assert not function.graph.find_nodes("aten::neg")


def test_a_graph_becomes_a_module() -> None:
    held = {"weight": nn.Parameter(torch.ones(2, 3)), "bias": torch.ones(2), "times": 3}
    module = rekindle.create_module(parse_graph(LINEAR), held, "Scaled")
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    assert [name for name, _ in module.named_buffers()] == ["bias"]
    assert torch.equal(module(X), torch.full((2, 2), 12.0))
    module.times = 2
    assert torch.equal(module(X), torch.full((2, 2), 8.0))
    module(X).sum().backward()
    assert torch.equal(held["weight"].grad, torch.full((2, 3), 4.0))
    file = io.BytesIO()
    rekindle.save(module, file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(X), torch.full((2, 2), 8.0))
    assert (
        module.code
        == """def forward(self,
    x: Tensor) -> Tensor:
  weight = self.weight
  bias = self.bias
  times = self.times
  _0 = torch.mul(torch.linear(x, weight, bias), times)
  return _0
"""
    )


def test_a_compiled_module_can_be_part_of_it() -> None:
    part = rekindle.script(nn.Linear(3, 2))
    graph = part.graph.copy()
    graph.inputs[0].set_name("part")
    around = rekindle.create_module(graph, {"part": part}, "Around")
    assert torch.equal(around(X), part(X))
    assert [name for name, _ in around.named_parameters()] == ["part.weight", "part.bias"]


def test_a_graph_becomes_a_method() -> None:
    module = rekindle.script(nn.Linear(3, 2))
    graph = module.graph.copy()
    with graph.inserting_before(graph.return_node) as build:
        graph.block.replace_output(0, build.relu(graph.outputs[0]))
    method = rekindle.create_method(module, "rectified", graph)
    assert torch.equal(method(X), torch.relu(module(X)))
    assert torch.equal(module.rectified(X), torch.relu(module(X)))


def test_misuse_is_named() -> None:
    graph = parse_graph(LINEAR)
    module = rekindle.script(nn.Linear(3, 2))
    other = rekindle.script(nn.Tanh())
    for make, message in (
        (lambda: rekindle.create_function(graph, "a b"), "'a b' cannot be the name of a function"),
        (
            lambda: rekindle.create_module(graph, {"w": X}),
            "the graph has no input 'w'; there are 'x', 'weight', 'bias', 'times'",
        ),
        (lambda: rekindle.create_module(graph, {"times": 1.5}), "input 'times' takes int, but got a float: 1.5"),
        (
            lambda: rekindle.create_method(module, "run", graph),
            "the first input of a method is its module, a Linear, but this graph takes Tensor",
        ),
        (
            lambda: rekindle.create_method(module, "run", other.graph),
            "the first input of a method is its module, a Linear, but this graph takes Tanh",
        ),
        (
            lambda: rekindle.create_method(module, "forward", module.graph),
            "the module 'Linear' has a 'forward' already",
        ),
    ):
        with pytest.raises(GraphError) as caught:
            make()
        assert str(caught.value) == message


def test_a_graph_that_is_not_valid_is_refused() -> None:
    graph = parse_graph(LINEAR)
    first, second = graph.nodes
    second.move_before(first)
    with pytest.raises(VerificationError) as caught:
        rekindle.create_function(graph)
    assert (
        str(caught.value)
        == """aten::mul: %1 is used before it is defined
  > %2 : Tensor = aten::mul(%1, %times)
    %1 : Tensor = aten::linear(%x, %weight, %bias)"""
    )
