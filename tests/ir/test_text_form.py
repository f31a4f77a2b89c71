"""The text form: ``torch.jit``'s own texts are read and written unchanged, and so are those of this package."""

from __future__ import annotations

import enum
import re
import textwrap
from pathlib import Path

import torch

from rekindle.errors import Source
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.constants import EnumMember
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.printer import format_type, print_graph, print_head, print_node, tensor_constants
from rekindle.ir.types import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    optional,
)
from tests.ir.torch_corpus import torch_texts


def test_texts_of_torch_come_back() -> None:
    texts = torch_texts()
    assert len(texts) >= 150
    different = [name for name, text in texts if print_graph(parse_graph(text)) != text]
    assert different == []


def again(text: str) -> str:
    return print_graph(parse_graph(text))


# ------------------------------------------------------------------------------------------------------- our own graphs


def every_form() -> Graph:
    """A graph with most of what can be printed."""
    source = Source("def f(x, n):\n    if n > 0:\n        return x\n", "dir with blanks/f.py", 10, 4)
    graph = Graph()
    x = graph.add_input("x.1", TensorType(torch.float32, torch.device("cpu"), (2, None), None, True))
    n = graph.add_input("n", optional(INT))
    graph.insert_constant(1.0)
    graph.insert_constant([1, 2])
    graph.insert_constant([], ListType(INT))
    graph.insert_constant({}, DictType(STRING, INT))
    graph.insert_constant((1, (True, None), "é\n"))
    graph.insert_constant(None, optional(INT))
    graph.insert_constant(torch.ones(3, 4))
    condition = graph.insert_node(graph.create("aten::gt", [n, n], types=[BOOL], range=source.range(18, 23)))
    branch = graph.insert_node(graph.create("prim::If", [condition.output], types=[TENSOR]))
    branch.output.set_name("y")
    then, otherwise = branch.add_block(), branch.add_block()
    with graph.inserting_at_end(then):
        inner = graph.insert_node(graph.create("aten::neg", [x]))
        inner.scope = "__module.a/__module.a.b"
        then.add_output(inner.output)
    otherwise.add_output(x)
    graph.insert_node(graph.create("prim::Print", [x, n], outputs=0, range=source.range(14, 20)))
    child = Graph()
    child.add_output(child.add_input("a", INT))
    fork = graph.create("prim::fork", [n], types=[FutureType(INT)], attributes={"Subgraph": child, "flag": 1})
    graph.insert_node(fork)
    graph.add_output(branch.output)
    return graph


EVERY_FORM = r"""graph(%x.1 : Float(2, *, requires_grad=1, device=cpu),
      %n : int?):
  %2 : float = prim::Constant[value=1.]()
  %3 : int[] = prim::Constant[value=[1, 2]]()
  %4 : int[] = prim::Constant[value=annotate(List[int], [])]()
  %5 : Dict(str, int) = prim::Constant[value=annotate(Dict[str, int],{})]()
  %6 : (int, (bool, NoneType), str) = prim::Constant[value=(1, (True, None), "\303\251\n")]()
  %7 : int? = prim::Constant()
  %8 : Tensor = prim::Constant[value=<Tensor>]()
  %9 : bool = aten::gt(%n, %n) # dir with blanks/f.py:11:9
  %y : Tensor = prim::If(%9)
    block0():
      %11 : Tensor = aten::neg(%x.1), scope: __module.a/__module.a.b
      -> (%11)
    block1():
      -> (%x.1)
   = prim::Print(%x.1, %n) # dir with blanks/f.py:11:5
  %12 : Future[int] = prim::fork_0[flag=1](%n)
  return (%y)
with prim::fork_0 = graph(%a : int):
  return (%a)
"""


def test_every_form() -> None:
    graph = every_form()
    assert str(graph) == EVERY_FORM
    assert again(EVERY_FORM) == EVERY_FORM


def test_parsing_gives_back_what_was_printed() -> None:
    graph = every_form()
    parsed = parse_graph(str(graph), tensors=tensor_constants(graph))
    for old, new in zip(graph.all_nodes(), parsed.all_nodes(), strict=True):
        assert (old.kind, old.scope, old.range.place) == (new.kind, new.scope, new.range.place)
        assert [(v.name, v.unique if not v.has_name else None, v.type) for v in old.outputs] == [
            (v.name, v.unique if not v.has_name else None, v.type) for v in new.outputs
        ]
        assert old.attributes.keys() == new.attributes.keys()
        for name, attribute in old.attributes.items():
            if isinstance(attribute, torch.Tensor):
                assert attribute is new.attributes[name]
            elif not isinstance(attribute, Graph):
                assert attribute == new.attributes[name]


def test_ranges_can_be_left_out() -> None:
    assert "f.py" not in print_graph(every_form(), ranges=False)


def test_single_nodes() -> None:
    branch = every_form().find_nodes("prim::If")[0]
    assert print_node(branch) == (
        "%y : Tensor = prim::If(%9)\n"
        "  block0():\n"
        "    %11 : Tensor = aten::neg(%x.1), scope: __module.a/__module.a.b\n"
        "    -> (%11)\n"
        "  block1():\n"
        "    -> (%x.1)\n"
    )
    assert str(branch) == print_node(branch)
    assert print_head(branch) == "%y : Tensor = prim::If(%9)"
    assert print_head(branch.blocks[0].return_node) == "return (%11)"
    assert print_head(branch.graph.param_node).startswith("inputs (%x.1 : Float(2, *, ")


def test_nested_subgraphs_stand_behind_their_own_graph() -> None:
    text = """graph(%a : int):
  %1 : int = prim::A_0(%a)
  %2 : int = prim::A_1(%1)
  return (%2)
with prim::A_0 = graph(%x : int):
  %1 : int = prim::A_0(%x)
  return (%1)
with prim::A_0 = graph(%y : int):
  return (%y)
with prim::A_1 = graph(%z : int):
  return (%z)
"""
    graph = parse_graph(text)
    outer, last = graph.nodes
    (inner,) = outer.get_graph("Subgraph").nodes
    assert [node.kind for node in (outer, last, inner)] == ["prim::A"] * 3
    assert [inner.get_graph("Subgraph").inputs[0].name, last.get_graph("Subgraph").inputs[0].name] == ["y", "z"]
    assert print_graph(graph) == text


def test_a_kind_that_ends_in_a_number_is_no_reference() -> None:
    text = "graph(%a : int):\n  %1 : int = foo::bar_0(%a)\n  return (%1)\n"
    assert next(iter(parse_graph(text).nodes)).kind == "foo::bar_0"
    assert again(text) == text


def test_calls_of_python_functions() -> None:
    graph = Graph()
    x = graph.add_input("x")
    attributes = {"name": "f", "function": ConstantObject(len), "inplace": 0, "scalar_args": ConstantObject((3, "s"))}
    graph.insert_node(graph.create("prim::PythonOp", [x], attributes=attributes))
    graph.insert_node(graph.create("prim::PythonOp", [x], attributes={"name": "g"}))
    text = print_graph(graph)
    assert text.splitlines()[1:3] == ['  %1 : Tensor = ^f[inplace=0](3, "s")(%x)', "  %2 : Tensor = ^g[]()(%x)"]
    assert again(text) == text
    assert [node.kind for node in parse_graph(text).nodes] == ["prim::PythonOp"] * 2


def test_blocks_nest_deeper_than_python_recurses() -> None:
    depth = 3000
    graph = Graph()
    flag = graph.add_input("c", BOOL)
    for _ in range(depth):
        branch = graph.insert_node(graph.create("prim::If", [flag], outputs=0))
        branch.add_block()
        graph.insert_point = branch.add_block().return_node
    text = print_graph(graph)
    assert text.count("block1") == depth
    assert again(text) == text


# ------------------------------------------------------------------------------------------------------ reading by hand


def test_shorthands() -> None:
    """Types may be left out, and `=` before a node without outputs; comments and layout do not matter."""
    graph = parse_graph("""
    # a comment
    graph(%a, %b : int): # another
        %c = foo::bar(%a,
                      %b) # behind a node
        prim::Print(%c)
        return (%c, %a)
    # the end
    """)
    assert str(graph) == (
        "graph(%a : Tensor,\n      %b : int):\n"
        "  %c : Tensor = foo::bar(%a, %b)\n"
        "   = prim::Print(%c)\n"
        "  return (%c, %a)\n"
    )


def test_numbers_are_kept_and_new_values_get_others() -> None:
    graph = parse_graph("graph(%7 : int, %x : int):\n  %3 : int = foo::bar(%7)\n  return (%3)\n")
    assert [value.unique for value in graph.inputs] == [7, 8]
    assert graph.outputs[0].unique == 3
    assert graph.insert_constant(1).unique == 9


def test_names_are_kept_though_they_look_numbered() -> None:
    text = "graph(%x.7 : int,\n      %x : int,\n      %x.1 : int):\n  return (%x, %x.1, %x.7)\n"
    graph = parse_graph(text)
    assert str(graph) == text
    graph.insert_constant(1).set_name("x")
    assert [value.name for value in graph.inputs] == ["x.7", "x.2", "x.1"]


def test_places() -> None:
    graph = parse_graph("graph():\n  %1 : int = foo::bar() # a b/c:d.py:12:34\n  return (%1)\n")
    (node,) = graph.nodes
    assert (node.range.place, node.range.line, node.range.column) == ("a b/c:d.py:12:34", 12, 34)
    assert not next(iter(parse_graph("graph():\n  foo::bar() # words\n  return ()").nodes)).range.is_known


def test_classes_and_enums_are_resolved() -> None:
    class Color(enum.Enum):
        RED = 1

    net = ClassType("__torch__.Net")
    color = EnumType("__torch__.Color", INT, {"RED": 1}, Color)
    text = """graph(%self : __torch__.Net,
      %other : __torch__.Other,
      %more : Dict(str, __torch__.Other)):
  %2 : Enum<__torch__.Color> = prim::Constant[value=__torch__.Color.RED]()
  return (%2)
"""
    known: dict[str, Type] = {"__torch__.Net": net, "__torch__.Color": color}
    graph = parse_graph(text, types=known.get)
    assert graph.inputs[0].type is net
    other = graph.inputs[1].type
    assert isinstance(other, ClassType)
    assert graph.inputs[2].type == DictType(STRING, other)
    constant = graph.outputs[0].node
    assert constant.output.type is color
    assert constant["value"] == ConstantObject(Color.RED)
    assert print_graph(graph) == text

    unresolved = parse_graph(text)
    type = unresolved.outputs[0].type
    assert isinstance(type, EnumType)
    assert unresolved.outputs[0].node["value"] == ConstantObject(EnumMember(type, "RED"))
    assert print_graph(unresolved) == text


def test_types_in_graphs() -> None:
    """They differ from ``str(type)`` in what TorchScript prints differently."""
    point = TupleType((INT, FLOAT), "__torch__.Point", ("x", "y"), (2.0,))
    assert format_type(point) == "NamedTuple(x : int, y : float = 2.)"
    assert format_type(FutureType(ListType(point))) == "Future[NamedTuple(x : int, y : float = 2.)[]]"
    assert format_type(OptionalType(TupleType((FutureType(INT),)))) == "(Future[int])?"
    assert format_type(DictType(STRING, point)) == "Dict(str, __torch__.Point)"


# --------------------------------------------------------------------------------------------------------- golden texts

GOLDEN = Path(__file__).parent.parent / "golden"
GRAPH = re.compile(
    r"^( *)graph\(.*?^\1  return \(.*?\)\n(?:\1with .*?^\1  return \(.*?\)\n)*", re.MULTILINE | re.DOTALL
)


def golden_graphs() -> list[str]:
    texts = [path.read_text(encoding="utf-8") + "\n" for path in sorted(GOLDEN.rglob("*.txt"))]
    return [textwrap.dedent(found.group()) for text in texts for found in GRAPH.finditer(text)]


def test_graphs_in_golden_texts_come_back() -> None:
    """What a reader sees in the golden files is what the parser reads. Some show what the emitter makes on its way."""
    texts = golden_graphs()
    assert texts
    assert [text for text in texts if print_graph(parse_graph(text, structured=False)) != text] == []
