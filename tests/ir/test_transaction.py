"""All edits or none; and the walk over nodes that come and go."""

from __future__ import annotations

import pytest

from rekindle.errors import GraphError, VerificationError
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify

TEXT = """graph(%a : Tensor,
      %c : bool):
  %b : Tensor = t::before(%a)
  %y : Tensor = prim::If(%c)
    block0():
      %t : Tensor = t::then(%b)
      -> (%t)
    block1():
      %o : Tensor = t::otherwise(%a)
      -> (%o)
  %z : Tensor = t::after(%y)
  return (%z)
"""


def everything(graph: Graph) -> list[object]:
    return [*graph.all_nodes(), *(output for node in graph.all_nodes() for output in node.outputs)]


def test_what_ends_valid_stays() -> None:
    graph = parse_graph(TEXT)
    with graph.transaction():
        first, choice, last = graph.nodes
        first.move_after(choice)  # not valid yet
        choice.blocks[0].nodes.__next__().replace_input(0, graph.inputs[0])
        last.replace_input(0, first.output)
    verify(graph)
    assert [node.kind for node in graph.nodes] == ["prim::If", "t::before", "t::after"]


def test_what_ends_invalid_is_undone() -> None:
    graph = parse_graph(TEXT)
    before = everything(graph)

    def edit() -> None:
        with graph.transaction():
            first, choice, _ = graph.nodes
            choice.blocks[1].add_output(graph.inputs[0])
            first.output.replace_all_uses_with(graph.inputs[0])
            first.destroy()

    with pytest.raises(VerificationError) as caught:
        edit()
    assert (
        str(caught.value)
        == """prim::If: block1 has 2 outputs, not 1
  > %y : Tensor = prim::If(%c)
    %z : Tensor = t::after(%y)"""
    )
    assert str(graph) == TEXT
    assert everything(graph) == before
    verify(graph)


def test_an_error_within_undoes_everything() -> None:
    graph = parse_graph(TEXT)
    before = everything(graph)

    def edit() -> None:
        with graph.transaction():
            choice = graph.find_nodes("prim::If")[0]
            choice.output.replace_all_uses_with(graph.inputs[0])
            choice.destroy()
            graph.add_input("more").set_name("b")
            graph.inputs[0].set_type(graph.inputs[1].type)
            graph.param_node.set_attribute("mark", 1)
            raise KeyError

    with pytest.raises(KeyError):
        edit()
    assert str(graph) == TEXT
    assert everything(graph) == before
    assert graph.find_value("b") is before[0].outputs[0]  # type: ignore[attr-defined]
    verify(graph)


def test_graphs_in_attributes_and_recorded_types_are_restored() -> None:
    graph = parse_graph(TEXT)
    graph.inputs[0].recorded_type = graph.inputs[1].type
    inner, innermost = parse_graph(TEXT), parse_graph(TEXT)
    next(iter(inner.nodes)).set_attribute("Subgraphs", [innermost])
    next(iter(graph.nodes)).set_attribute("Subgraph", inner)
    before = [everything(each) for each in (graph, inner, innermost)]

    def edit() -> None:
        with graph.transaction():
            graph.inputs[0].recorded_type = None
            inner.find_nodes("prim::If")[0].output.replace_all_uses_with(inner.inputs[0])
            innermost.add_output(innermost.inputs[1])
            raise KeyError

    with pytest.raises(KeyError):
        edit()
    assert graph.inputs[0].recorded_type is graph.inputs[1].type
    assert [everything(each) for each in (graph, inner, innermost)] == before
    assert str(innermost) == TEXT
    for each in (graph, inner, innermost):
        verify(each)
    assert len(inner.find_nodes("prim::If")[0].output.uses) == 1
    assert len(innermost.outputs) == 1


def test_what_is_gone_cannot_be_used() -> None:
    graph = parse_graph(TEXT)
    first = next(iter(graph.nodes))
    value = first.output
    value.replace_all_uses_with(graph.inputs[0])
    first.destroy()
    assert first.is_destroyed
    for misuse, message in (
        (lambda: graph.add_output(value), "%5 is gone: its t::before was destroyed, or makes it no more"),
        (lambda: graph.append_node(first), "this t::before was destroyed; make another: graph.create_clone"),
        (lambda: graph.outputs[0].replace_all_uses_with(value),
         "%5 is gone: its t::before was destroyed, or makes it no more"),
        (lambda: graph.add_output(1.5), "a float is not a value of a graph; make a constant of it first"),  # type: ignore[arg-type]
    ):  # fmt: skip
        text = str(graph)
        with pytest.raises(GraphError) as caught:
            misuse()
        assert str(caught.value).replace(f"%{value.name}", "%5") == message
        assert str(graph) == text


def test_the_walk_goes_on_where_nodes_come_and_go() -> None:
    text = "graph(%a : Tensor):\n" + "".join(f"  %n{i} : Tensor = t::n{i}(%a)\n" for i in range(8)) + "  return (%a)\n"
    graph = parse_graph(text)
    seen = []
    for node in graph.nodes:
        seen.append(node.kind)
        if node.kind in ("t::n1", "t::n4"):
            node.next.destroy()
            node.destroy()
        if node.kind == "t::n6":
            node.move_before(graph.return_node.next)
    assert seen == ["t::n0", "t::n1", "t::n3", "t::n4", "t::n6", "t::n7"]


def test_a_walk_that_has_lost_its_place_says_so() -> None:
    graph = parse_graph(TEXT.replace("  %z", "  %u : Tensor = t::one(%a)\n  %v : Tensor = t::two(%a)\n  %z"))

    def walk() -> None:
        for node in graph.nodes:
            if node.kind == "t::one":
                for gone in (node, node.prev, node.next):
                    gone.outputs[0].replace_all_uses_with(graph.inputs[0])
                    gone.destroy()

    with pytest.raises(GraphError) as caught:
        walk()
    assert str(caught.value) == (
        "the walk has lost its place: the t::one at hand and both its neighbors are gone; walk over a list of the nodes"
    )
    verify(graph)
