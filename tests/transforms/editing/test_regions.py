"""Parts of graphs: moved, taken out, replaced; and graphs cut in two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rekindle
from rekindle.errors import GraphError, SchemaError
from rekindle.ir.graph import Graph, Node
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.transforms.editing import Region, extract, move, outline, replace, split

TEXT = """graph(%x : Tensor,
      %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::mul(%a, %y)
  %c : Tensor = aten::sin(%y)
  %d : Tensor = aten::add(%b, %a, %one)
  %e : Tensor = aten::add_(%y, %one, %one)
  %f : Tensor = aten::mul(%d, %c)
  return (%f)
"""


def named(graph: Graph, *names: str) -> list[Node]:
    """The nodes that make values of these names."""
    found = [graph.find_value(name) for name in names]
    return [value.node for value in found if value is not None]


def answer(graph: Graph) -> list[torch.Tensor]:
    x, y = torch.linspace(-1, 1, 4), torch.linspace(0, 2, 4)
    return [rekindle.create_function(graph)(x, y), x, y]


def test_what_flows_in_and_out() -> None:
    graph = parse_graph(TEXT)
    region = Region(named(graph, "d", "b"))
    assert [value.name for value in region.inputs] == ["a", "y"]
    assert [value.name for value in region.outputs] == ["d"]
    assert [node.output.name for node in region.constants] == ["one"]


def test_extracted_nodes_are_a_function() -> None:
    graph = parse_graph(TEXT)
    function = extract(named(graph, "a", "b", "d"), "part")
    assert str(function.schema) == "part(Tensor x, Tensor y) -> Tensor"
    assert torch.equal(function(torch.zeros(2), torch.ones(2)), torch.full((2,), 2.0))
    assert str(graph) == TEXT


@pytest.mark.parametrize("names", [["a"], ["b", "d"], ["a", "b", "c", "d"], ["a", "c"], ["e"]])
def test_outlined_nodes_are_a_call(names: list[str]) -> None:
    graph = parse_graph(TEXT)
    function = outline(named(graph, *names), "part")
    verify(graph)
    (call,) = graph.find_nodes("prim::CallFunction")
    assert call.inputs[0].type.function is function._record  # type: ignore[attr-defined]
    torch.testing.assert_close(answer(graph), answer(parse_graph(TEXT)))


def test_nodes_are_replaced_by_code() -> None:
    def scaled(a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(a, a, y)

    graph = parse_graph(TEXT)
    (new,) = replace(named(graph, "b", "d"), scaled)
    verify(graph)
    assert (new.name, new.node.kind) == ("d", "aten::addcmul")
    assert not graph.find_nodes("aten::add")
    torch.testing.assert_close(answer(graph), answer(parse_graph(TEXT)))


def test_nodes_move_where_nobody_can_tell() -> None:
    graph = parse_graph(TEXT)
    (sine,) = named(graph, "c")
    move([sine], before=next(iter(graph.nodes)))
    verify(graph)
    assert next(iter(graph.nodes)) is sine
    move(named(graph, "a", "b"), before=named(graph, "d")[0])
    torch.testing.assert_close(answer(graph), answer(parse_graph(TEXT)))


def two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


@pytest.mark.parametrize(
    ("misuse", "error", "message"),
    [
        (
            lambda graph: move(named(graph, "b"), before=graph.return_node),
            GraphError,
            """aten::mul cannot be moved across aten::add, which uses what it gives, or gives what it uses:
  %d : Tensor = aten::add(%b, %a, %one)""",
        ),
        (
            lambda graph: move(named(graph, "c"), before=graph.return_node),
            GraphError,
            """aten::sin cannot be moved across aten::add_, which would see other memory, modes or random numbers then:
  %e : Tensor = aten::add_(%y, %one, %one)""",
        ),
        (
            lambda graph: outline(named(graph, "b", "f")),
            GraphError,
            """aten::mul cannot be moved across aten::add, which uses what it gives, or gives what it uses:
  %d : Tensor = aten::add(%b, %a, %one)""",
        ),
        (
            lambda graph: move(named(graph, "a"), before=named(graph, "a")[0]),
            GraphError,
            "aten::exp is one of the nodes that are to be moved before it",
        ),
        (lambda graph: extract([]), GraphError, "there are no nodes"),
        (lambda graph: extract([graph.return_node]), GraphError, "this prim::Return is in no block"),
        (
            lambda graph: extract([*named(graph, "a"), *named(parse_graph(TEXT), "b")]),
            GraphError,
            "aten::exp and aten::mul are in different blocks",
        ),
        (
            lambda graph: replace(named(graph, "a"), two),
            SchemaError,
            """'two' cannot be called with (Tensor): argument 'y' is missing.
It is declared as
  two(Tensor x, Tensor y) -> Tensor""",
        ),
        (
            lambda graph: replace(named(graph, "b"), torch.is_same_size),
            GraphError,
            "what replaces the nodes gives (bool), but (Tensor) is used",
        ),
        (
            lambda graph: split(graph, graph.param_node),
            GraphError,
            "prim::Param is not in the outermost block of the graph",
        ),
    ],
)
def test_misuse_is_named_and_changes_nothing(
    misuse: Callable[[Graph], Any], error: type[Exception], message: str
) -> None:
    graph = parse_graph(TEXT)
    with pytest.raises(error) as caught:
        misuse(graph)
    assert str(caught.value) == message
    assert str(graph) == TEXT
    verify(graph)


@pytest.mark.parametrize("name", ["one", "a", "b", "c", "d", "e", "f", None])
def test_a_graph_is_cut_in_two(name: str | None) -> None:
    graph = parse_graph(TEXT)
    first, second = split(graph, graph.return_node if name is None else named(graph, name)[0])
    x, y = torch.linspace(-1, 1, 4), torch.linspace(0, 2, 4)
    between = first(x, y)
    found = second(*between) if isinstance(between, tuple) else second(between)
    torch.testing.assert_close([found, x, y], answer(parse_graph(TEXT)))
    assert str(graph) == TEXT
