"""The text form: ``torch.jit``'s own texts are read and written unchanged, and so are ours."""

from __future__ import annotations

import enum

import hypothesis
import pytest
import torch
from hypothesis import strategies

from rekindle.errors import GraphError, ParseError, Source
from rekindle.ir.attributes import ConstantObject, constant_value
from rekindle.ir.constants import EnumMember, OpaqueConstant
from rekindle.ir.graph import Graph
from rekindle.ir.literals import format_complex, format_float, format_string, read_string
from rekindle.ir.parser import parse_graph, tensor_constants
from rekindle.ir.printer import format_constant, format_type, print_graph, print_head, print_node
from rekindle.ir.tensor_text import format_tensor
from rekindle.ir.types import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NUMBER,
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


# ------------------------------------------------------------------------------------------------------------ constants


def constant_text(value: object, type: Type | None = None) -> str:
    graph = Graph()
    graph.add_output(graph.insert_constant(value, type))
    text = print_graph(graph)
    assert again(text) == text
    return text.partition("  %0 : ")[2].partition("()\n")[0]


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (1, None, "int = prim::Constant[value=1]"),
        (-1, None, "int = prim::Constant[value=-1]"),
        (True, None, "bool = prim::Constant[value=1]"),
        (None, None, "NoneType = prim::Constant"),
        (1e10, None, "float = prim::Constant[value=10000000000]"),
        (9999999999.0, None, "float = prim::Constant[value=9999999999.]"),
        (-0.0, None, "float = prim::Constant[value=-0.]"),
        (1e-5, None, "float = prim::Constant[value=1.0000000000000001e-05]"),
        (float("inf"), None, "float = prim::Constant[value=inf]"),
        (-float("inf"), None, "float = prim::Constant[value=-inf]"),
        (1 - 2.5j, None, "complex = prim::Constant[value=1.-2.5j]"),
        (complex("nan+nanj"), None, "complex = prim::Constant[value=nan-nanj]"),
        ("a'\"\\\0", None, 'str = prim::Constant[value="a\\\'\\"\\\\\\000"]'),
        (torch.device("cuda:1"), None, 'Device = prim::Constant[value="cuda:1"]'),
        (torch.float64, None, "int = prim::Constant[value=7]"),
        ((1,), None, "(int) = prim::Constant[value=(1,)]"),
        ((), None, "() = prim::Constant[value=()]"),
        ((1, torch.device("cpu")), None, '(int, Device) = prim::Constant[value=(1, torch.device("cpu"))]'),
        ([1e10, 0.5], None, "float[] = prim::Constant[value=[10000000000, 0.5]]"),
        ([None, 1], None, "int?[] = prim::Constant[value=annotate(List[Optional[int]], [None, 1])]"),
        ([[1], []], ListType(ListType(INT)), "int[][] = prim::Constant[value=[[1], annotate(List[int], [])]]"),
        ({"a": 1}, None, 'Dict(str, int) = prim::Constant[value={"a": 1}]'),
        (
            {"a": None},
            DictType(STRING, optional(INT)),
            'Dict(str, int?) = prim::Constant[value=annotate(Dict[str, Optional[int]],{"a": None})]',
        ),
        ([1, 2.5], ListType(NUMBER), "Scalar[] = prim::Constant[value=annotate(List[number], [1, 2.5])]"),
        ([torch.ones(2)], None, "Tensor[] = prim::Constant[value=[<Tensors>]]"),
        (torch.tensor(3), None, "Tensor = prim::Constant[value={3}]"),
        (torch.tensor([1.5, 2]), None, "Tensor = prim::Constant[value= 1.5000  2.0000 [ CPUFloatType{2} ]]"),
        (1, optional(INT), "int? = prim::Constant[value=1]"),
    ],
)
def test_constants(value: object, type: Type | None, text: str) -> None:
    assert constant_text(value, type) == text


def test_what_a_float_and_a_bool_are_is_told_by_the_type() -> None:
    graph = parse_graph("""graph():
  %1 : float = prim::Constant[value=10000000000]()
  %2 : bool = prim::Constant[value=1]()
  %3 : float[] = prim::Constant[value=[10000000000, 1.]]()
  %4 : complex = prim::Constant[value=1.]()
  return ()
""")
    values = [constant_value(node.attributes["value"], node.output.type) for node in graph.nodes]
    assert values == [1e10, True, [1e10, 1.0], 1.0]
    assert [type(value) for value in values] == [float, bool, list, complex]


def test_tensors_travel_beside_the_text() -> None:
    graph = Graph()
    tensors = [torch.randn(20), torch.randn(2), torch.tensor(1 / 3), [torch.ones(1), torch.ones(2)]]
    for index, value in enumerate(tensors):
        graph.insert_constant(value).set_name(f"t{index}")
    graph.insert_constant((1, tensors[0], {"a": tensors[1]})).set_name("all")
    text = print_graph(graph)
    beside = tensor_constants(graph)
    assert [id(item) for item in beside] == [id(item) for item in [*tensors, tensors[0], tensors[1]]]

    parsed = parse_graph(text, tensors=beside)
    assert [id(item) for item in tensor_constants(parsed)] == [id(item) for item in beside]
    assert print_graph(parsed) == text

    named = {"t0": tensors[0], "t3": tensors[3]}
    parsed = parse_graph(text, tensors=named)
    nodes = {node.output.name: node for node in parsed.nodes}
    assert nodes["t0"]["value"] is tensors[0]
    assert nodes["t3"]["value"] == ConstantObject(tensors[3])
    assert print_graph(parsed) == text


def test_a_tensor_of_one_element_is_what_its_text_shows() -> None:
    graph = parse_graph("""graph():
  %1 : Double() = prim::Constant[value={0.5}]()
  %2 : Long(1, 1) = prim::Constant[value={3}]()
  %3 : Tensor = prim::Constant[value={3}]()
  %4 : Bool() = prim::Constant[value={1}]()
  %5 : ComplexFloat() = prim::Constant[value={(1,2)}]()
  %6 : Tensor = prim::Constant[value={nan}]()
  return ()
""")
    values = [node["value"] for node in graph.nodes]
    wanted = [
        torch.tensor(0.5, dtype=torch.float64),
        torch.tensor([[3]]),
        torch.tensor(3),
        torch.tensor(True),
        torch.tensor(1 + 2j),
        torch.tensor(float("nan")),
    ]
    for value, tensor in zip(values, wanted, strict=True):
        assert isinstance(value, torch.Tensor)
        torch.testing.assert_close(value, tensor, rtol=0, atol=0, equal_nan=True)


def test_a_constant_without_a_value_cannot_be_run() -> None:
    graph = parse_graph("graph():\n  %w : Tensor = prim::Constant[value=<Tensor>]()\n  return (%w)\n")
    (node,) = graph.nodes
    assert node["value"] == ConstantObject(OpaqueConstant("<Tensor>"))
    with pytest.raises(GraphError) as caught:
        constant_value(node["value"], node.output.type)
    assert str(caught.value) == (
        "the value of the constant '<Tensor>' is not known: the graph was read from text, which does not tell it;"
        " give it to parse_graph as one of `tensors`"
    )


def test_types_in_graphs() -> None:
    """They differ from ``str(type)`` in what TorchScript prints differently."""
    point = TupleType((INT, FLOAT), "__torch__.Point", ("x", "y"), (2.0,))
    assert format_type(point) == "NamedTuple(x : int, y : float = 2.)"
    assert format_type(FutureType(ListType(point))) == "Future[NamedTuple(x : int, y : float = 2.)[]]"
    assert format_type(OptionalType(TupleType((FutureType(INT),)))) == "(Future[int])?"
    assert format_type(DictType(STRING, point)) == "Dict(str, __torch__.Point)"


# -------------------------------------------------------------------------------------------- against torch's own texts


def torch_constant(value: object) -> str:
    """How torch.jit prints a constant."""
    graph = torch._C.Graph()
    graph.insertConstant(value)
    text = str(graph)
    return text[text.index("[value=") + 7 : text.rindex("]()")]


finite_and_not = strategies.floats() | strategies.sampled_from([0.0, -0.0, 1e9, 1e10, 1e16, 1e17, 2.0**53, 0.1, 1e-5])


@hypothesis.given(finite_and_not)
def test_floats(value: float) -> None:
    assert format_float(value) == torch_constant(value)


@hypothesis.given(finite_and_not, finite_and_not)
def test_complexes(real: float, imaginary: float) -> None:
    """torch.jit drops the sign of a zero, which is kept here: hence the ``+ 0``."""
    value = complex(real + 0, imaginary + 0)
    assert format_complex(value) == torch_constant(value)


@hypothesis.given(strategies.text(strategies.characters(max_codepoint=127)))
def test_ascii_strings(value: str) -> None:
    """Other characters torch.jit prints as something that cannot be read: it takes bytes for negative numbers."""
    assert format_string(value) == torch_constant(value)


@hypothesis.given(strategies.text(strategies.characters(exclude_categories=[])))
def test_strings_come_back(value: str) -> None:
    text = format_string(value)
    assert text.isascii()
    assert read_string(text) == value


SHAPES = [(), (1,), (2,), (5,), (10,), (0,), (0, 3), (2, 2), (1, 10), (2, 5), (1, 7), (2, 2, 2), (1, 1, 10), (1, 2, 3)]
SHAPES += [(2, 1, 4), (1, 1, 1, 8), (2, 1, 2, 2), (1, 1, 2, 5), (11,), (2, 0, 2)]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]
DTYPES += [torch.complex64, torch.uint16, torch.float8_e4m3fn]


def random_tensor(shape: tuple[int, ...], dtype: torch.dtype, kind: int, exponent: float) -> torch.Tensor:
    """Whole or broken numbers, near each other or far apart, with zeros and without."""
    values = torch.randn(shape, dtype=torch.float64)
    if kind == 0:
        values = (values * 10**exponent).round()
    elif kind == 1:
        values = values * 10**exponent * 10 ** torch.randn(shape, dtype=torch.float64)
    elif kind == 2:
        values = torch.where(values < 0, 0, values * 10**exponent)
    elif kind == 3:
        values = torch.randint(-1000, 1000, shape).double()
    elif kind == 4 and values.numel():
        values.view(-1)[0] = float("nan")
        values.view(-1)[-1] = -float("inf")
    if dtype.is_complex:
        return torch.complex(values.float(), torch.randn(shape))
    if not dtype.is_floating_point:
        values = values.nan_to_num(0).clamp(-1e15, 1e15)
        values = values.abs().clamp(max=200) if dtype in (torch.uint8, torch.uint16) else values
    return values.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors(dtype: torch.dtype) -> None:
    checked = 0
    for shape in SHAPES:
        for kind in range(6):
            for exponent in (-12, -5.5, -1.2, 0, 0.7, 3.3, 4.9, 6, 9.6, 13):
                tensor = random_tensor(shape, dtype, kind, exponent)
                assert format_tensor(tensor) == torch_constant(tensor), tensor
                checked += 1
    assert checked == len(SHAPES) * 60


def test_tensors_that_are_not_written_out() -> None:
    assert format_tensor(torch.ones(11)) == "<Tensor>"
    assert format_tensor(torch.ones(2).to_sparse()) == "<Tensor>"
    assert format_tensor(torch.empty(2, device="meta")) == "<Tensor>"


def test_a_parameter_is_written_as_its_data() -> None:
    assert format_tensor(torch.nn.Parameter(torch.ones(2))) == " 1  1 [ CPUFloatType{2} ]"


def test_objects() -> None:
    assert format_constant(object()) == "object(object)"
    assert format_constant(OpaqueConstant("object(0x55d0c8)"), ANY) == "object(0x55d0c8)"
    text = "graph():\n  %1 : __torch__.K = prim::Constant[value=object(0x55d0c8)]()\n  return (%1)\n"
    assert again(text) == text
    assert {format_constant(COMPLEX), format_constant(NONE)} == {"object(ComplexType)", "object(NoneType)"}


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "graph(%x : int):\n  %y : int = aten::neg(%xx)\n  return (%y)\n",
            """\
%xx is not defined.
    graph(%x : int):
      %y : int = aten::neg(%xx)
                           ^^^
Hint: Did you mean %x?""",
        ),
        (
            "graph(%x : int):\n  %y : int = aten::neg(%y)\n  return (%y)\n",
            """\
%y is not defined.
    graph(%x : int):
      %y : int = aten::neg(%y)
                           ^^""",
        ),
        (
            "graph(%x : int):\n  %x : int = aten::neg(%x)\n  return (%x)\n",
            """\
%x is defined twice.
    graph(%x : int):
      %x : int = aten::neg(%x)
      ^^""",
        ),
        (
            (
                "graph(%c : bool):\n"
                "   = prim::If(%c)\n"
                "    block0():\n"
                "      %y : int = prim::Constant[value=1]()\n"
                "      -> ()\n"
                "    block1():\n"
                "      -> ()\n"
                "  return (%y)\n"
            ),
            """\
%y is defined in a block that has ended.
          -> ()
        block1():
          -> ()
      return (%y)
              ^^""",
        ),
        (
            (
                "graph(%c : bool):\n"
                "  %y : int = prim::If(%c)\n"
                "    block0():\n"
                "      -> ()\n"
                "    block1():\n"
                "      -> (%c)\n"
                "  return (%y)\n"
            ),
            """\
The prim::If has 1 output, but its block returns 0 values.
    graph(%c : bool):
      %y : int = prim::If(%c)
        block0():
          -> ()
          ^^^^^""",
        ),
        (
            "graph(%c : bool):\n  %y : int = prim::If(%c)\n    block0():\n      -> (%c)\n  return (%y)\n",
            """\
A prim::If has 2 blocks, not 1.
    graph(%c : bool):
      %y : int = prim::If(%c)
                 ^^^^""",
        ),
        (
            "graph(%c : bool):\n  %y : int = prim::If(%c, %c)\n  return (%y)\n",
            """\
A prim::If takes 1 input, not 2.
    graph(%c : bool):
      %y : int = prim::If(%c, %c)
                 ^^^^""",
        ),
        (
            (
                "graph(%n : int, %c : bool):\n"
                "  %y : int = prim::Loop(%n, %c, %n)\n"
                "    block0(%i : int, %j : int):\n"
                "      -> (%c)\n"
                "  return (%y)\n"
            ),
            """\
The prim::Loop has 1 output and the condition, but its block returns 1 value.
    graph(%n : int, %c : bool):
      %y : int = prim::Loop(%n, %c, %n)
        block0(%i : int, %j : int):
          -> (%c)
          ^^^^^^^""",
        ),
        (
            "graph(%n : int, %c : bool):\n  %y : int = prim::Loop(%n, %c)\n  return (%y)\n",
            """\
A prim::Loop with 1 output takes 3 inputs, not 2.
    graph(%n : int, %c : bool):
      %y : int = prim::Loop(%n, %c)
                 ^^^^""",
        ),
        (
            "graph(%n : int, %c : bool):\n   = prim::Loop(%n, %c)\n    block0():\n      -> (%c)\n  return ()\n",
            """\
The prim::Loop has 0 outputs, so its block takes 1 input, not 0.
    graph(%n : int, %c : bool):
       = prim::Loop(%n, %c)
         ^^^^""",
        ),
        (
            "graph(%x : int):\n    block0():\n      -> ()\n  return ()\n",
            """\
No node stands before this block.
    graph(%x : int):
        block0():
        ^^^^^^""",
        ),
        (
            "graph(%x : bool):\n   = prim::If(%x)\n    block1():\n      -> ()\n  return ()\n",
            """\
Expected 'block0' but found 'block1'.
    graph(%x : bool):
       = prim::If(%x)
        block1():
        ^^^^^^""",
        ),
        (
            "graph(%x : bool):\n   = prim::If(%x)\n    block0():\n      return ()\n  return ()\n",
            """\
A block ends with '->', not with 'return'.
    graph(%x : bool):
       = prim::If(%x)
        block0():
          return ()
          ^^^^^^""",
        ),
        (
            "graph(%x : bool):\n  -> (%x)\n",
            """\
A graph ends with 'return', not with '->'.
    graph(%x : bool):
      -> (%x)
      ^^""",
        ),
        (
            "graph(%x : bool):\n  %y : bool = aten::not(%x)\n",
            """\
Expected a node, '->' or 'return' but found the end of the text.
    graph(%x : bool):
      %y : bool = aten::not(%x)

    ^""",
        ),
        (
            "graph(%x : Tensr):\n  return (%x)\n",
            """\
There is no type 'Tensr'.
    graph(%x : Tensr):
               ^^^^^
Hint: Did you mean 'Tensor'?""",
        ),
        (
            "graph(%x : Float(2, grad=1)):\n  return (%x)\n",
            """\
'grad' is nothing that a tensor type can say.
    graph(%x : Float(2, grad=1)):
                        ^^^^""",
        ),
        (
            "graph(%x : Float(2, device=gpu)):\n  return (%x)\n",
            """\
There is no device 'gpu'.
    graph(%x : Float(2, device=gpu)):
                               ^^^""",
        ),
        (
            "graph(%x : int)\n  return (%x)\n",
            """\
Expected ':' but found 'return'.
    graph(%x : int)
      return (%x)
      ^^^^^^""",
        ),
        (
            "graph(%x : int):\n  return (%x)\n}\n",
            """\
'}' closes nothing.
    graph(%x : int):
      return (%x)
    }
    ^""",
        ),
        (
            "graph(%x : int):\n  return (%x)\n  %y : int = aten::neg(%x)\n",
            """\
Expected the end of the text but found '%y'.
    graph(%x : int):
      return (%x)
      %y : int = aten::neg(%x)
      ^^""",
        ),
        (
            "graph(%x : int):\n  return (%x)\nwith prim::fork_0 = graph():\n  return ()\n",
            """\
Expected the end of the text but found 'with'.
    graph(%x : int):
      return (%x)
    with prim::fork_0 = graph():
    ^^^^""",
        ),
        (
            "graph(%x : int):\n  %y : int = neg(%x)\n  return (%y)\n",
            """\
Expected '::' but found '('.
    graph(%x : int):
      %y : int = neg(%x)
                    ^""",
        ),
        (
            "graph(%x : int):\n  %y : int = prim::Constant[value=abc]()\n  return (%y)\n",
            """\
Expected a constant of type int but found 'abc'.
    graph(%x : int):
      %y : int = prim::Constant[value=abc]()
                                      ^^^""",
        ),
        (
            "graph(%x : int):\n  %y : int = a::b[k=1, k=2](%x)\n  return (%y)\n",
            """\
The attribute 'k' stands here twice.
    graph(%x : int):
      %y : int = a::b[k=1, k=2](%x)
                           ^""",
        ),
        (
            "block(%x : int):\n  return (%x)\n",
            """\
Expected 'graph' but found 'block'.
    block(%x : int):
    ^^^^^""",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_graph(text)
    assert str(caught.value) == message


TWO_TENSORS = """graph():
  %a : Tensor = prim::Constant[value=<Tensor>]()
  %b : Tensor = prim::Constant[value={3}]()
  return (%a, %b)
"""


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            [torch.ones(20)],
            """\
The text has more tensor constants than the 1 that are given.
    graph():
      %a : Tensor = prim::Constant[value=<Tensor>]()
      %b : Tensor = prim::Constant[value={3}]()
                                         ^""",
        ),
        (
            [torch.ones(20), torch.tensor(3), torch.ones(1)],
            """\
3 tensors are given, but the text has only 2 tensor constants.
      %a : Tensor = prim::Constant[value=<Tensor>]()
      %b : Tensor = prim::Constant[value={3}]()
      return (%a, %b)

    ^""",
        ),
        (
            [torch.ones(20), torch.tensor(4)],
            """\
A tensor is given that prints as '{4}', but '{3}' stands here.
    graph():
      %a : Tensor = prim::Constant[value=<Tensor>]()
      %b : Tensor = prim::Constant[value={3}]()
                                         ^""",
        ),
        (
            {"b": torch.ones(2)},
            """\
The tensor for %b is given that prints as ' 1  1 [ CPUFloatType{2} ]', but '{3}' stands here.
    graph():
      %a : Tensor = prim::Constant[value=<Tensor>]()
      %b : Tensor = prim::Constant[value={3}]()
                                         ^""",
        ),
    ],
)
def test_tensors_that_do_not_fit(tensors: object, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_graph(TWO_TENSORS, tensors=tensors)  # type: ignore[arg-type]
    assert str(caught.value) == message
