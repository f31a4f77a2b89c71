"""Graphs before the pass ``eliminate_guards``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "what other guards imply": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %1 : Float(2, 3, device=cpu) = prim::Guard(%x)
  %2 : Float(2, 3, device=cpu) = prim::Guard(%y)
  %z : Tensor = aten::add(%1, %2, %one)
  %3 : Float(2, 3, device=cpu) = prim::Guard(%z)
  %r : Tensor = aten::relu(%3)
  return (%r)
""",
    "to definitions, in front of loops, to the start of branches; together where they meet": """
graph(%x : Tensor, %w : Tensor, %n : int, %c : bool):
  %true : bool = prim::Constant[value=1]()
   = prim::Print(%n)
  %1 : Float(2, *) = prim::Guard(%x)
  %a : Tensor = aten::relu(%1)
  %2 : Tensor(*, 3) = prim::Guard(%x)
  %b : Tensor = aten::mul(%a, %2)
  %r : Tensor = prim::Loop(%n, %true, %b)
    block0(%i : int, %t : Tensor):
       = prim::Print(%i)
      %3 : Float(3, 3) = prim::Guard(%w)
      %u : Tensor = aten::mm(%t, %3)
      -> (%true, %u)
  %s : Tensor = prim::If(%c)
    block0():
       = prim::Print(%c)
      %4 : Float(2, 2) = prim::Guard(%r)
      %d : Tensor = aten::neg(%4)
      -> (%d)
    block1():
      -> (%r)
  return (%s)
""",
    "a carried value keeps its type in each iteration": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %1 : Float(2, device=cpu) = prim::Guard(%x)
  %r : Tensor = prim::Loop(%n, %true, %1)
    block0(%i : int, %t : Tensor):
      %2 : Float(2, device=cpu) = prim::Guard(%t)
      %u : Tensor = aten::neg(%2)
      -> (%true, %u)
  return (%r)
""",
    "what is carried changes": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %r : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %t : Tensor):
      %1 : Float(*, device=cpu) = prim::Guard(%t)
      %l : Tensor[] = prim::ListConstruct(%1, %1)
      %u : Tensor = aten::cat(%l, %zero)
      -> (%true, %u)
  return (%r)
""",
    "sizes that depend on data": """
graph(%x : Tensor):
  %1 : Float(8, device=cpu) = prim::Guard(%x)
  %i : Tensor = aten::nonzero(%1)
  %2 : Long(4, 1, device=cpu) = prim::Guard(%i)
  %j : Tensor = aten::neg(%2)
  %3 : Long(4, 1, device=cpu) = prim::Guard(%j)
  %k : Tensor = aten::abs(%3)
  return (%k)
""",
}
