"""Graphs as lists of instructions."""

from __future__ import annotations

import pytest

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.errors import SchemaError, Source
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import INT, STRING, TENSOR
from rekindle.runtime.interpreter.code import Code
from tests.support.golden import GoldenTexts

# The overview's example as torch.jit compiles it today: constants print True and None as they are, the list that
# aten::chunk
# makes is unpacked by a node of its own (the overview's listing has both as one ConstantChunk), and constants,
# which stay in
# their registers, are never moved.
LSTM = """
graph(%x : Tensor,
      %hx : Tensor,
      %cx : Tensor,
      %w_ih : Tensor,
      %w_hh : Tensor,
      %b_ih : Tensor,
      %b_hh : Tensor):
  %7 : int = prim::Constant[value=4]()
  %8 : int = prim::Constant[value=1]()
  %9 : Tensor = aten::t(%w_ih)
  %10 : Tensor = aten::mm(%x, %9)
  %11 : Tensor = aten::t(%w_hh)
  %12 : Tensor = aten::mm(%hx, %11)
  %13 : Tensor = aten::add(%10, %12, %8)
  %14 : Tensor = aten::add(%13, %b_ih, %8)
  %gates : Tensor = aten::add(%14, %b_hh, %8)
  %16 : Tensor[] = aten::chunk(%gates, %7, %8)
  %ingate.1 : Tensor, %forgetgate.1 : Tensor, %cellgate.1 : Tensor, %outgate.1 : Tensor = prim::ListUnpack(%16)
  %ingate : Tensor = aten::sigmoid(%ingate.1)
  %forgetgate : Tensor = aten::sigmoid(%forgetgate.1)
  %cellgate : Tensor = aten::tanh(%cellgate.1)
  %outgate : Tensor = aten::sigmoid(%outgate.1)
  %25 : Tensor = aten::mul(%forgetgate, %cx)
  %26 : Tensor = aten::mul(%ingate, %cellgate)
  %cy : Tensor = aten::add(%25, %26, %8)
  %28 : Tensor = aten::tanh(%cy)
  %hy : Tensor = aten::mul(%outgate, %28)
  %30 : (Tensor, Tensor) = prim::TupleConstruct(%hy, %cy)
  return (%30)
"""


def listing(text: str) -> str:
    return str(Code(parse_graph(text), "f"))


def test_the_lstm_cell_of_the_overview(golden: GoldenTexts) -> None:
    golden("runtime/lstm_code", listing(LSTM))


def test_a_branch() -> None:
    assert (
        listing("""
graph(%c : bool, %a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = prim::If(%c)
    block0():
      %d : Tensor = aten::add(%a, %b, %1)
      -> (%d)
    block1():
      -> (%a)
  return (%y)
""")
        == """\
0, 1, 2 = Load
3 = Constant 1
JumpIfFalse move(0) -> L3
4 = add move(1), move(2), 3
Jump -> L5
L3:
Drop move(2)
4 = Move move(1)
L5:
= Store move(4)"""
    )


def test_a_branch_without_a_first_or_a_second_block() -> None:
    text = """
graph(%c : bool, %a : int[]):
  %1 : int = prim::Constant[value=1]()
   = prim::If(%c)
    block0():
      {first}-> ()
    block1():
      {second}-> ()
  return (%a)
"""
    append = "%r : int[] = aten::append(%a, %1)\n      "
    assert (
        listing(text.format(first=append, second="").replace("\n   = ", "\n  "))
        == """\
0, 1 = Load
2 = Constant 1
JumpIfFalse move(0) -> L2
_ = append 1, 2
L2:
= Store move(1)"""
    )
    assert (
        listing(text.format(first="", second=append).replace("\n   = ", "\n  "))
        == """\
0, 1 = Load
2 = Constant 1
JumpIfTrue move(0) -> L2
_ = append 1, 2
L2:
= Store move(1)"""
    )


def test_a_for_loop_tests_no_condition() -> None:
    assert (
        listing("""
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%n, %t, %z)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %i)
      -> (%t, %b)
  return (%s)
""")
        == """\
0 = Load
1 = Constant True
2 = Constant 0
3 = Move 2
4 = LoopStart 0 -> L4
L2:
3 = add move(3), move(4)
4 = LoopNext 0 -> L2
L4:
= Store move(3)"""
    )


def test_a_while_loop_keeps_no_counter() -> None:
    assert (
        listing("""
graph(%n : int):
  %max : int = prim::Constant[value=9223372036854775807]()
  %z : int = prim::Constant[value=0]()
  %c : bool = aten::lt(%z, %n)
  %s : int = prim::Loop(%max, %c, %z)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %a)
      %d : bool = aten::lt(%b, %n)
      -> (%d, %b)
  return (%s)
""")
        == """\
0 = Load
1 = Constant 9223372036854775807
2 = Constant 0
3 = lt 2, 0
4 = Move 2
JumpIfFalse move(3) -> L6
L3:
4 = add 4, move(4)
5 = lt 4, 0
JumpIfTrue move(5) -> L3
L6:
= Store move(4)"""
    )


def test_a_loop_with_both_does_both() -> None:
    assert (
        listing("""
graph(%n : int, %c : bool):
  %z : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%n, %c, %z)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %i)
      %d : bool = aten::lt(%b, %n)
      -> (%d, %b)
  return (%s)
""")
        == """\
0, 1 = Load
2 = Constant 0
3 = Move 2
JumpIfFalse move(1) -> L7
4 = LoopStart 0 -> L7
L3:
3 = add move(3), move(4)
5 = lt 3, 0
JumpIfFalse move(5) -> L7
4 = LoopNext 0 -> L3
L7:
= Store move(3)"""
    )


def test_an_endless_loop() -> None:
    graph = parse_graph("""
graph(%x : Tensor):
  %max : int = prim::Constant[value=9223372036854775807]()
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%max, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::neg(%a)
      -> (%t, %b)
  return (%y)
""")
    assert (
        str(Code(graph, "f"))
        == """\
0 = Load
1 = Constant 9223372036854775807
2 = Constant True
3 = Move move(0)
L1:
3 = neg move(3)
Jump -> L1
= Store move(3)"""
    )


def test_a_swap_in_a_loop_is_one_instruction() -> None:
    assert (
        listing("""
graph(%n : int, %x : Tensor, %y : Tensor):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor, %q : Tensor = prim::Loop(%n, %t, %x, %y)
    block0(%i : int, %a : Tensor, %b : Tensor):
      -> (%t, %b, %a)
  %r : (Tensor, Tensor) = prim::TupleConstruct(%p, %q)
  return (%r)
""")
        == """\
0, 1, 2 = Load
3 = Constant True
4, 5 = Move move(1), move(2)
6 = LoopStart 0 -> L4
L2:
4, 5 = Move move(5), move(4)
6 = LoopNext 0 -> L2
L4:
7 = TupleConstruct move(4), move(5)
= Store move(7)"""
    )


def test_constants_that_can_be_written_to_are_made_anew() -> None:
    graph = Graph()
    graph.add_output(graph.insert_constant([1, 2]))
    graph.add_output(graph.insert_constant({"a": [1.5]}))
    graph.add_output(graph.insert_constant((1, "b")))
    graph.add_output(graph.insert_constant("x" * 100))
    assert (
        str(Code(graph, "f"))
        == f"""\
= Load
2 = Constant (1, 'b')
3 = Constant '{"x" * 56}...
0 = Constant [1, 2]
1 = Constant {{'a': [1.5]}}
= Store move(0), move(1), 2, 3"""
    )


def test_an_operator_that_does_not_exist() -> None:
    source = Source("def f(x, n):\n    return nonsense(x, n)\n", "user.py", 7)
    graph = Graph()
    inputs = [graph.add_input("x", TENSOR), graph.add_input("n", INT)]
    graph.insert_node(graph.create("aten::nonsense", inputs, range=source.range(24, 38)))
    with pytest.raises(SchemaError) as caught:
        Code(graph, "f")
    assert (
        str(caught.value)
        == """\
there is no operator 'aten::nonsense' (called with (Tensor, int))
  File "user.py", line 8
    def f(x, n):
        return nonsense(x, n)
               ^^^^^^^^^^^^^^"""
    )


def test_an_operator_that_does_not_take_such_inputs() -> None:
    graph = Graph()
    graph.insert_node(graph.create("aten::ord", [graph.add_input("s", STRING), graph.add_input("n", INT)]))
    with pytest.raises(SchemaError) as caught:
        Code(graph, "f")
    assert (
        str(caught.value)
        == """\
no operator 'aten::ord' takes (str, int). There are:
  aten::ord(str string) -> int"""
    )
