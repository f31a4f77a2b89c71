"""Which guards stay where only those are wanted that something asks for."""

from __future__ import annotations

import pytest

from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes import EliminateGuards

SIZE = """
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %1 : Float(2, 3, requires_grad=0, device=cpu) = prim::Guard(%x)
  %2 : Float(3, requires_grad=0, device=cpu) = prim::Guard(%w)
  %y : Tensor = aten::relu(%1)
  %3 : Float(2, 3, device=cpu) = prim::Guard(%y)
  %n : int = aten::size(%3, %zero)
  %z : Tensor = aten::mul(%y, %2)
  %4 : Float(2, 3, device=cpu) = prim::Guard(%z)
  %r : Tensor = aten::mul(%4, %n)
  return (%r)
"""

GRADIENT = """
graph(%x : Tensor):
  %1 : Float(2, requires_grad=1, device=cpu) = prim::Guard(%x)
  %b : bool = prim::requires_grad(%1)
  return (%b)
"""

NOTHING = """
graph(%x : Tensor):
  %1 : Float(2, device=cpu) = prim::Guard(%x)
  %y : Tensor = aten::relu(%1)
  return (%y)
"""

CARRIED = """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %1 : Float(2, device=cpu) = prim::Guard(%x)
  %r : Tensor = prim::Loop(%n, %true, %1)
    block0(%i : int, %t : Tensor):
      %u : Tensor = aten::neg(%t)
      -> (%true, %u)
  %d : int = aten::dim(%r)
  return (%d)
"""

MORE_GUARDS_THAN_QUESTIONS = """
graph(%x : Tensor, %y : Tensor, %z : Tensor):
  %1 : Float(2, device=cpu) = prim::Guard(%x)
  %2 : Float(2, device=cpu) = prim::Guard(%y)
  %3 : Float(2, device=cpu) = prim::Guard(%z)
  %l : Tensor[] = prim::ListConstruct(%1, %2, %3)
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::cat(%l, %zero)
  %d : int = aten::dim(%a)
  return (%d)
"""

QUESTIONS_IN_A_LOOP = """
graph(%x : Tensor, %y : Tensor, %z : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %1 : Float(2, device=cpu) = prim::Guard(%x)
  %2 : Float(2, device=cpu) = prim::Guard(%y)
  %3 : Float(2, device=cpu) = prim::Guard(%z)
  %l : Tensor[] = prim::ListConstruct(%1, %2, %3)
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::cat(%l, %zero)
  %r : int = prim::Loop(%n, %true, %n)
    block0(%i : int, %t : int):
      %d : int = aten::numel(%a)
      -> (%true, %d)
  return (%r)
"""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (SIZE, ["%1 : Float(2, 3, device=cpu)"]),
        (GRADIENT, ["%1 : Float(2, requires_grad=1, device=cpu)"]),
        (NOTHING, []),
        (CARRIED, ["%1 : Float(2, device=cpu)"]),
        (MORE_GUARDS_THAN_QUESTIONS, []),
        (QUESTIONS_IN_A_LOOP, [f"%{n} : Float(2, device=cpu)" for n in (1, 2, 3)]),
    ],
)
def test_guards_that_something_asks_for(text: str, left: list[str]) -> None:
    graph = parse_graph(text.lstrip())
    assert EliminateGuards(keep_only_queried=True).run(graph) or left
    verify(graph)
    assert [repr(node.output) for node in graph.find_nodes("prim::Guard")] == left


def test_merged_guards_check_the_rank_of_a_scalar() -> None:
    """A guard of a tensor without dimensions is merged with one that does not check sizes."""
    text = """
graph(%x : Tensor):
  %1 : Float(device=cpu) = prim::Guard(%x)
  %2 : FloatTensor(requires_grad=0) = prim::Guard(%x)
  %y : Tensor = aten::mul(%1, %2)
  return (%y)
"""
    graph = parse_graph(text.lstrip())
    assert EliminateGuards().run(graph)
    verify(graph)
    assert [repr(node.output) for node in graph.find_nodes("prim::Guard")] == [
        "%1 : Float(requires_grad=0, device=cpu)"
    ]
