"""Loops that run often are compiled, which changes nothing but the time."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
import torch

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.errors import Source
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.subgraph_execution import PatchableOperation
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import BOOL, INT, FunctionType
from rekindle.runtime.interpreter import basic_blocks
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.plans.hot_loops import HOT, HotLoops, LoopWriter


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the loops that became hot could be compiled."""
    found: list[bool] = []
    compile = HotLoops.compile

    def note(self: HotLoops, start: int, end: int) -> Any:
        loop = compile(self, start, end)
        found.append(loop is not None)
        return loop

    monkeypatch.setattr(HotLoops, "compile", note)
    return found


def code(text: str) -> Code:
    return Code(parse_graph(text), "f")


def run(program: Code, *arguments: object) -> Any:
    return InterpreterState(program).run(arguments)


def written(program: Code) -> str:
    """The Python of the outermost loop."""
    end = max(i for i, instruction in enumerate(program.instructions) if 0 <= instruction.target <= i)
    writer = LoopWriter(program.instructions, program.hot._light)
    writer.loop(program.instructions[end].target, end)
    return "\n".join([writer.head(), *writer.lines, writer.tail()])


SUM = """
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %s : int = prim::Loop(%n, %t, %z)
    block0(%i : int, %a : int):
      %d : int = aten::mul(%i, %two)
      %b : int = aten::add(%a, %d)
      -> (%t, %b)
  return (%s)
"""


def test_numbers_live_in_variables() -> None:
    program = code(SUM)
    assert str(program).splitlines()[5:] == [
        "5 = LoopStart 0 -> L5",
        "L2:",
        "6 = mul move(5), 3",
        "4 = add move(4), move(6)",
        "5 = LoopNext 0 -> L2",
        "L5:",
        "= Store move(4)",
    ]
    assert (
        written(program)
        == """\
 (r0, r3, r4, r5, ) = (registers[0], registers[3], registers[4], registers[5], )
 while True:
  r4 = r4 + (r5 * r3)
  r5 = r5 + 1
  if r5 >= r0: break
 (registers[4], registers[5], ) = (r4, r5, )"""
    )


@pytest.mark.parametrize("count", [0, 1, HOT, HOT + 1, HOT + 2, 3 * HOT])
def test_the_answer_stays_the_same(count: int, compiled: list[bool]) -> None:
    program = code(SUM)
    answer = sum(2 * i for i in range(count))
    assert run(program, count) == answer
    assert compiled == [True] * (count > HOT)
    assert run(program, count) == answer
    assert run(program, 3) == 6


NESTED = """
graph(%n : int, %items : int[]):
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %z : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %s : int, %u : int = prim::Loop(%n, %t, %z, %z)
    block0(%i : int, %a : int, %p : int):
      %b : int = prim::Loop(%max, %t, %a)
        block0(%j : int, %c : int):
          %d : int = aten::add(%c, %one)
          %e : int = aten::remainder(%d, %three)
          %g : bool = aten::ne(%e, %z)
          -> (%g, %d)
      %m : int = aten::remainder(%i, %three)
      %h : bool = aten::eq(%m, %z)
      %q : int = prim::If(%h)
        block0():
          %k : int = aten::add(%p, %i)
          -> (%k)
        block1():
          %r : int[] = aten::append(%items, %i)
          %l : int = aten::sub(%p, %one)
          -> (%l)
      %w : bool = aten::lt(%i, %n)
      %v : int = prim::If(%w)
        block0():
          -> (%q)
        block1():
          -> (%z)
      -> (%t, %b, %v)
  %y : (int, int) = prim::TupleConstruct(%s, %u)
  return (%y)
"""


def nested(n: int, items: list[int]) -> tuple[int, int]:
    a = p = 0
    for i in range(n):
        while True:
            a = a + 1
            if a % 3 == 0:
                break
        if i % 3 == 0:
            p = p + i
        else:
            items.append(i)
            p = p - 1
    return a, p


def test_nested_control_flow(compiled: list[bool]) -> None:
    program = code(NESTED)
    found: list[int] = []
    expected: list[int] = []
    for count in (5, 2 * HOT, 7):
        assert run(program, count, found) == nested(count, expected)
        assert found == expected
    # The inner loop first, then the outer one.
    assert compiled == [True, True]


BREAK = """
graph(%n : int, %x : Tensor, %stop : int):
  %t : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::add(%a, %one, %one)
      %c : bool = aten::lt(%i, %stop)
      -> (%c, %b)
  return (%y)
"""


def test_a_loop_over_tensors_that_stops_early(compiled: list[bool]) -> None:
    program = code(BREAK)
    assert run(program, 10_000, torch.zeros(2), 2 * HOT).tolist() == [2.0 * HOT + 1] * 2
    assert run(program, 3, torch.zeros(2), 2 * HOT).tolist() == [3.0] * 2
    assert run(program, 10, torch.zeros(2), 0).tolist() == [1.0] * 2
    assert compiled == [True]
    assert (
        written(program)
        == """\
 (r0, r2, r4, r6, ) = (registers[0], registers[2], registers[4], registers[6], )
 while True:
  registers[5] = f2(registers[5], r4)
  if not r6 < r2: break
  r6 = r6 + 1
  if r6 >= r0: break
 (registers[6], ) = (r6, )"""
    )


def test_an_error_in_a_compiled_loop_stands_at_its_line(compiled: list[bool]) -> None:
    source = Source("def f(n, m):\n    for i in range(n):\n        m = i - m\n        m = m // (300 - i)\n", "gone.py")
    graph = parse_graph("""
graph(%n : int, %m : int):
  %t : bool = prim::Constant[value=1]()
  %k : int = prim::Constant[value=300]()
  %s : int = prim::Loop(%n, %t, %m)
    block0(%i : int, %a : int):
      %b : int = aten::sub(%i, %a)
      %d : int = aten::sub(%k, %i)
      %e : int = aten::floordiv(%b, %d)
      -> (%t, %e)
  return (%s)
""")
    for name, fragment in (("b", "i - m"), ("d", "300 - i"), ("e", "m // (300 - i)")):
        value = graph.find_value(name)
        assert value is not None
        start = source.text.index(fragment)
        value.node.set_range(source.range(start, start + len(fragment)))
    program = Code(graph, "f")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            InterpreterState(program).run([1000, 1])
        entries = traceback.extract_tb(caught.value.__traceback__)
        assert [(entry.name, entry.lineno, entry.line) for entry in entries[1:]] == [
            ("run", entries[1].lineno, entries[1].line),
            ("f", 4, "m = m // (300 - i)"),
        ]
    assert compiled == [True]


def test_a_loop_that_calls_is_interpreted(compiled: list[bool]) -> None:
    callee = GraphFunction(
        "g",
        parse_graph("""
graph(%x : int):
  %one : int = prim::Constant[value=1]()
  %y : int = aten::add(%x, %one)
  return (%y)
"""),
    )
    graph = parse_graph("""
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%n, %t, %z)
    block0(%i : int, %a : int):
      %b : int = prim::CallFunction(%a)
      -> (%t, %b)
  return (%s)
""")
    constant = graph.create("prim::Constant", types=[FunctionType(callee)], attributes={"name": "g"})
    graph.find_nodes("prim::CallFunction")[0].insert_input(0, graph.block.prepend(constant).output)
    assert run(Code(graph, "f"), 2 * HOT) == 2 * HOT
    assert compiled == [False]


def test_loops_too_deep_for_python_are_interpreted(compiled: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic_blocks, "HOT", 1)
    graph = Graph()
    limit = graph.insert_constant(1)
    true = graph.insert_constant(True)
    x = graph.add_input("x", INT)
    one = graph.insert_constant(1)
    block, value = graph.block, x
    for _ in range(30):
        node = block.append(graph.create("prim::Loop", [limit, true, value], types=[INT]))
        block.add_output(node.output)
        block = node.add_block()
        block.add_input("", INT)
        value = block.add_input("", INT)
        block.add_output(true)
    block.add_output(block.append(graph.create("aten::add", [value, one], types=[INT])).output)
    # The outermost loop runs twice, so that it becomes hot.
    graph.find_nodes("prim::Loop")[0].replace_input(0, graph.block.prepend(graph.create_constant(3)).output)
    assert run(Code(graph, "f"), 5) == 8
    assert compiled == [False]


def test_steps_stay_steps() -> None:
    program = code(SUM)
    run(program, 2 * HOT)
    state = InterpreterState(program)
    state.start([3])
    positions = []
    while not state.is_finished:
        positions.append(state.position)
        state.step()
    assert positions == [0, 1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 5]
    assert state.result == 6


def test_constants_that_can_be_written_to_are_made_anew_each_time(compiled: list[bool]) -> None:
    graph = parse_graph("""
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%n, %t, %z)
    block0(%i : int, %a : int):
      %items : int[] = prim::Constant[value=[1, 2]]()
      %r : int[] = aten::append(%items, %i)
      %b : int = aten::len(%items)
      -> (%t, %b)
  return (%s)
""")
    assert run(Code(graph, "f"), 2 * HOT) == 3
    assert compiled == [True]


def test_a_condition_that_is_negated(compiled: list[bool]) -> None:
    graph = parse_graph("""
graph(%n : int, %m : int):
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %s : int = prim::Loop(%n, %t, %z)
    block0(%i : int, %a : int):
      %c : bool = aten::lt(%i, %m)
      %d : bool = aten::__not__(%c)
      %b : int = prim::If(%d)
        block0():
          -> (%a)
        block1():
          %e : int = aten::add(%a, %one)
          -> (%e)
      -> (%t, %b)
  return (%s)
""")
    assert graph.find_value("c").type == BOOL  # type: ignore[union-attr]
    assert run(Code(graph, "f"), 3 * HOT, 2 * HOT + 5) == 2 * HOT + 5
    assert compiled == [True]


def test_operations_that_become_faster_are_called_in_their_new_form(compiled: list[bool]) -> None:
    calls: list[str] = []

    class Settling(PatchableOperation):
        def __call__(self, *inputs: Any) -> Any:
            calls.append("slow")
            if len(calls) == 2 * HOT:
                self.patch_call_sites(fast)
            return inputs[0] + 1

    def fast(*inputs: Any) -> Any:
        calls.append("fast")
        return inputs[0] + 1

    program = code(SUM)
    settling = Settling()
    for instruction in program.instructions:
        if instruction.node.kind == "aten::mul":
            instruction.operation = settling
    run(program, 3 * HOT)
    assert compiled == [True]
    assert calls == ["slow"] * 2 * HOT + ["fast"] * HOT
