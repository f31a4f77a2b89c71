"""Results of running a program: control flow, calls, constants, steps."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.errors import ArgumentError, CompileError, InternalError, SchemaError
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import INT, ClassType, FunctionType, InterfaceType, ListType
from rekindle.runtime.executable import Executable, code_of
from rekindle.runtime.executor import execute
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState


def run(text: str, *arguments: object) -> Any:
    return InterpreterState(Code(parse_graph(text), "f")).run(arguments)


FOR = """
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%n, %t, %z)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %i)
      -> (%t, %b)
  return (%s)
"""


@pytest.mark.parametrize(("count", "answer"), [(-3, 0), (0, 0), (1, 0), (5, 10)])
def test_a_for_loop(count: int, answer: int) -> None:
    assert run(FOR, count) == answer


WHILE = """
graph(%n : int):
  %max : int = prim::Constant[value=9223372036854775807]()
  %one : int = prim::Constant[value=1]()
  %c : bool = aten::lt(%one, %n)
  %s : int = prim::Loop(%max, %c, %one)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %a)
      %d : bool = aten::lt(%b, %n)
      -> (%d, %b)
  return (%s)
"""


@pytest.mark.parametrize(("limit", "answer"), [(0, 1), (1, 1), (2, 2), (100, 128)])
def test_a_while_loop(limit: int, answer: int) -> None:
    assert run(WHILE, limit) == answer


def test_a_while_loop_that_counts_all_the_same() -> None:
    # %i is used, so that the counter is kept.
    assert (
        run(
            """
graph(%n : int):
  %max : int = prim::Constant[value=9223372036854775807]()
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%max, %t, %z)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %i)
      %d : bool = aten::lt(%b, %n)
      -> (%d, %b)
  return (%s)
""",
            20,
        )
        == 21
    )


def test_the_condition_of_the_next_iteration_may_be_carried() -> None:
    # The condition is what a loop carries from the iteration before: it is read after it has been overwritten.
    text = """
graph(%n : int, %first : bool, %second : bool):
  %f : bool = prim::Constant[value=0]()
  %z : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %s : int, %c : bool = prim::Loop(%n, %t, %z, %first)
    block0(%i : int, %a : int, %b : bool):
      %d : int = aten::add(%a, %one)
      -> (%b, %d, %second)
  return (%s)
"""
    assert run(text, 5, False, True) == 1
    assert run(text, 5, True, False) == 2
    assert run(text, 5, True, True) == 5


def test_a_swap() -> None:
    text = """
graph(%n : int, %x : int, %y : int):
  %t : bool = prim::Constant[value=1]()
  %p : int, %q : int = prim::Loop(%n, %t, %x, %y)
    block0(%i : int, %a : int, %b : int):
      -> (%t, %b, %a)
  %r : (int, int) = prim::TupleConstruct(%p, %q)
  return (%r)
"""
    assert run(text, 2, 7, 8) == (7, 8)
    assert run(text, 3, 7, 8) == (8, 7)


def test_several_results_and_none() -> None:
    assert run("graph(%x : int, %y : int):\n  return (%y, %x)\n", 1, 2) == (2, 1)
    assert run("graph(%x : int):\n  return ()\n", 1) is None


def test_a_list_constant_is_made_anew_each_time() -> None:
    graph = Graph()
    items = graph.insert_constant([1, 2], ListType(INT))
    graph.insert_node(graph.create("aten::append", [items, graph.add_input("x", INT)], types=[ListType(INT)]))
    graph.add_output(items)
    code = Code(graph, "f")
    assert InterpreterState(code).run([3]) == [1, 2, 3]
    assert InterpreterState(code).run([4]) == [1, 2, 4]


def test_a_tensor_constant_is_the_same_each_time() -> None:
    tensor = torch.ones(2)
    graph = Graph()
    graph.add_output(graph.insert_constant(tensor))
    code = Code(graph, "f")
    assert InterpreterState(code).run([]) is tensor
    assert InterpreterState(code).run([]) is tensor


def test_a_tensor_constant_in_a_loop_stays_where_it_is() -> None:
    graph = parse_graph("""
graph(%n : int, %x : Tensor, %c : bool):
  %t : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = prim::If(%c)
        block0():
          %d : Tensor = aten::add(%a, %a, %one)
          -> (%d)
        block1():
          -> (%a)
      -> (%t, %b)
  return (%y)
""")
    add = graph.find_nodes("aten::add")[0]
    loop = graph.find_nodes("prim::Loop")[0]
    constant = graph.create_constant(torch.full((2,), 3.0))
    add.replace_input(1, loop.blocks[0].prepend(constant).output)
    code = Code(graph, "f")
    for choice, answer in ((True, 10.0), (False, 1.0), (True, 10.0)):
        torch.testing.assert_close(InterpreterState(code).run([3, torch.ones(2), choice]), torch.full((2,), answer))


# -------------------------------------------------------------------------------------------------------------- calls


def function(name: str, text: str) -> GraphFunction:
    graph = parse_graph(text)
    arguments = tuple(Argument(value.base_name, value.type) for value in graph.inputs)
    returns = tuple(Argument("", value.type) for value in graph.outputs)
    return GraphFunction(f"__torch__.{name}", graph, FunctionSchema(name, arguments=arguments, returns=returns))


def calling(record: GraphFunction, text: str) -> Code:
    """The code of the graph ``text``, whose ``prim::CallFunction`` are of ``record``."""
    graph = parse_graph(text)
    constant = graph.create("prim::Constant", types=[FunctionType(record)], attributes={"name": record.basename})
    graph.block.prepend(constant)
    for node in graph.find_nodes("prim::CallFunction"):
        node.insert_input(0, constant.output)
    return Code(graph, "caller")


ADD_ONE = """
graph(%x : int):
  %one : int = prim::Constant[value=1]()
  %y : int = aten::add(%x, %one)
  return (%y)
"""
ADD_ONES = """
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%n, %t, %z)
    block0(%i : int, %a : int):
      %b : int = prim::CallFunction(%a)
      -> (%t, %b)
  return (%s)
"""


def test_calls_of_functions() -> None:
    record = function("add_one", ADD_ONE)
    code = calling(record, ADD_ONES)
    assert (
        str(code)
        == """\
0 = Load
1 = Constant True
2 = Constant 0
3 = Move 2
4 = LoopStart 0 -> L4
L2:
3 = Call[add_one] move(3)
4 = LoopNext 0 -> L2
L4:
= Store move(3)"""
    )
    assert InterpreterState(code).run([4]) == 4
    assert isinstance(record.executable, Executable)
    assert code_of(record) is record.executable.code


def test_calls_need_no_recursion_in_python() -> None:
    record = function("f0", ADD_ONE)
    for depth in range(5000):
        graph = parse_graph("graph(%x : int):\n  %y : int = prim::CallFunction(%x)\n  return (%y)\n")
        constant = graph.create("prim::Constant", types=[FunctionType(record)], attributes={"name": record.basename})
        graph.find_nodes("prim::CallFunction")[0].insert_input(0, graph.block.prepend(constant).output)
        record = GraphFunction(f"f{depth + 1}", graph, record.schema)
    assert execute(record, [1]) == 2


def test_a_function_that_cannot_be_compiled_fails_when_it_is_called() -> None:
    def definer(record: GraphFunction) -> None:
        raise CompileError("not this one", frames=())

    record = GraphFunction("__torch__.g", function_creator=definer)
    code = calling(record, ADD_ONES)
    assert InterpreterState(code).run([0]) == 0
    with pytest.raises(CompileError, match="not this one"):
        InterpreterState(code).run([1])


def test_a_function_without_a_graph_for_an_operator() -> None:
    record = function("g", "graph(%x : int):\n  %y : int = aten::nonsense(%x)\n  return (%y)\n")
    with pytest.raises(SchemaError) as caught:
        InterpreterState(calling(record, ADD_ONES)).run([1])
    assert str(caught.value) == "there is no operator 'aten::nonsense' (called with (int))"


class Object:
    def __init__(self, type: ClassType) -> None:
        self._rekindle_type = type


def test_calls_of_methods() -> None:
    owner = ClassType("__torch__.Counter")
    owner.methods["next"] = function(
        "Counter.next",
        """
graph(%self : Tensor, %x : int):
  %two : int = prim::Constant[value=2]()
  %y : int = aten::mul(%x, %two)
  return (%y)
""",
    )
    graph = parse_graph("""
graph(%self : Tensor, %x : int):
  %y : int = prim::CallMethod[name="next"](%self, %x)
  return (%y)
""")
    graph.inputs[0].set_type(owner)
    code = Code(graph, "f")
    assert str(code) == "0, 1 = Load\n2 = CallMethod[next] move(0), move(1)\n= Store move(2)"
    assert InterpreterState(code).run([Object(owner), 4]) == 8


def test_calls_of_methods_of_an_interface() -> None:
    interface = InterfaceType("__torch__.Step")
    graph = parse_graph("""
graph(%step : Tensor, %x : int):
  %y : int = prim::CallMethod[name="forward"](%step, %x)
  return (%y)
""")
    graph.inputs[0].set_type(interface)
    code = Code(graph, "f")
    for factor in (2, 3):
        owner = ClassType(f"__torch__.Times{factor}", is_module=True)
        owner.methods["forward"] = function(
            "forward",
            f"""
graph(%self : Tensor, %x : int):
  %f : int = prim::Constant[value={factor}]()
  %y : int = aten::mul(%x, %f)
  return (%y)
""",
        )
        assert InterpreterState(code).run([Object(owner), 5]) == 5 * factor
    with pytest.raises(InternalError, match="a str has no compiled method 'forward'"):
        InterpreterState(code).run(["no object", 5])


# -------------------------------------------------------------------------------------------------------------- steps


def test_step_by_step() -> None:
    code = Code(parse_graph(FOR), "f")
    state = InterpreterState(code)
    state.start([2])
    seen = []
    while not state.is_finished:
        seen.append((state.position, str(code.instructions[state.position])))
        more = state.step()
        assert more is not state.is_finished
    assert seen == [
        (0, "3 = Move 2"),
        (1, "4 = LoopStart 0 -> L4"),
        (2, "3 = add move(3), move(4)"),
        (3, "4 = LoopNext 0 -> L2"),
        (2, "3 = add move(3), move(4)"),
        (3, "4 = LoopNext 0 -> L2"),
        (4, "= Store move(3)"),
    ]
    assert state.result == 1
    assert not state.step()


def test_steps_go_into_calls() -> None:
    state = InterpreterState(calling(function("add_one", ADD_ONE), ADD_ONES))
    state.start([1])
    seen = []
    while not state.is_finished:
        seen.append((state.code.basename, state.depth, state.position))
        state.step()
    assert seen == [
        ("caller", 0, 0),
        ("caller", 0, 1),
        ("caller", 0, 2),
        ("add_one", 1, 0),
        ("add_one", 1, 1),
        ("caller", 0, 3),
        ("caller", 0, 4),
    ]
    assert state.result == 1


@pytest.mark.parametrize("steps", range(12))
def test_a_state_goes_on_from_anywhere_and_on_another_thread(steps: int) -> None:
    state = InterpreterState(calling(function("add_one", ADD_ONE), ADD_ONES))
    state.start([3])
    for _ in range(steps):
        state.step()
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(state.resume()))
    thread.start()
    thread.join()
    assert answers == [3]


def test_code_is_shared_and_states_are_not() -> None:
    code = Code(parse_graph(FOR), "f")
    states = [InterpreterState(code) for _ in range(3)]
    for number, state in enumerate(states):
        state.start([number + 2])
    while not all(state.is_finished for state in states):
        for state in states:
            state.step()
    assert [state.result for state in states] == [1, 3, 6]


def test_a_wrong_number_of_arguments() -> None:
    with pytest.raises(ArgumentError) as caught:
        InterpreterState(Code(parse_graph(FOR), "__torch__.f")).run([1, 2])
    assert str(caught.value) == "f() takes 1 arguments, but 2 were given"


def test_deeply_nested_blocks() -> None:
    graph = Graph()
    x, c = graph.add_input("x", INT), graph.add_input("c")
    block = graph.block
    for _ in range(100):
        node = block.append(graph.create("prim::If", [c], types=[INT]))
        block.add_output(node.output)
        node.add_block()
        node.add_block().add_output(x)
        block = node.blocks[0]
    block.add_output(block.append(graph.create("aten::neg", [x], types=[INT])).output)
    code = Code(graph, "f")
    assert InterpreterState(code).run([3, True]) == -3
    assert InterpreterState(code).run([3, False]) == 3
