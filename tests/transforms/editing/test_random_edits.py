"""Random edits: what is legal leaves a valid graph, what is not raises and leaves the graph as it was."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import rekindle
from rekindle.errors import GraphError, RekindleError
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.transforms.editing import extract, move, outline, replace, split
from tests.support.shares import portion

PROGRAM = """graph(%x : Tensor,
      %y : Tensor,
      %n : int):
  %one : int = prim::Constant[value=1]()
  %yes : bool = prim::Constant[value=1]()
  %a : Tensor = aten::tanh(%x)
  %b : Tensor = aten::mul(%a, %y)
  %big : bool = aten::gt(%n, %one)
  %c : Tensor = prim::If(%big)
    block0():
      %d : Tensor = aten::sub(%b, %a, %one)
      %e : Tensor = aten::neg(%d)
      -> (%e)
    block1():
      %f : Tensor = aten::sin(%b)
      -> (%f)
  %g : Tensor = prim::Loop(%n, %yes, %c)
    block0(%i : int, %h : Tensor):
      %j : Tensor = aten::add(%h, %a, %i)
      %k : Tensor = aten::cos(%j)
      -> (%yes, %k)
  %l : Tensor = aten::clone(%g, %none)
  %m : Tensor = aten::add_(%l, %x, %one)
  %o : Tensor = aten::mul(%l, %c)
  return (%o)
""".replace("  %l", "  %none : NoneType = prim::Constant()\n  %l")
FOREIGN = parse_graph("graph(%x : Tensor):\n  %f : Tensor = aten::exp(%x)\n  return (%f)\n")


def answer(graph: Graph) -> list[torch.Tensor]:
    x, y = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0, 2, 6).reshape(2, 3)
    found = rekindle.create_function(graph)(x, y, 2)
    return [found, x, y]


def visible_before(graph: Graph, node: Node) -> list[Value]:
    """Tensors that may be used at the place of ``node``."""
    found: list[Value] = []
    at: Node | None = node
    while at is not None and at.owning_block is not None:
        block = at.owning_block
        found.extend(block.inputs)
        for other in block.nodes:
            if other is at:
                break
            found.extend(other.outputs)
        at = block.owning_node
    return [value for value in found if value.type.kind == "TensorType"]


def pick_node(draw: st.DataObject, graph: Graph, label: str = "node") -> Node:
    return draw.draw(st.sampled_from(list(graph.all_nodes())), label=label)


# ---------------------------------------------------------------------------------------- edits that may change answers


def build(draw: st.DataObject, graph: Graph) -> None:
    node = pick_node(draw, graph)
    values = visible_before(graph, node)
    one, other = draw.draw(st.sampled_from(values)), draw.draw(st.sampled_from(values))
    with graph.inserting_before(node) as make:
        result = make.tanh(one) * make(other) + 2
    if draw.draw(st.booleans()):
        tensors = [index for index, value in enumerate(node.inputs) if value.type.kind == "TensorType"]
        if tensors:
            node.replace_input(draw.draw(st.sampled_from(tensors)), result)


def halved(x: torch.Tensor, n: int) -> torch.Tensor:
    for _ in range(n):
        if x.dim() > 5:
            x = x / 2
    return x


def put_in_code(draw: st.DataObject, graph: Graph) -> None:
    node = pick_node(draw, graph)
    value = draw.draw(st.sampled_from(visible_before(graph, node)))
    with graph.transaction():
        with graph.inserting_before(node) as make:
            put = make.inline if draw.draw(st.booleans()) else make.call
            result = put(halved, value, draw.draw(st.integers(0, 3)))
        value.replace_all_uses_after_node_with(result.value.node, result)


def destroy(draw: st.DataObject, graph: Graph) -> None:
    pick_node(draw, graph).destroy()


def shuffle(draw: st.DataObject, graph: Graph) -> None:
    """Raw moves, which may do anything: all of them or none."""
    with graph.transaction():
        for _ in range(draw.draw(st.integers(1, 3))):
            pick_node(draw, graph).move_before(pick_node(draw, graph, "place"))


def use_anything(draw: st.DataObject, graph: Graph) -> None:
    values = [value for node in graph.all_nodes() for value in (*node.outputs, *node.inputs)]
    with graph.transaction():
        node = pick_node(draw, graph)
        index = draw.draw(st.integers(0, 3))
        node.replace_input(index, draw.draw(st.sampled_from([*values, *FOREIGN.inputs])))


def take_away(draw: st.DataObject, graph: Graph) -> None:
    node = pick_node(draw, graph)
    what = draw.draw(st.sampled_from(["output", "block", "input", "attribute", "move in"]))
    if what == "output":
        node.erase_output(draw.draw(st.integers(0, 2)))
    elif what == "input":
        graph.erase_input(draw.draw(st.integers(0, 4)))
    elif what == "attribute":
        node.remove_attribute("nothing")
    elif what == "move in" and node.blocks:
        node.move_before(node.blocks[0].return_node)
    elif what == "block":
        with graph.transaction():
            node.erase_block(draw.draw(st.integers(0, 1)))


EDITS = [build, put_in_code, destroy, shuffle, use_anything, take_away]


# --------------------------------------------------------------------------------------------- edits that keep answers


def pick_nodes(draw: st.DataObject, graph: Graph) -> list[Node]:
    block = pick_node(draw, graph).owning_block
    assert block is not None
    nodes = [node for node in block.nodes if node.kind != "prim::Constant"]
    hypothesis.assume(nodes)
    return draw.draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3, unique=True), label="nodes")


def move_some(draw: st.DataObject, graph: Graph) -> None:
    nodes = pick_nodes(draw, graph)
    block = nodes[0].owning_block
    assert block is not None
    move(nodes, before=draw.draw(st.sampled_from([*block.nodes, block.return_node]), label="place"))


def outline_some(draw: st.DataObject, graph: Graph) -> None:
    outline(pick_nodes(draw, graph))


def replace_some(draw: st.DataObject, graph: Graph) -> None:
    nodes = pick_nodes(draw, graph)
    replace(nodes, extract(nodes))


def cut(draw: st.DataObject, graph: Graph) -> None:
    place = draw.draw(st.sampled_from([*graph.nodes, graph.return_node]))
    first, second = split(graph, place)
    verify(first.graph)
    verify(second.graph)


PRESERVING = [move_some, outline_some, replace_some, cut]


def attempt(edit: Callable[[st.DataObject, Graph], None], draw: st.DataObject, graph: Graph) -> bool:
    """Edit, or raise an error that says why not and leave the graph unchanged."""
    before, nodes = str(graph), list(graph.all_nodes())
    try:
        edit(draw, graph)
    except RekindleError:
        assert str(graph) == before
        assert list(graph.all_nodes()) == nodes
        verify(graph)
        return False
    verify(graph)
    return True


@hypothesis.settings(max_examples=portion(60), deadline=None, derandomize=True, phases=[hypothesis.Phase.generate])
@hypothesis.given(st.data())
def test_every_edit_leaves_a_valid_graph_or_the_one_before(draw: st.DataObject) -> None:
    graph = parse_graph(PROGRAM)
    for _ in range(5):
        attempt(draw.draw(st.sampled_from([*EDITS, *PRESERVING])), draw, graph)
        if not any(True for _ in graph.all_nodes()):
            break


@hypothesis.settings(max_examples=portion(15), deadline=None, derandomize=True, phases=[hypothesis.Phase.generate])
@hypothesis.given(st.data())
def test_moving_outlining_and_replacing_keep_the_answer(draw: st.DataObject) -> None:
    graph = parse_graph(PROGRAM)
    for _ in range(3):
        attempt(draw.draw(st.sampled_from(PRESERVING)), draw, graph)
    torch.testing.assert_close(answer(graph), answer(parse_graph(PROGRAM)), rtol=0, atol=0)


def test_a_misuse_that_is_told() -> None:
    graph = parse_graph(PROGRAM)
    choice = graph.find_nodes("prim::If")[0]
    for misuse, message in (
        (lambda: choice.destroy(), "cannot destroy prim::If: %c is still used by prim::Loop"),
        (lambda: choice.move_before(choice.blocks[0].return_node), "cannot move prim::If into a block of its own"),
        (lambda: graph.erase_input(0), "output %x of prim::Param is still used"),
        (lambda: graph.permute_inputs([0, 1, 1]), "[0, 1, 1] is not an order of 3 inputs"),
        (lambda: choice.remove_attribute("value"), "prim::If has no attribute 'value'"),
        (lambda: choice.named_input("self"), "prim::If has no input 'self'"),
        (lambda: graph.inputs[0].set_name("7"), "'7' cannot name a value: digits are the names of values without one"),
    ):
        with pytest.raises(GraphError) as caught:
            misuse()
        assert str(caught.value) == message
        assert str(graph) == PROGRAM
