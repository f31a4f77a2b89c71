"""Graphs before the pass ``dead_code_elimination``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "nodes, outputs and whole branches without uses": """
graph(%x : Tensor, %c : bool, %n : int):
  %1 : Tensor = aten::neg(%x)
  %2 : Tensor, %3 : Tensor = prim::If(%c)
    block0():
      %4 : Tensor = aten::abs(%x)
      %5 : Tensor = aten::exp(%x)
      -> (%4, %5)
    block1():
      -> (%x, %x)
   = prim::If(%c)
    block0():
      %6 : int = aten::neg(%n)
      -> ()
    block1():
      -> ()
  return (%2)
""",
    "values that the loop itself uses stay, unused ones are removed": """
graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %a : int, %b : int, %c : int = prim::Loop(%n, %true, %n, %n, %n)
    block0(%i : int, %a.1 : int, %b.1 : int, %c.1 : int):
      %a.2 : int = aten::add(%a.1, %i)
      %b.2 : int = aten::mul(%b.1, %i)
      %c.2 : int = aten::neg(%i)
      -> (%true, %a.2, %b.2, %c.2)
  return (%a)
""",
    "a write to what is not read again goes, one to what is stays": """
graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %2 : Tensor = aten::add_(%a, %1, %1)
  %3 : Tensor = aten::add_(%b, %1, %1)
  %4 : Tensor = aten::abs(%b)
  %5 : Tensor = aten::add_(%b, %1, %1)
  return (%4)
""",
    "a write through a view, into a list, or in a loop is seen": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::select(%a, %0, %0)
  %2 : Tensor = aten::add_(%b, %1, %1)
  %l : int[] = prim::ListConstruct()
   = prim::Loop(%n, %true)
    block0(%i : int):
      %m : int = aten::len(%l)
       = prim::Print(%m)
      %3 : int[] = aten::append(%l, %i)
      -> (%true)
  return (%a)
""",
    "what is written to from outside, printed, raised or called stays": """
graph(%x : Tensor, %l : int[], %n : int):
  %s : str = prim::Constant[value="no"]()
  %t : str = prim::Constant[value="builtins.ValueError"]()
  %1 : Tensor = aten::relu_(%x)
  %2 : int[] = aten::append(%l, %n)
   = prim::Print(%n)
   = prim::RaiseException(%s, %t)
  %3 : int = aten::neg(%n)
  return (%n)
""",
    "a loop on a condition may not end": """
graph(%n : int, %c : bool):
  %true : bool = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
   = prim::Loop(%n, %true)
    block0(%i : int):
      %1 : int = aten::neg(%i)
      -> (%true)
   = prim::Loop(%max, %c)
    block0(%j : int):
      %d : bool = aten::lt(%n, %n)
      -> (%d)
  return (%n)
""",
}
