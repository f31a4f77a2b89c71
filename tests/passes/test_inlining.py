"""Calls are replaced by the bodies of the functions that they call."""

from __future__ import annotations

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.errors import Source
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import INT, ClassType, FunctionType
from rekindle.ir.verifier import verify
from rekindle.passes.canonicalization.inlining import Inlining, inline
from rekindle.passes.pass_manager import run_passes
from tests.support.golden import GoldenTexts

_SOURCE = Source("quadruple(x)\ndouble(x)\nx + x\n", "program.py")


def _record(name: str, text: str) -> GraphFunction:
    return GraphFunction(name, parse_graph(text.lstrip()))


def _call(graph: Graph, record: GraphFunction, argument: str, result: str) -> Node:
    """Append a call of ``record`` to ``graph``, and let it return the result."""
    constant = graph.create("prim::Constant", types=[FunctionType(record)], attributes={"name": record.basename})
    graph.append_node(constant)
    value = graph.find_value(argument)
    assert value is not None
    node = graph.append_node(graph.create("prim::CallFunction", [constant.output, value], types=[INT]))
    node.output.set_name(result)
    graph.add_output(node.output)
    return node


def _double() -> GraphFunction:
    record = _record(
        "__torch__.double",
        """
graph(%x : int):
  %1 : int = aten::add(%x, %x)
  return (%1)
""",
    )
    next(record.graph.nodes).set_range(_SOURCE.range(23, 28))
    return record


def _quadruple() -> GraphFunction:
    graph = parse_graph("graph(%x : int):\n  return ()\n")
    call = _call(graph, _double(), "x", "twice")
    graph.block.erase_output(0)
    constant = call.inputs[0]
    node = graph.append_node(graph.create("prim::CallFunction", [constant, call.output], types=[INT]))
    graph.add_output(node.output)
    for each in (call, node):
        each.set_range(_SOURCE.range(13, 22))
    return GraphFunction("__torch__.quadruple", graph)


def _program() -> Graph:
    graph = parse_graph("graph(%a : int):\n  return ()\n")
    _call(graph, _quadruple(), "a", "result").set_range(_SOURCE.range(0, 12))
    return graph


def test_functions_in_functions(golden: GoldenTexts) -> None:
    graph = _program()
    before = str(graph)
    assert run_passes(graph, [Inlining()], verify)
    golden("passes/inlining", f"# calls in what is called\n\n{before}\n# becomes\n\n{graph}")


def test_callees_stay_as_they_are() -> None:
    record = _quadruple()
    before = str(record.graph)
    graph = parse_graph("graph(%a : int):\n  return ()\n")
    _call(graph, record, "a", "result")
    inline(graph)
    assert str(record.graph) == before
    assert not inline(graph)


def test_nodes_remember_the_calls_that_they_came_through() -> None:
    graph = _program()
    inline(graph)
    stacks = [[(name, range.place) for name, range in node.callstack] for node in graph.find_nodes("aten::add")]
    expected = [("quadruple", "program.py:1:0"), ("double", "program.py:2:0")]
    assert stacks == [expected, expected]
    assert [node.range.place for node in graph.find_nodes("aten::add")] == ["program.py:3:0"] * 2


def test_methods_and_blocks() -> None:
    cls = ClassType("__torch__.Counter")
    cls.add_attribute("n", INT)
    graph = parse_graph("graph():\n  return ()\n")
    self_value = graph.add_input("self", cls)
    flag = graph.add_input("flag", parse_graph("graph(%b : bool):\n  return (%b)\n").inputs[0].type)
    method = parse_graph("graph():\n  return ()\n")
    inner_self = method.add_input("self", cls)
    get = method.append_node(method.create("prim::GetAttr", [inner_self], types=[INT], attributes={"name": "n"}))
    method.add_output(get.output)
    cls.methods["count"] = GraphFunction("__torch__.Counter.count", method)
    node = graph.append_node(graph.create("prim::If", [flag], types=[INT]))
    for block in (node.add_block(), node.add_block()):
        call = graph.create("prim::CallMethod", [self_value], types=[INT], attributes={"name": "count"})
        block.add_output(block.append(call).output)
    graph.add_output(node.output)
    assert run_passes(graph, [Inlining()], verify)
    assert [inner.kind for inner in graph.all_nodes()] == ["prim::If", "prim::GetAttr", "prim::GetAttr"]


def test_what_a_call_may_not_know_stays_a_call() -> None:
    """A method of an interface, and a function that is a value."""
    graph = parse_graph(
        """
graph(%x : Tensor, %n : int):
  %1 : Tensor = aten::relu(%x)
  return (%1)
""".lstrip()
    )
    before = str(graph)
    assert not inline(graph)
    assert str(graph) == before
