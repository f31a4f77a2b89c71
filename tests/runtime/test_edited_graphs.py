"""A graph that is edited after the first call: the next call runs what it is now."""

from __future__ import annotations

import pytest
import torch

import rekindle
from rekindle.errors import GraphError, VerificationError
from rekindle.runtime.executor import STRATEGIES

X = torch.ones(2)


@pytest.fixture(params=list(STRATEGIES))
def strategy(request: pytest.FixtureRequest) -> object:
    before = rekindle.set_execution_strategy(request.param)
    yield
    rekindle.set_execution_strategy(before)


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def outer(x: torch.Tensor) -> torch.Tensor:
    return inner(x) + 1


def inner(x: torch.Tensor) -> torch.Tensor:
    return x.neg()


def fresh(function: object) -> rekindle.Function:
    """``function``, compiled again."""
    return rekindle.create_function(rekindle.script(function).graph)


@pytest.mark.usefixtures("strategy")
def test_edits_count_from_the_next_call_on() -> None:
    function = fresh(double)
    for _ in range(3):
        assert torch.equal(function(X), X * 2)
    (product,) = function.graph.find_nodes("aten::mul")
    with function.graph.inserting_before(product) as build:
        product.replace_input(1, build.constant(5))
    assert torch.equal(function(X), X * 5)
    with rekindle.optimized_execution(False):
        assert torch.equal(function(X), X * 5)
        product.replace_input(1, product.inputs[0])
        assert torch.equal(function(X), X)


@pytest.mark.usefixtures("strategy")
def test_edits_of_what_is_called_count_too() -> None:
    function = rekindle.script(outer)
    called = rekindle.script(inner)
    assert torch.equal(function(X), 1 - X)
    (negation,) = called.graph.find_nodes("aten::neg")
    with called.graph.inserting_before(negation) as build:
        squared = build(negation.input) ** 2 * 3
    negation.output.replace_all_uses_with(squared)
    assert torch.equal(function(X), X * 3 + 1)
    assert torch.equal(called(X), X * 3)
    squared.value.replace_all_uses_with(negation.output)
    assert torch.equal(function(X), 1 - X)


def test_attributes_count_where_they_are_set_with_the_method() -> None:
    function = fresh(double)
    assert torch.equal(function(X), X * 2)
    constant = function.graph.find_nodes("aten::mul")[0].inputs[1].node
    constant.set_attribute("value", 7)
    assert torch.equal(function(X), X * 7)
    constant.attributes["value"] = 8
    function.graph.note_change()
    assert torch.equal(function(X), X * 8)


@pytest.mark.parametrize("has_run", [False, True])
def test_an_edit_that_breaks_the_graph_is_told_at_the_next_call(has_run: bool) -> None:
    function = fresh(double)
    if has_run:
        function(X)
    (product,) = function.graph.find_nodes("aten::mul")
    constant = product.inputs[1].node
    product.move_before(constant)
    with pytest.raises(VerificationError, match=r"^aten::mul: %1 is used before it is defined\n"):
        function(X)
    constant.move_before(product)
    assert torch.equal(function(X), X * 2)


@pytest.mark.parametrize("has_run", [False, True])
def test_an_edit_that_changes_what_is_taken_is_told_at_the_next_call(has_run: bool) -> None:
    function = fresh(double)
    if has_run:
        function(X)
    function.graph.add_input("more")
    with pytest.raises(GraphError) as caught:
        function(X)
    assert str(caught.value) == (
        "the graph of 'function' was edited to take 2 values, but the function takes 1; make a function of the graph: "
        "rekindle.create_function(graph, name)"
    )
    assert torch.equal(rekindle.create_function(function.graph)(X, X), X * 2)


def test_what_is_called_does_not_gather_those_who_called_it() -> None:
    called = rekindle.script(inner)
    with rekindle.optimized_execution(False):
        for _ in range(100):
            assert torch.equal(rekindle.create_function(rekindle.script(outer).graph)(X), 1 - X)
    assert len(called.graph._watchers) <= 32
