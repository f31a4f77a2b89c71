"""The verifier: a valid graph passes, and every rule is broken once, by hand, below the graph's own checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import rekindle.ops as ops
from rekindle.errors import VerificationError
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Node, Use, Value
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.types import BOOL, FLOAT, INT, NONE, STRING, TENSOR, ClassType, DictType, ListType, TupleType, Type
from rekindle.ir.verifier import verify
from tests.ir.torch_corpus import torch_texts

STRAIGHT = """graph(%a : Tensor,
      %b : Tensor):
  %c : Tensor = t::one(%a, %b)
  %d : Tensor = t::two(%c, %a)
  %e : Tensor = t::three(%d, %c)
  return (%e)
"""

CONTROL = """graph(%n : int,
      %c : bool,
      %x : Tensor):
  %y : Tensor = prim::If(%c)
    block0():
      %t : Tensor = t::then(%x)
      -> (%t)
    block1():
      -> (%x)
  %z : Tensor, %k : int = prim::Loop(%n, %c, %y, %n)
    block0(%i : int, %p : Tensor, %q : int):
      %r : Tensor = t::body(%p)
      -> (%c, %r, %i)
  return (%z, %k)
"""


def failure(graph: Graph) -> str:
    with pytest.raises(VerificationError) as caught:
        verify(graph)
    return str(caught.value)


def node(graph: Graph, name: str) -> Node:
    """The node whose kind ends in ``name``."""
    return next(node for node in graph.all_nodes() if node.kind.endswith(f"::{name}"))


def value(graph: Graph, name: str) -> Value:
    found = graph.find_value(name)
    assert found is not None
    return found


# --------------------------------------------------------------------------------------------------------- valid graphs

TORCH_BREAKS_THESE = {
    # A profiled type is put on the result of an If, though one branch returns a plain Tensor.
    "optimized controlled",
}


def test_graphs_of_torch_are_valid() -> None:
    assert ops is not None  # the operators are known, so calls are checked
    broken = set()
    for name, text in torch_texts():
        if name.startswith("written"):
            continue
        try:
            verify(parse_graph(text))
        except VerificationError:
            broken.add(name)
    assert broken == TORCH_BREAKS_THESE


def test_an_empty_graph_is_valid() -> None:
    verify(Graph())


@pytest.mark.parametrize("text", [STRAIGHT, CONTROL])
def test_valid_graphs(text: str) -> None:
    verify(parse_graph(text))


# ------------------------------------------------------------------------------------------------------------ structure


def unlink(graph: Graph) -> None:
    node(graph, "two")._prev = None


def break_forward_link(graph: Graph) -> None:
    node(graph, "one")._next = None


def swap_positions(graph: Graph) -> None:
    one, two = node(graph, "one"), node(graph, "two")
    one._position, two._position = two._position, one._position


def belong_to_another_block(graph: Graph) -> None:
    node(graph, "two").owning_block = Graph().block


def belong_to_another_graph(graph: Graph) -> None:
    node(graph, "two").graph = Graph()


def lose_the_return_node(graph: Graph) -> None:
    graph.return_node.kind = "prim::End"


def share_the_param_node(graph: Graph) -> None:
    graph.param_node.owning_block = Graph().block


def give_param_an_input(graph: Graph) -> None:
    graph.param_node._inputs.append(value(graph, "a"))


def give_return_an_output(graph: Graph) -> None:
    graph.return_node.add_output()


def give_return_a_block(graph: Graph) -> None:
    graph.return_node.add_block()


def lose_the_insertion_point(graph: Graph) -> None:
    graph.insert_point = graph.create("t::loose")


def insert_at_the_parameters(graph: Graph) -> None:
    graph.insert_point = graph.param_node


def own_the_outermost_block(graph: Graph) -> None:
    graph.block.owning_node = node(graph, "one")


AROUND_TWO = """\
    %c : Tensor = t::one(%a, %b)
  > %d : Tensor = t::two(%c, %a)
    %e : Tensor = t::three(%d, %c)"""

STRUCTURE: list[tuple[Callable[[Graph], None], str]] = [
    (
        unlink,
        """\
t::one: the nodes after this one in the graph are not linked
  > %c : Tensor = t::one(%a, %b)
    %d : Tensor = t::two(%c, %a)
    %e : Tensor = t::three(%d, %c)""",
    ),
    (
        break_forward_link,
        """\
t::one: the nodes after this one in the graph are not linked
  > %c : Tensor = t::one(%a, %b)""",
    ),
    (swap_positions, f"t::two: its position is not after that of the node before it\n{AROUND_TWO}"),
    (belong_to_another_block, f"t::two: it is in the graph, but belongs to another block\n{AROUND_TWO}"),
    (belong_to_another_graph, f"t::two: it belongs to another graph\n{AROUND_TWO}"),
    (lose_the_return_node, "the prim::Return of the graph is not its own"),
    (share_the_param_node, "the prim::Param of the graph is not its own"),
    (give_param_an_input, "the prim::Param of the graph has inputs, or is among the nodes"),
    (give_return_an_output, "the prim::Return of the graph has outputs"),
    (give_return_a_block, "the prim::Return of the graph has a block"),
    (lose_the_insertion_point, "the insertion point, a t::loose, is not in the graph"),
    (insert_at_the_parameters, "the insertion point, a prim::Param, is not in the graph"),
    (own_the_outermost_block, "the outermost block belongs to a node"),
]


@pytest.mark.parametrize(("break_it", "message"), STRUCTURE, ids=lambda item: getattr(item, "__name__", ""))
def test_structure(break_it: Callable[[Graph], None], message: str) -> None:
    graph = parse_graph(STRAIGHT)
    break_it(graph)
    assert failure(graph) == message


def test_a_block_stands_in_one_place() -> None:
    graph = parse_graph(CONTROL)
    branch = node(graph, "If")
    branch._blocks[1] = branch._blocks[0]
    assert failure(graph) == (
        "t::then: it is in two places\n  in block0 of  %y : Tensor = prim::If(%c)\n  > %t : Tensor = t::then(%x)"
    )


def test_blocks_belong_to_their_node() -> None:
    graph = parse_graph(CONTROL)
    branch, loop = node(graph, "If"), node(graph, "Loop")
    branch.blocks[1].owning_node = loop
    assert failure(graph) == (
        "prim::If: one of its blocks belongs to another node\n"
        "  > %y : Tensor = prim::If(%c)\n"
        "    %z : Tensor, %k : int = prim::Loop(%n, %c, %y, %n)"
    )
    branch.blocks[1].owning_node = branch
    branch.blocks[1].graph = Graph()
    assert failure(graph).startswith("prim::If: block1 belongs to another graph\n")


# --------------------------------------------------------------------------------------------------------------- values


def use_before_definition(graph: Graph) -> None:
    node(graph, "two").replace_input(1, value(graph, "e"))


def use_a_loose_value(graph: Graph) -> None:
    node(graph, "two").replace_input(1, graph.create("t::loose").output)


def use_a_foreign_value(graph: Graph) -> None:
    node(graph, "two")._inputs[1] = Graph().add_input("foreign")


def use_an_erased_value(graph: Graph) -> None:
    erased = graph.param_node._outputs.pop(1)
    erased.set_name("")


def forget_a_use(graph: Graph) -> None:
    value(graph, "a")._uses.clear()


def invent_a_use(graph: Graph) -> None:
    value(graph, "b")._uses[Use(node(graph, "two"), 1)] = None


def leave_a_loose_user(graph: Graph) -> None:
    graph.create("t::loose", [value(graph, "c")])


def mix_up_outputs(graph: Graph) -> None:
    value(graph, "d").offset = 1


def share_a_number(graph: Graph) -> None:
    value(graph, "d").unique = value(graph, "a").unique


def take_a_number(graph: Graph) -> None:
    value(graph, "d").unique = 100


def share_a_name(graph: Graph) -> None:
    value(graph, "d")._name = "a"


def leave_a_name(graph: Graph) -> None:
    graph.create("t::loose").output.set_name("left")


VALUES: list[tuple[Callable[[Graph], None], str]] = [
    (
        use_before_definition,
        """\
t::two: %e is used before it is defined
    %c : Tensor = t::one(%a, %b)
  > %d : Tensor = t::two(%c, %e)
    %e : Tensor = t::three(%d, %c)""",
    ),
    (
        use_a_loose_value,
        """\
t::two: %5 is defined by a t::loose that is in no block
    %c : Tensor = t::one(%a, %b)
  > %d : Tensor = t::two(%c, %5)
    %e : Tensor = t::three(%d, %c)""",
    ),
    (
        use_a_foreign_value,
        """\
t::two: %foreign belongs to another graph
    %c : Tensor = t::one(%a, %b)
  > %d : Tensor = t::two(%c, %foreign)
    %e : Tensor = t::three(%d, %c)""",
    ),
    (
        use_an_erased_value,
        """\
t::one: %1 is no longer an output of its node
  > %c : Tensor = t::one(%a, %1)
    %d : Tensor = t::two(%c, %a)
    %e : Tensor = t::three(%d, %c)""",
    ),
    (
        forget_a_use,
        """\
t::one: %a does not know that it is input 0 of it
  > %c : Tensor = t::one(%a, %b)
    %d : Tensor = t::two(%c, %a)
    %e : Tensor = t::three(%d, %c)""",
    ),
    (invent_a_use, f"t::two: %b counts as input 1 of this node, but is not\n{AROUND_TWO}"),
    (
        leave_a_loose_user,
        """\
t::one: %c is used by a t::loose that is not in the graph
  > %c : Tensor = t::one(%a, %b)
    %d : Tensor = t::two(%c, %a)
    %e : Tensor = t::three(%d, %c)""",
    ),
    (mix_up_outputs, f"t::two: its output 0, %d, belongs elsewhere\n{AROUND_TWO}"),
    (share_a_number, f"t::two: two values have the number 0\n{AROUND_TWO}"),
    (take_a_number, f"t::two: the number 100 of %d was not given by the graph\n{AROUND_TWO}"),
    (
        share_a_name,
        """\
t::two: the name %a belongs to another value
    %c : Tensor = t::one(%a, %b)
  > %a : Tensor = t::two(%c, %a)
    %e : Tensor = t::three(%a, %c)""",
    ),
    (leave_a_name, "the name %left belongs to a value that is not in the graph"),
]


@pytest.mark.parametrize(("break_it", "message"), VALUES, ids=lambda item: getattr(item, "__name__", ""))
def test_values(break_it: Callable[[Graph], None], message: str) -> None:
    graph = parse_graph(STRAIGHT)
    break_it(graph)
    assert failure(graph) == message


def test_values_of_a_block_end_with_it() -> None:
    graph = parse_graph(CONTROL)
    graph.block.replace_output(0, value(graph, "t"))
    assert failure(graph) == (
        "prim::Return: %t is used outside of the block that defines it\n"
        "    %y : Tensor = prim::If(%c)\n"
        "    %z : Tensor, %k : int = prim::Loop(%n, %c, %y, %n)\n"
        "  > return (%t, %k)"
    )


def test_outputs_cannot_be_used_in_the_node_itself() -> None:
    graph = parse_graph(CONTROL)
    node(graph, "then").replace_input(0, value(graph, "y"))
    assert failure(graph) == (
        "t::then: %y is used before it is defined\n"
        "  in block0 of  %y : Tensor = prim::If(%c)\n"
        "  > %t : Tensor = t::then(%y)"
    )


def test_one_branch_does_not_see_the_other() -> None:
    graph = parse_graph(CONTROL)
    node(graph, "If").blocks[1].replace_output(0, value(graph, "t"))
    assert failure(graph) == (
        "prim::Return: %t is used outside of the block that defines it\n"
        "  in block1 of  %y : Tensor = prim::If(%c)\n"
        "  > return (%t)"
    )


# --------------------------------------------------------------------------------------------------------- control flow


def retype(name: str, type: Type) -> Callable[[Graph], None]:
    def change(graph: Graph) -> None:
        value(graph, name).set_type(type)

    return change


def edit(name: str, change: Callable[[Graph, Node], object]) -> Callable[[Graph], None]:
    def apply(graph: Graph) -> None:
        change(graph, node(graph, name))

    return apply


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (retype("c", INT), "prim::If: its condition is %c : int, not bool"),
        (edit("If", lambda g, n: n.add_input(value(g, "c"))), "prim::If: it has 2 inputs, not 1"),
        (edit("If", lambda g, n: n.erase_block(1)), "prim::If: it has 1 block, not 2"),
        (edit("If", lambda g, n: n.blocks[0].add_input("extra")), "prim::If: block0 has 1 input, not 0"),
        (edit("If", lambda g, n: n.blocks[1].erase_output(0)), "prim::If: block1 has 0 outputs, not 1"),
        (retype("t", INT), "prim::If: what block0 returns for %y is %t : int, not Tensor"),
        (edit("Loop", lambda g, n: n.remove_all_inputs()), "prim::Loop: it has 0 inputs, at least 2 are needed"),
        (
            edit("Loop", lambda g, n: n.replace_input(0, value(g, "y"))),
            "prim::Loop: its trip count is %y : Tensor, not int",
        ),
        (
            edit("Loop", lambda g, n: n.replace_input(1, value(g, "n"))),
            "prim::Loop: its condition is %n : int, not bool",
        ),
        (edit("Loop", lambda g, n: n.add_block()), "prim::Loop: it has 2 blocks, not 1"),
        (edit("Loop", lambda g, n: n.add_input(value(g, "n"))), "prim::Loop: it has 2 outputs, not 3"),
        (edit("Loop", lambda g, n: n.blocks[0].add_input("extra")), "prim::Loop: block0 has 4 inputs, not 3"),
        (retype("i", FLOAT), "prim::Loop: its counter is %i : float, not int"),
        (
            edit("Loop", lambda g, n: n.replace_input(2, value(g, "n"))),
            "prim::Loop: the first value of %p is %n : int, not Tensor",
        ),
        (edit("Loop", lambda g, n: n.blocks[0].erase_output(1)), "prim::Loop: block0 has 2 outputs, not 3"),
        (
            edit("Loop", lambda g, n: n.blocks[0].replace_output(0, value(g, "i"))),
            "prim::Loop: the condition that block0 returns is %i : int, not bool",
        ),
        (
            edit("Loop", lambda g, n: n.blocks[0].replace_output(2, value(g, "p"))),
            "prim::Loop: the next value of %q is %p : Tensor, not int",
        ),
        (retype("k", BOOL), "prim::Loop: what block0 returns for %k is %i : int, not bool"),
    ],
)
def test_control_flow(break_it: Callable[[Graph], None], message: str) -> None:
    graph = parse_graph(CONTROL)
    break_it(graph)
    assert failure(graph).partition("\n")[0] == message


# --------------------------------------------------------------------------------------------- constants and containers


def alone(kind: str, inputs: list[Type], outputs: list[Type], **attributes: object) -> str:
    """Why a graph of this one node is broken; empty where it is not."""
    graph = Graph()
    values = [graph.add_input("", type) for type in inputs]
    graph.append_node(graph.create(kind, values, types=outputs, attributes=attributes))  # type: ignore[arg-type]
    try:
        verify(graph)
    except VerificationError as error:
        return str(error).partition("\n")[0]
    return ""


POINT = TupleType((INT, FLOAT))


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "attributes", "message"),
    [
        ("Constant", [INT], [INT], {"value": 1}, "it has 1 input, not 0"),
        ("Constant", [], [INT, INT], {"value": 1}, "it has 2 outputs, not 1"),
        ("Constant", [], [INT], {}, "it has no value, but its type is int"),
        ("Constant", [], [INT], {"value": 1.5}, "its type is int, but its value is a float"),
        ("Constant", [], [BOOL], {"value": 2}, "its type is bool, but its value is a int"),
        ("Constant", [], [FLOAT], {"value": "a"}, "its type is float, but its value is a str"),
        ("Constant", [], [STRING], {"value": 1}, "its type is str, but its value is a int"),
        ("Constant", [], [NONE], {"value": 1}, "its type is NoneType, but its value is a int"),
        ("Constant", [], [TENSOR], {"value": 1}, "its type is Tensor, but its value is a int"),
        ("Constant", [], [ListType(INT)], {"value": 1}, "its type is int[], but its value is a int"),
        ("ListConstruct", [INT], [INT], {}, "it makes int, not a list"),
        ("ListConstruct", [INT, FLOAT], [ListType(INT)], {}, "item 1 is %1 : float, not int"),
        ("DictConstruct", [STRING], [DictType(STRING, INT)], {}, "it has 1 input: a key lacks its value"),
        ("DictConstruct", [STRING, FLOAT], [DictType(STRING, INT)], {}, "value 0 is %1 : float, not int"),
        ("DictConstruct", [INT, INT], [DictType(STRING, INT)], {}, "key 0 is %0 : int, not str"),
        ("DictConstruct", [], [INT], {}, "it makes int, not a dict"),
        ("TupleConstruct", [INT], [POINT], {}, "it has 1 input, not 2"),
        ("TupleConstruct", [INT, INT], [POINT], {}, "element 1 is %1 : int, not float"),
        ("TupleConstruct", [], [INT], {}, "it makes int, not a tuple"),
        ("TupleUnpack", [INT], [INT], {}, "it unpacks %0 : int, which is not a tuple"),
        ("TupleUnpack", [POINT], [INT], {}, "it has 1 output, not 2"),
        ("TupleUnpack", [POINT], [INT, INT], {}, "its output is %2 : int, but the tuple holds float there"),
    ],
)
def test_makers(
    kind: str, inputs: list[Type], outputs: list[Type], attributes: dict[str, object], message: str
) -> None:
    assert alone(f"prim::{kind}", inputs, outputs, **attributes) == f"prim::{kind}: {message}"


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (INT, 1),
        (BOOL, 1),
        (FLOAT, 1.5),
        (STRING, "a"),
        (TENSOR, torch.ones(2)),
        (ListType(INT), ConstantObject([1])),
        (POINT, ConstantObject((1, 2.0))),
    ],
)
def test_constants(type: Type, value: object) -> None:
    assert alone("prim::Constant", [], [type], value=value) == ""


def test_attributes_of_classes() -> None:
    net = ClassType("__torch__.Net")
    assert alone("prim::GetAttr", [net], [TENSOR], name="weight") == "", "nothing is known of its attributes"
    net.add_attribute("weight", TENSOR)
    assert alone("prim::GetAttr", [net], [TENSOR], name="weight") == ""
    assert (
        alone("prim::GetAttr", [net], [TENSOR], name="bias") == "prim::GetAttr: __torch__.Net has no attribute 'bias'"
    )


# -------------------------------------------------------------------------------------------------------------- schemas


def test_calls_fit_an_overload() -> None:
    for schema in (
        "verified::pair(Tensor a, Tensor b) -> Tensor",
        "verified::pair.list(t[] a, t b) -> t",
        "verified::pair.more(int a, int b, *, int c) -> int",
    ):
        REGISTRY.register(Operator(parse_schema(schema)))
    graph = parse_graph("graph(%x : int[], %s : str):\n  %y : Tensor = verified::pair(%x, %s)\n  return (%y)\n")
    assert (
        failure(graph)
        == """\
verified::pair: its inputs (int[], str) fit no overload:
    verified::pair(Tensor a, Tensor b) -> Tensor
        argument 'a': %x : int[] is not Tensor
    verified::pair.list(t[] a, t b) -> t
        argument 'b': type variable 't' cannot be both int and str
    verified::pair.more(int a, int b, *, int c) -> int
        it takes 3 inputs, not 2
  > %y : Tensor = verified::pair(%x, %s)"""
    )
    assert alone("verified::pair", [TENSOR, TENSOR], [TENSOR]) == ""
    assert alone("verified::other", [TENSOR], [TENSOR]) == "verified::other: there is no operator 'verified::other'"


def test_kinds_without_an_operator() -> None:
    assert alone("prim::nothing_of_that_name", [INT], [INT]) == ""
    assert alone("unknown::anything", [INT], [INT]) == ""
    assert alone("aten::relu", [TENSOR], [TENSOR]) == ""
    assert alone("aten::nothing", [TENSOR], [TENSOR]) == "aten::nothing: there is no operator 'aten::nothing'"


def test_outputs_are_what_the_schema_returns() -> None:
    relu = "aten::relu(Tensor self) -> Tensor"
    assert alone("aten::relu", [TENSOR], [INT]) == f"aten::relu: its output is %1 : int, but {relu} returns Tensor"
    assert alone("aten::relu", [TENSOR], []) == "aten::relu: it has 0 outputs, not 1"
    assert alone("aten::add", [ListType(INT), ListType(INT)], [ListType(INT)]) == ""
    message = alone("aten::add", [ListType(INT), ListType(INT)], [ListType(FLOAT)])
    assert message == ("aten::add: its output is %2 : float[], but aten::add.t(t[] a, t[] b) -> t[] returns int[]")


def test_a_chosen_operator_fits_its_node() -> None:
    graph = parse_graph("graph(%a : int, %b : float):\n  %y : float = aten::mul(%a, %b)\n  return (%y)\n")
    verify(graph)
    (call,) = graph.nodes
    wrong = REGISTRY.find("aten::mul.int")
    assert wrong is not None
    call.set_operator(wrong)
    assert failure(graph) == (
        "aten::mul: it is set to call aten::mul.int(int a, int b) -> int, but its inputs fit"
        " aten::mul.int_float(int a, float b) -> float: argument 'b': %b : float is not int\n"
        "  > %y : float = aten::mul(%a, %b)"
    )
    call.set_operator(Operator(parse_schema("t::other() -> ()")))
    assert failure(graph).startswith("aten::mul: it is set to call t::other() -> ()\n")


# -------------------------------------------------------------------------------------------------------- around it all


def test_graphs_in_attributes_are_verified() -> None:
    graph, child, grandchild = Graph(), Graph(), parse_graph(STRAIGHT)
    child.append_node(child.create("prim::fork", outputs=0, attributes={"Subgraph": grandchild}))
    graph.append_node(graph.create("t::holds", outputs=0, attributes={"many": [child]}))
    verify(graph)
    swap_positions(grandchild)
    assert failure(graph).startswith("t::two: its position is not after")


def test_the_neighbors_are_shown() -> None:
    """Three on either side, in the block of the node alone."""
    lines = [f"  %{i} : Tensor = t::n{i}(%x)" for i in range(9)]
    graph = parse_graph("\n".join(["graph(%x : Tensor):", *lines, "  return (%8)"]))
    node(graph, "n4").replace_input(0, value_by_number(graph, 8))
    assert failure(graph).splitlines() == [
        "t::n4: %8 is used before it is defined",
        "    %1 : Tensor = t::n1(%x)",
        "    %2 : Tensor = t::n2(%x)",
        "    %3 : Tensor = t::n3(%x)",
        "  > %4 : Tensor = t::n4(%8)",
        "    %5 : Tensor = t::n5(%x)",
        "    %6 : Tensor = t::n6(%x)",
        "    %7 : Tensor = t::n7(%x)",
    ]


def value_by_number(graph: Graph, number: int) -> Value:
    return next(output for node in graph.all_nodes() for output in node.outputs if output.unique == number)


def test_deep_blocks_need_no_recursion() -> None:
    graph = Graph()
    flag = graph.add_input("c", BOOL)
    for _ in range(3000):
        branch = graph.insert_node(graph.create("prim::If", [flag], outputs=0))
        branch.add_block()
        graph.insert_point = branch.add_block().return_node
    verify(graph)
