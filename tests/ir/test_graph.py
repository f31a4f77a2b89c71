"""The graph: what can be asked, what can be changed, and what is refused."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import hypothesis
import pytest
import torch
from hypothesis import strategies

from rekindle.errors import GraphError
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Node, Use, Value
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import BOOL, FLOAT, INT, TENSOR, ListType
from rekindle.ir.verifier import verify
from tests.support.shares import portion

STRAIGHT = """graph(%a : Tensor,
      %b : Tensor):
  %c : Tensor = t::one(%a, %b)
  %d : Tensor = t::two(%c, %a)
  %e : Tensor = t::three(%d, %c)
  return (%e)
"""

BRANCHES = """graph(%a : Tensor,
      %c : bool):
  %b : Tensor = t::before(%a)
  %y : Tensor = prim::If(%c)
    block0():
      %t : Tensor = t::then(%b)
      %u : Tensor = prim::If(%c)
        block0():
          %v : Tensor = t::deep(%t)
          -> (%v)
        block1():
          -> (%t)
      -> (%u)
    block1():
      %o : Tensor = t::otherwise(%a)
      -> (%o)
  %z : Tensor = t::after(%y)
  return (%z)
"""


def nodes_of(graph: Graph) -> dict[str, Node]:
    """Nodes by the last part of their kind."""
    return {node.kind.partition("::")[2]: node for node in graph.all_nodes()}


def values_of(graph: Graph) -> dict[str, Value]:
    values = {value.name: value for value in graph.inputs}
    values.update((output.name, output) for node in graph.all_nodes() for output in node.outputs)
    return values


def kinds(graph: Graph) -> str:
    return " ".join(node.kind.partition("::")[2] for node in graph.nodes)


# -------------------------------------------------------------------------------------------------------------- reading


def test_values_know_their_uses() -> None:
    graph = parse_graph(STRAIGHT)
    nodes, values = nodes_of(graph), values_of(graph)
    assert values["a"].uses == [Use(nodes["one"], 0), Use(nodes["two"], 1)]
    assert values["e"].uses == [Use(graph.return_node, 0)]
    assert values["c"].node is nodes["one"]
    assert nodes["one"].output is values["c"]
    assert [node.has_uses for node in graph.nodes] == [True] * 3
    assert (values["a"].base_name, values["a"].graph) == ("a", graph)
    assert graph.find_value("d") is values["d"]
    assert graph.find_value("q") is None


def test_the_list_is_circular() -> None:
    graph = parse_graph(STRAIGHT)
    end = graph.return_node
    one, two, three = graph.nodes
    assert (end.next, end.prev, one.prev, three.next) == (one, three, end, end)
    assert (one.next, two.next) == (two, three)
    assert not Graph().return_node.next.inputs
    assert Graph().block.is_empty
    with pytest.raises(GraphError, match=r"^prim::Param is in no block$"):
        _ = graph.param_node.next


def test_single_inputs_and_outputs() -> None:
    graph = parse_graph(STRAIGHT)
    one = nodes_of(graph)["one"]
    with pytest.raises(GraphError, match=r"^t::one has 2 inputs, not one$"):
        _ = one.input
    with pytest.raises(GraphError, match=r"^prim::Return has 0 outputs, not one$"):
        _ = graph.return_node.output


def test_attributes() -> None:
    node = Graph().create("t::f", attributes={"i": 1, "s": "x", "g": Graph()})
    assert (node["i"], node.get_string("s")) == (1, "x")
    assert isinstance(node.get_graph("g"), Graph)
    node.set_attribute("f", 1.5)
    assert list(node.attributes) == ["i", "s", "g", "f"]
    with pytest.raises(GraphError, match=r"^t::f has no attribute 'x'$"):
        _ = node["x"]
    with pytest.raises(GraphError, match=r"^attribute 'i' of t::f is not a string$"):
        node.get_string("i")
    with pytest.raises(GraphError, match=r"^attribute 'i' of t::f is not a graph$"):
        node.get_graph("i")


def test_nodes_of_all_blocks_come_in_order() -> None:
    graph = parse_graph(BRANCHES)
    assert list(nodes_of(graph)) == ["before", "If", "then", "deep", "otherwise", "after"]
    assert [node.kind for node in graph.find_nodes("prim::If")] == ["prim::If"] * 2
    deep = nodes_of(graph)["deep"]
    assert deep.owning_block is not None
    assert deep.owning_block.parent is nodes_of(graph)["then"].owning_block
    assert graph.block.contains(deep)
    assert not deep.owning_block.contains(nodes_of(graph)["then"])


def test_order_of_nodes() -> None:
    graph = parse_graph(BRANCHES)
    nodes = nodes_of(graph)
    branch = graph.find_nodes("prim::If")[0]
    assert nodes["before"].is_before(nodes["after"])
    assert nodes["before"].is_before(nodes["deep"])
    assert nodes["deep"].is_before(nodes["after"])
    assert nodes["then"].is_before(nodes["deep"])
    assert branch.is_before(nodes["deep"]), "a node counts as before those in its own blocks"
    assert nodes["deep"].is_after(branch)
    assert not branch.is_before(branch)
    assert not branch.is_after(branch)
    assert nodes["after"].is_before(graph.return_node)
    assert graph.param_node.is_before(nodes["before"])
    with pytest.raises(GraphError, match=r"^t::then and t::otherwise are in different branches$"):
        nodes["then"].is_before(nodes["otherwise"])


@pytest.mark.parametrize("where", ["front", "middle", "end"])
def test_order_after_many_insertions_at_one_place(where: str) -> None:
    """There is room for some nodes between two; then the block is renumbered."""
    graph = Graph()
    first, last = (graph.append_node(graph.create("t::f", outputs=0)) for _ in range(2))
    place = {"front": first, "middle": last, "end": graph.return_node}[where]
    inserted = [graph.create("t::g", outputs=0).insert_before(place) for _ in range(300)]
    for a, b in itertools.pairwise(inserted):
        assert a.is_before(b)
    assert (first.is_before(inserted[0]), inserted[-1].is_before(last)) == (where != "front", where != "end")
    verify(graph)


# --------------------------------------------------------------------------------------------------------------- values


def names_of(names: list[str]) -> list[str]:
    """The names of values that are given these, one after the other."""
    graph = Graph()
    values = [graph.add_input() for _ in names]
    for value, name in zip(values, names):
        value.set_name(name)
    return [value.name for value in values]


def names_in_torch(names: list[str]) -> list[str]:
    graph = torch._C.Graph()
    values = [graph.addInput() for _ in names]
    for value, name in zip(values, names):
        value.setDebugName(name)
    return [value.debugName() for value in values]


def test_whoever_had_a_name_gets_a_number() -> None:
    assert names_of(["x", "y", "x", "x"]) == ["x.1", "y", "x.3", "x"]
    assert names_of(["x.1", "x.1", "x"]) == ["x.2", "x.1", "x"]


NAMES = strategies.sampled_from(["x", "x.1", "x.2", "x.3", "y", "x.y", "x.y.1", "x.01", "x.", "x.10", ".1", "x.1.1"])


@hypothesis.given(strategies.lists(NAMES, max_size=12))
def test_names_are_those_of_torchscript(names: list[str]) -> None:
    assert names_of(names) == names_in_torch(names)


def test_names() -> None:
    graph = Graph()
    value = graph.add_input("x.1")
    assert (value.name, value.base_name, value.has_name) == ("x.1", "x", True)
    value.set_name("")
    assert (value.name, value.base_name, value.has_name) == ("0", "", False)
    assert graph.find_value("x.1") is None
    with pytest.raises(GraphError, match=r"^'12' cannot name a value: digits are the names of values without one$"):
        value.set_name("12")
    with pytest.raises(GraphError, match=r"^'1 2' cannot name a value: digits are the names of values without one$"):
        value.set_name("1 2")
    for name in ("a,b", "a:b", "(a)", "a  b", " a", "a=b", "a#b"):
        with pytest.raises(GraphError, match=r"cannot name a value: the text of a graph cannot contain such a name$"):
            value.set_name(name)
    assert value.name == "0"
    for name in ("my-key", "a/b", "two words", "$1.x"):
        assert value.set_name(name).name == name
        assert parse_graph(str(graph)).inputs[0].name == name


def test_metadata_is_taken_over() -> None:
    graph = Graph()
    old, new = graph.add_input("x", INT), graph.add_input("y", FLOAT)
    new.copy_metadata(old)
    assert (old.name, new.name, new.type) == ("x.1", "x", INT)


def test_uses_are_replaced() -> None:
    graph = parse_graph(STRAIGHT)
    nodes, values = nodes_of(graph), values_of(graph)
    values["a"].replace_all_uses_with(values["b"])
    assert [value.name for value in nodes["one"].inputs] == ["b", "b"]
    assert not values["a"].has_uses
    assert values["b"].uses == [Use(nodes["one"], 1), Use(nodes["one"], 0), Use(nodes["two"], 1)]
    values["b"].replace_all_uses_with(values["b"])
    verify(graph)


def test_uses_behind_a_node_are_replaced() -> None:
    graph = parse_graph(BRANCHES)
    nodes, values = nodes_of(graph), values_of(graph)
    values["a"].replace_all_uses_after_node_with(nodes["before"], values["b"])
    assert nodes["before"].inputs[0] is values["a"]
    assert nodes["otherwise"].inputs[0] is values["b"], "those in blocks of later nodes too"
    verify(graph)


def test_outputs_of_one_node_replace_those_of_another() -> None:
    graph = parse_graph(STRAIGHT)
    one, two, three = graph.nodes
    two.replace_all_uses_with(one)
    assert [value.name for value in three.inputs] == ["c", "c"]
    with pytest.raises(GraphError, match=r"^prim::Return has 0 outputs, t::one 1$"):
        one.replace_all_uses_with(graph.return_node)


# --------------------------------------------------------------------------------------------------- inputs and outputs


def test_inputs_are_edited() -> None:
    graph = Graph()
    a, b, c = (graph.add_input(name) for name in "abc")
    node = graph.append_node(graph.create("t::f", [a, b]))
    node.insert_input(1, c)
    assert [value.name for value in node.inputs] == ["a", "c", "b"]
    assert b.uses == [Use(node, 2)]
    assert node.replace_input(0, c) is a
    assert c.uses == [Use(node, 1), Use(node, 0)]
    node.replace_input_with(c, a)
    assert [value.name for value in node.inputs] == ["a", "a", "b"]
    node.remove_input(0)
    assert (a.uses, b.uses) == ([Use(node, 0)], [Use(node, 1)])
    node.remove_all_inputs()
    assert not node.inputs
    assert not any(value.has_uses for value in (a, b, c))
    verify(graph)


def test_outputs_are_edited() -> None:
    graph = Graph()
    node = graph.append_node(graph.create("t::f", types=[INT, FLOAT]))
    middle = node.insert_output(1, BOOL)
    assert [output.type for output in node.outputs] == [INT, BOOL, FLOAT]
    assert [output.offset for output in node.outputs] == [0, 1, 2]
    middle.set_name("m")
    node.erase_output(1)
    assert [output.offset for output in node.outputs] == [0, 1]
    assert graph.find_value("m") is None
    graph.add_output(node.outputs[0])
    with pytest.raises(GraphError, match=r"^output %0 of t::f is still used$"):
        node.erase_output(0)
    verify(graph)


def test_block_inputs_and_outputs_are_edited() -> None:
    graph = Graph()
    a = graph.add_input("a", INT)
    first = graph.block.insert_input(0, "first", FLOAT)
    assert [value.name for value in graph.inputs] == ["first", "a"]
    assert (graph.add_output(a), graph.add_output(first)) == (0, 1)
    graph.block.insert_output(0, first)
    graph.block.replace_output(1, first)
    assert [value.name for value in graph.outputs] == ["first"] * 3
    graph.block.erase_output(0)
    graph.block.erase_input(1)
    assert [value.name for value in graph.inputs] == ["first"]
    verify(graph)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda node, value: node.replace_input(-1, value), "t::f has no input -1"),
        (lambda node, value: node.replace_input(1, value), "t::f has no input 1"),
        (lambda node, value: node.insert_input(2, value), "t::f has no input 2"),
        (lambda node, value: node.remove_input(1), "t::f has no input 1"),
        (lambda node, value: node.insert_output(3), "t::f has no output 3"),
        (lambda node, value: node.erase_output(1), "t::f has no output 1"),
        (lambda node, value: node.erase_block(0), "t::f has no block 0"),
    ],
)
def test_what_is_not_there_cannot_be_edited(action: object, message: str) -> None:
    graph = Graph()
    value = graph.add_input("a")
    node = graph.append_node(graph.create("t::f", [value]))
    before = str(graph)
    with pytest.raises(GraphError) as caught:
        action(node, value)  # type: ignore[operator]
    assert str(caught.value) == message
    assert str(graph) == before
    verify(graph)


# ------------------------------------------------------------------------------------------------------------ ownership


def test_values_of_another_graph_are_refused() -> None:
    graph, other = Graph(), Graph()
    mine, foreign = graph.add_input("mine"), other.add_input("foreign")
    node = graph.append_node(graph.create("t::f", [mine]))
    message = r"^%foreign belongs to another graph than t::f$"
    with pytest.raises(GraphError, match=message):
        graph.create("t::f", [foreign])
    with pytest.raises(GraphError, match=message):
        node.add_input(foreign)
    with pytest.raises(GraphError, match=message):
        node.insert_input(0, foreign)
    with pytest.raises(GraphError, match=message):
        node.replace_input(0, foreign)
    with pytest.raises(GraphError, match=r"^%foreign belongs to another graph than prim::Return$"):
        graph.add_output(foreign)
    with pytest.raises(GraphError, match=r"^%foreign belongs to another graph than %mine$"):
        mine.replace_all_uses_with(foreign)
    assert not foreign.has_uses
    verify(graph)
    verify(other)


def test_nodes_of_another_graph_are_refused() -> None:
    graph, other = Graph(), Graph()
    mine, foreign = (
        g.append_node(g.create(f"t::{name}", outputs=0)) for g, name in ((graph, "mine"), (other, "foreign"))
    )
    with pytest.raises(GraphError, match=r"^t::new and t::foreign belong to different graphs$"):
        graph.create("t::new").insert_before(foreign)
    with pytest.raises(GraphError, match=r"^t::mine and t::foreign belong to different graphs$"):
        mine.move_after(foreign)
    with (
        pytest.raises(GraphError, match=r"^t::foreign is in no block of this graph$"),
        graph.inserting_before(foreign),
    ):
        pass
    verify(graph)
    verify(other)


def test_a_node_is_inserted_once() -> None:
    graph = Graph()
    node = graph.create("t::f", outputs=0)
    loose = graph.create("t::g", outputs=0)
    with pytest.raises(GraphError, match=r"^cannot insert t::f before t::g, which is in no block$"):
        node.insert_before(loose)
    with pytest.raises(GraphError, match=r"^cannot insert t::f after t::g, which is in no block$"):
        node.insert_after(loose)
    graph.append_node(node)
    with pytest.raises(GraphError, match=r"^t::f is in a block already; move it instead$"):
        graph.append_node(node)
    with pytest.raises(GraphError, match=r"^cannot move t::g: it is in no block; insert it instead$"):
        loose.move_after(node)
    with pytest.raises(GraphError, match=r"^cannot move t::f to t::g, which is in no block$"):
        node.move_after(loose)
    verify(graph)


def test_the_ends_of_a_block_stay() -> None:
    graph = parse_graph(STRAIGHT)
    for end in (graph.param_node, graph.return_node):
        with pytest.raises(GraphError, match=rf"^cannot destroy {end.kind}: it belongs to its block$"):
            end.destroy()
        with pytest.raises(GraphError, match=rf"^cannot move {end.kind}: it belongs to its block$"):
            end.move_after(nodes_of(graph)["one"])
    assert str(graph) == STRAIGHT


# ------------------------------------------------------------------------------------------------- inserting and moving


def test_insertion_points() -> None:
    graph = parse_graph(STRAIGHT)
    one, two, three = graph.nodes

    def insert(name: str) -> None:
        graph.insert_node(graph.create(f"t::{name}", outputs=0))

    insert("end")
    with graph.inserting_before(two):
        insert("b1")
        with graph.inserting_after(two):
            insert("a1")
            insert("a2")
        insert("b2")
    graph.create("t::front", outputs=0).insert_after(graph.param_node)
    graph.block.prepend(graph.create("t::fronter", outputs=0))
    assert kinds(graph) == "fronter front one b1 b2 two a1 a2 three end"
    assert graph.insert_point is graph.return_node
    verify(graph)


def test_an_insertion_point_is_put_back_after_an_error() -> None:
    graph = parse_graph(STRAIGHT)
    with pytest.raises(RuntimeError), graph.inserting_before(nodes_of(graph)["two"]):
        raise RuntimeError
    assert graph.insert_point is graph.return_node


def test_moves() -> None:
    graph = parse_graph(BRANCHES)
    nodes = nodes_of(graph)
    nodes["before"].move_before(nodes["before"])
    branch = graph.find_nodes("prim::If")[0]
    nodes["otherwise"].move_before(branch)
    assert kinds(graph) == "before otherwise If after"
    with pytest.raises(GraphError, match=r"^cannot move prim::If into a block of its own$"):
        branch.move_after(nodes["deep"])
    graph.outputs[0].node.move_before(graph.return_node)
    verify(graph)


def test_operators_are_forgotten_when_inputs_change() -> None:
    graph = Graph()
    a, b = graph.add_input("a"), graph.add_input("b")
    for change in (
        lambda node: node.add_input(b),
        lambda node: node.insert_input(0, b),
        lambda node: node.replace_input(0, b),
        lambda node: node.remove_input(0),
        lambda node: node.remove_all_inputs(),
    ):
        node = graph.create("t::f", [a])
        node._operator = object()  # type: ignore[assignment]
        change(node)
        assert node._operator is None


# ----------------------------------------------------------------------------------------------------------- destroying


def test_destroy_is_refused_while_used() -> None:
    graph = parse_graph(STRAIGHT)
    one, two, three = graph.nodes
    with pytest.raises(GraphError, match=r"^cannot destroy t::one: %c is still used by t::two$"):
        one.destroy()
    assert str(graph) == STRAIGHT
    graph.block.erase_output(0)
    for node in (three, two, one):
        node.destroy()
    assert str(graph) == "graph(%a : Tensor,\n      %b : Tensor):\n  return ()\n"
    assert not any(value.has_uses for value in graph.inputs)
    verify(graph)


def test_destroying_a_node_destroys_its_blocks() -> None:
    graph = parse_graph(BRANCHES)
    after, branch = graph.outputs[0].node, graph.find_nodes("prim::If")[0]
    values = values_of(graph)
    graph.insert_point = branch.blocks[0].return_node
    graph.block.erase_output(0)
    after.destroy()
    branch.destroy()
    assert kinds(graph) == "before"
    assert not values["b"].has_uses
    assert graph.find_value("v") is None
    assert graph.insert_point is graph.return_node
    verify(graph)


def test_blocks_are_erased() -> None:
    graph = parse_graph(BRANCHES)
    branch = graph.find_nodes("prim::If")[0]
    with graph.inserting_at_end(branch.blocks[1]):
        branch.erase_block(1)
        graph.insert_node(graph.create("t::new", outputs=0))
    assert [len(branch.blocks), kinds(graph)] == [1, "before If new after"]
    assert graph.insert_point is graph.return_node


def test_the_insertion_point_moves_on_when_its_node_is_destroyed() -> None:
    graph = parse_graph(STRAIGHT)
    loose = graph.create("t::loose", outputs=0).insert_before(nodes_of(graph)["two"])
    graph.insert_point = loose
    loose.destroy()
    assert graph.insert_point is nodes_of(graph)["two"]


def test_a_node_that_stands_nowhere_can_be_destroyed() -> None:
    graph = Graph()
    a = graph.add_input("a")
    graph.create("t::f", [a]).destroy()
    assert not a.has_uses


# ----------------------------------------------------------------------------------------------- changing while walking


def test_nodes_may_be_destroyed_and_inserted_while_walking() -> None:
    graph = Graph()
    for index in range(6):
        graph.append_node(graph.create(f"t::n{index}", outputs=0))
    seen = []
    for node in graph.nodes:
        seen.append(node.kind)
        if node.kind == "t::n1":
            node.destroy()
        elif node.kind == "t::n2":
            graph.create("t::new", outputs=0).insert_after(node)
        elif node.kind == "t::n3":
            node.next.destroy()
    assert seen == ["t::n0", "t::n1", "t::n2", "t::new", "t::n3", "t::n5"]
    assert kinds(graph) == "n0 n2 new n3 n5"


def test_nodes_may_be_destroyed_while_walking_backwards() -> None:
    graph = parse_graph(STRAIGHT)
    graph.block.erase_output(0)
    for node in graph.block.nodes_reversed:
        node.destroy()
    assert graph.block.is_empty


def test_nodes_may_be_destroyed_while_walking_all_blocks() -> None:
    graph = Graph()
    for _ in range(3):
        branch = graph.append_node(graph.create("t::outer", outputs=0))
        branch.add_block().append(graph.create("t::inner", outputs=0))
    seen = []
    for node in graph.all_nodes():
        seen.append(node.kind)
        if node.kind == "t::outer" and node.next.kind == "t::outer":
            node.next.destroy()
    assert seen == ["t::outer", "t::inner", "t::outer", "t::inner"]


def test_uses_may_change_while_they_are_walked() -> None:
    graph = parse_graph(STRAIGHT)
    values = values_of(graph)
    for use in values["a"].uses:
        use.user.replace_input(use.offset, values["b"])
    assert not values["a"].has_uses


# -------------------------------------------------------------------------------------------------------------- copying


def test_a_copy_is_equal_and_apart() -> None:
    graph = parse_graph(BRANCHES)
    weights = torch.ones(20)
    with graph.inserting_before(next(iter(graph.nodes))):
        graph.insert_constant(weights).set_name("w")
    inner = graph.create(
        "prim::fork", attributes={"Subgraph": parse_graph(STRAIGHT), "many": [Graph()], "ints": [1, 2]}
    )
    graph.append_node(inner)
    copy = graph.copy()
    assert str(copy) == str(graph)
    verify(copy)
    twin = copy.find_nodes("prim::fork")[0]
    assert twin["Subgraph"] is not inner["Subgraph"]
    assert twin["many"][0] is not inner["many"][0]  # type: ignore[index]
    assert twin["ints"] == [1, 2]
    assert twin["ints"] is not inner["ints"]
    value = copy.find_value("w")
    assert value is not None
    assert value.node["value"] is weights, "constants are shared"
    copy.outputs[0].set_name("renamed")
    assert "renamed" not in str(graph)


def test_a_clone_comes_from_another_graph() -> None:
    source, target = parse_graph(BRANCHES), Graph()
    a, c = target.add_input("a"), target.add_input("c", BOOL)
    stand_ins = {"a": a, "b": a, "c": c}
    clone = target.create_clone(source.find_nodes("prim::If")[0], lambda value: stand_ins[value.name])
    target.append_node(clone)
    target.add_output(clone.output)
    verify(target)
    assert str(target).splitlines()[2] == "  %y : Tensor = prim::If(%c)"


def test_a_clone_without_a_map_uses_no_value() -> None:
    graph = parse_graph("graph(%x : Tensor):\n  %n : int = prim::Constant[value=3]()\n  return (%n, %x)\n")
    copy = graph.create_clone(graph.outputs[0].node)
    assert copy.kind == "prim::Constant"
    assert copy["value"] == 3
    source = parse_graph(BRANCHES)
    with pytest.raises(GraphError, match=r"^%c is used outside of its scope$"):
        Graph().create_clone(source.find_nodes("prim::If")[0])


def test_graphs_are_inserted() -> None:
    graph = parse_graph(STRAIGHT)
    callee = parse_graph("graph(%x : Tensor):\n  %y : Tensor = t::called(%x)\n  return (%y, %x)\n")
    with graph.inserting_before(nodes_of(graph)["two"]):
        results = graph.insert_graph(callee, [graph.inputs[1]])
    assert [value.name for value in results] == ["y", "b"]
    assert kinds(graph) == "one called two three"
    with pytest.raises(GraphError, match=r"^the graph takes 1 inputs, got 0$"):
        graph.insert_graph(callee, [])
    verify(graph)


# ------------------------------------------------------------------------------------------------------------ constants


def test_constants() -> None:
    graph = Graph()
    assert graph.insert_constant(True).node.attributes == {"value": 1}
    assert graph.insert_constant([1]).node["value"] == ConstantObject([1])
    assert graph.insert_constant([], ListType(INT)).type == ListType(INT)
    assert graph.insert_constant(torch.float32).type == INT
    assert graph.insert_constant(torch.ones(1)).type == TENSOR
    with pytest.raises(GraphError, match=r"^a function cannot be a constant of a program$"):
        graph.insert_constant(test_constants)
    verify(graph)


# ---------------------------------------------------------------------------------------------------- any legal editing


class Editor:
    """Does one legal edit after the other, chosen by ``choose``, to a graph with nested blocks."""

    def __init__(self, choose: random.Random) -> None:
        self.graph = Graph()
        self.choose = choose
        for index in range(3):
            self.graph.add_input(f"i{index}")
        self.graph.add_output(self.graph.inputs[0])

    def step(self) -> None:
        self.choose.choice(
            [self.insert, self.insert, self.nest, self.move, self.rewire, self.remove, self.rename, self.change_results]
        )()

    def nodes(self) -> list[Node]:
        return list(self.graph.all_nodes())

    def place(self) -> Node:
        """A node before which something can be inserted."""
        ends = [block.return_node for node in self.nodes() for block in node.blocks]
        return self.choose.choice([*self.nodes(), *ends, self.graph.return_node])

    def visible(self, node: Node) -> list[Value]:
        """The values that ``node`` may use."""
        found: list[Value] = []
        at: Node | None = node
        while at is not None:
            block = at.owning_block
            assert block is not None
            found += block.inputs
            found += [output for other in block.nodes if other.is_before(at) for output in other.outputs]
            at = block.owning_node
        return found

    def insert(self) -> None:
        place = self.place()
        inputs = self.choose.choices(self.visible(place), k=self.choose.randrange(3))
        node = self.graph.create("t::f", inputs, outputs=self.choose.randrange(3))
        node.insert_before(place)

    def nest(self) -> None:
        place = self.place()
        node = self.graph.create("t::nest", self.choose.choices(self.visible(place), k=1))
        node.insert_before(place)
        for _ in range(self.choose.randrange(1, 3)):
            block = node.add_block()
            if self.choose.random() < 0.5:
                block.add_input("p")
            block.add_output(self.choose.choice(self.visible(block.return_node)))

    def move(self) -> None:
        if not self.nodes():
            return
        node, place = self.choose.choice(self.nodes()), self.place()
        if place is node or any(block.contains(place) for block in node.blocks):
            return
        # It may go where all it uses is visible, and from where all that use it can see it.
        needed = [value for value in self._needed(node)]
        probe = self.graph.create("t::probe", outputs=0).insert_before(place)
        legal = all(value in self.visible(probe) for value in needed)
        legal = legal and all(self._sees(use.user, probe, node) for output in node.outputs for use in output.uses)
        probe.destroy()
        if legal:
            node.move_before(place)

    def _needed(self, node: Node) -> list[Value]:
        inside = {output for block in node.blocks for inner in block.nodes for output in inner.outputs}
        inside |= {value for block in node.blocks for value in block.inputs}
        found = list(node.inputs)
        for block in node.blocks:
            found += [value for inner in block.nodes for value in self._needed(inner) if value not in inside]
            found += [value for value in block.outputs if value not in inside]
        return [value for value in found if value not in inside]

    def _sees(self, user: Node, place: Node, moved: Node) -> bool:
        if user is moved or any(block.contains(user) for block in moved.blocks):
            return False
        block = place.owning_block
        at: Node | None = user
        while at is not None and at.owning_block is not block:
            assert at.owning_block is not None
            at = at.owning_block.owning_node
        return at is not None and at is not moved and place.is_before(at)

    def rewire(self) -> None:
        nodes = [node for node in self.nodes() if node.inputs]
        if nodes:
            node = self.choose.choice(nodes)
            node.replace_input(self.choose.randrange(len(node.inputs)), self.choose.choice(self.visible(node)))

    def remove(self) -> None:
        unused = [node for node in self.nodes() if not node.has_uses]
        if unused:
            self.choose.choice(unused).destroy()

    def rename(self) -> None:
        values = [output for node in self.nodes() for output in node.outputs] + list(self.graph.inputs)
        self.choose.choice(values).set_name(self.choose.choice(["x", "x.1", "y", ""]))

    def change_results(self) -> None:
        if self.choose.random() < 0.5 and len(self.graph.outputs) > 1:
            self.graph.block.erase_output(self.choose.randrange(len(self.graph.outputs)))
        else:
            self.graph.add_output(self.choose.choice(self.visible(self.graph.return_node)))


@hypothesis.given(strategies.randoms(use_true_random=False), strategies.integers(1, 60))
@hypothesis.settings(max_examples=portion(60, one_in=10), suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_legal_edits_keep_the_graph_valid(choose: random.Random, steps: int) -> None:
    editor = Editor(choose)
    for _ in range(steps):
        editor.step()
        verify(editor.graph)
    text = str(editor.graph)
    assert str(parse_graph(text)) == text
    copy = editor.graph.copy()
    verify(copy)
    assert len(list(copy.all_nodes())) == len(editor.nodes())


def test_what_is_settled_stays_so_until_an_edit() -> None:
    graph = parse_graph(STRAIGHT)
    assert not graph.is_settled("dead code")
    graph.settle("dead code")
    graph.settle("equal expressions")
    copy = graph.copy()
    assert graph.is_settled("dead code")
    assert copy.is_settled("dead code")
    node = next(iter(graph.nodes))
    node.replace_input(1, graph.inputs[0])
    assert not graph.is_settled("dead code")
    assert not graph.is_settled("equal expressions")
    assert copy.is_settled("dead code")
    assert copy.is_settled("equal expressions")
    graph.settle("dead code")
    assert graph.is_settled("dead code")
    assert not graph.is_settled("equal expressions")


@pytest.mark.parametrize(
    "edit",
    [
        lambda graph: graph.append_node(graph.create("t::four", [graph.inputs[0]])),
        lambda graph: graph.block.replace_output(0, graph.inputs[0]),
        lambda graph: graph.add_output(graph.inputs[0]),
        lambda graph: graph.inputs[0].set_type(INT),
        lambda graph: next(iter(graph.nodes)).set_attribute("x", 1),
        lambda graph: next(iter(graph.nodes)).outputs[0].replace_all_uses_with(graph.inputs[0]),
        lambda graph: next(iter(graph.nodes)).add_output(),
        lambda graph: next(iter(graph.nodes)).add_block(),
        lambda graph: graph.add_input(),
    ],
)
def test_every_edit_unsettles(edit: Callable[[Graph], object]) -> None:
    graph = parse_graph(STRAIGHT)
    graph.settle("dead code")
    edit(graph)
    assert not graph.is_settled("dead code")


def test_the_text_of_a_type_is_not_a_type() -> None:
    graph = parse_graph(STRAIGHT)
    before = str(graph)
    message = r"^a str is not a type; rekindle\.ir\.text\.type_parser\.parse_type parses a string$"
    with pytest.raises(GraphError, match=message):
        graph.inputs[0].set_type("Tensor")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=message):
        graph.create_constant([1, 2], "List[float]")  # type: ignore[arg-type]
    assert str(graph) == before
