"""Graphs before the pass ``insert_bailouts``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a straight line": """
graph(%x : Tensor, %y : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %1 : Float(2) = prim::Guard(%x)
  %a : Tensor = aten::add(%1, %n, %one)
  %2 : Float(2) = prim::Guard(%y)
  %b : Tensor = aten::mul(%a, %2)
  %c : Tensor = aten::relu(%b)
  return (%c, %1)
""",
    "effects": """
graph(%x : Tensor, %y : Tensor, %n : int):
  %made : Tensor[] = prim::ListConstruct(%x)
  %0 : Tensor = aten::add_(%x, %n, %n)
   = prim::Print(%n)
  %1 : Float(2) = prim::Guard(%y)
  %2 : Tensor = aten::mul_(%x, %1)
  %3 : Tensor[] = aten::append(%made, %1)
   = prim::Print(%1)
  return (%made)
""",
    "out of a branch": """
graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::neg(%x)
  %r : Tensor, %n : int = prim::If(%c)
    block0():
      %one : int = prim::Constant[value=1]()
      %1 : Float(2) = prim::Guard(%a)
      %b : Tensor = aten::relu(%1)
      -> (%b, %one)
    block1():
      %two : int = prim::Constant[value=2]()
      -> (%a, %two)
  %s : Tensor = aten::add(%r, %x, %n)
  return (%s)
""",
    "out of a loop": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %total : Tensor, %last : int = prim::Loop(%n, %true, %x, %n)
    block0(%i : int, %t : Tensor, %k : int):
      %a : Tensor = aten::mul(%t, %i)
      %1 : Float(2) = prim::Guard(%a)
      %b : Tensor = aten::add(%1, %x, %i)
      -> (%true, %b, %i)
  %s : Tensor = aten::add(%total, %x, %last)
  return (%s)
""",
    "out of a while loop, in the branch of a loop": """
graph(%x : Tensor, %limit : int):
  %most : int = prim::Constant[value=9223372036854775807]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %goes : bool = aten::lt(%zero, %limit)
  %r : Tensor, %m : int = prim::Loop(%most, %goes, %x, %zero)
    block0(%_ : int, %t : Tensor, %k : int):
      %u : Tensor = prim::Loop(%k, %true, %t)
        block0(%j : int, %v : Tensor):
          %odd : bool = aten::gt(%j, %one)
          %w : Tensor = prim::If(%odd)
            block0():
               = prim::Print(%j)
              %1 : Float(2) = prim::Guard(%v)
              %a : Tensor = aten::mul(%1, %j)
              -> (%a)
            block1():
              -> (%v)
          -> (%true, %w)
      %next : int = aten::add(%k, %one)
      %more : bool = aten::lt(%next, %limit)
      -> (%more, %u, %next)
  return (%r)
""",
    "none where the rest would leave what it has not entered": """
graph(%x : Tensor, %m : Any):
  %0 : Any = prim::Enter(%m)
  %1 : Float(2) = prim::Guard(%x)
  %y : Tensor = aten::relu(%1)
  %2 : Any = prim::Exit(%m)
  %3 : Float(2) = prim::Guard(%y)
  %z : Tensor = aten::neg(%3)
  return (%z)
""",
    "lists that are written to are passed, other constants are recomputed": """
graph(%x : Tensor):
  %l : int[] = prim::Constant[value=[1, 2]]()
  %one : int = prim::Constant[value=1]()
  %m : int[] = aten::append(%l, %one)
  %1 : Float(2) = prim::Guard(%x)
  %y : Tensor = aten::add(%1, %one, %one)
  return (%l, %y)
""",
}
