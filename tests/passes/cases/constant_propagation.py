"""Graphs before the pass ``constant_propagation``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "numbers that name no dtype, and what depends on the default one, are left to the run": """
graph():
  %a : int = prim::Constant[value=200]()
  %b : int = prim::Constant[value=3]()
  %c : int = aten::promote_types(%a, %b)
  %f : float = prim::Constant[value=0.5]()
  %g : int = aten::result_type(%f, %b)
  %h : int = aten::promote_types(%b, %b)
  return (%c, %g, %h)
""",
    "numbers, strings and tuples are computed": """
graph(%x : int):
  %2 : int = prim::Constant[value=2]()
  %3 : float = prim::Constant[value=0.5]()
  %s : str = prim::Constant[value="ab"]()
  %4 : int = aten::mul(%2, %2)
  %5 : float = aten::add(%4, %3)
  %6 : str = aten::add(%s, %s)
  %7 : (float, str) = prim::TupleConstruct(%5, %6)
  %8 : ((float, str), int) = prim::TupleConstruct(%7, %x)
  return (%8)
""",
    "a branch that is known is the only one": """
graph(%x : Tensor):
  %3 : int = prim::Constant[value=3]()
  %4 : bool = aten::gt(%3, %3)
  %5 : Tensor = prim::If(%4)
    block0():
      %6 : Tensor = aten::neg(%x)
      -> (%6)
    block1():
      %7 : Tensor = aten::mul(%x, %3)
      -> (%7)
  return (%5)
""",
    "what both branches give is given without them": """
graph(%x : int, %c : bool):
  %y : int, %z : int, %w : int = prim::If(%c)
    block0():
      %1 : int = prim::Constant[value=1]()
      -> (%x, %1, %x)
    block1():
      %2 : int = prim::Constant[value=1]()
      %3 : int = aten::neg(%x)
      -> (%x, %2, %3)
  %4 : (int, int, int) = prim::TupleConstruct(%y, %z, %w)
  return (%4)
""",
    "after a branch that raises, there is what the other one takes from outside, but not what it computes": """
graph(%x : Tensor, %wrong : bool, %message : str):
  %none : NoneType = prim::Constant()
  %nothing : Tensor = prim::Uninitialized()
  %unset : int = prim::Uninitialized()
  %a : Tensor, %b : Tensor, %c : int = prim::If(%wrong)
    block0():
      %n : Tensor = aten::neg(%x)
      %2 : int = prim::Constant[value=2]()
      -> (%x, %n, %2)
    block1():
       = prim::RaiseException(%message, %none)
      -> (%nothing, %nothing, %unset)
  %r : (Tensor, Tensor, int) = prim::TupleConstruct(%a, %b, %c)
  return (%r)
""",
    "a condition is known within its branches": """
graph(%x : int, %c : bool):
  %true : bool = prim::Constant[value=1]()
  %d : bool, %y : int = prim::If(%c)
    block0():
      -> (%true, %x)
    block1():
      %z : int = prim::If(%c)
        block0():
          %1 : int = aten::neg(%x)
          -> (%1)
        block1():
          -> (%x)
      -> (%c, %z)
  %2 : (bool, int) = prim::TupleConstruct(%d, %y)
  return (%2)
""",
    "operators on what is one constant or another": """
graph(%x : int, %c : bool):
  %none : str = prim::Constant[value=""]()
  %text : str = prim::Constant[value="some"]()
  %zero : int = prim::Constant[value=0]()
  %s : str, %n : int, %m : int = prim::If(%c)
    block0():
      -> (%text, %zero, %x)
    block1():
      %one : int = prim::Constant[value=1]()
      -> (%none, %one, %one)
  %1 : int = aten::len(%s)
  %2 : bool = aten::gt(%1, %zero)
  %3 : bool = aten::__not__(%2)
  %4 : int = aten::mul(%1, %1)
  %5 : int = aten::mul(%1, %n)
  %6 : int = aten::neg(%m)
  %7 : int = aten::floordiv(%4, %n)
  %8 : (int, bool, bool, int, int, int, int) = prim::TupleConstruct(%1, %2, %3, %4, %5, %6, %7)
  return (%8)
""",
    "a loop that never runs, and what a loop carries unchanged": """
graph(%x : int, %n : int):
  %true : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %a : int = prim::Loop(%0, %true, %x)
    block0(%i : int, %a.1 : int):
      %a.2 : int = aten::add(%a.1, %i)
      -> (%true, %a.2)
  %b : int, %c : int = prim::Loop(%n, %true, %a, %n)
    block0(%j : int, %b.1 : int, %c.1 : int):
      %b.2 : int = aten::add(%b.1, %c.1)
      -> (%true, %b.2, %c.1)
  %d : (int, int) = prim::TupleConstruct(%b, %c)
  return (%d)
""",
    "what raises, prints or can be written to is left to run": """
graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %s : str = prim::Constant[value="x"]()
  %2 : int = aten::floordiv(%1, %0)
   = prim::Print(%s)
  %3 : int[] = prim::ListConstruct(%0, %1)
  %4 : int = aten::len(%3)
  %5 : (int, int[], int) = prim::TupleConstruct(%2, %3, %4)
  return (%5)
""",
}
