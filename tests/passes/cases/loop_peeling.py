"""Graphs before the pass ``loop_peeling``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a sum that begins as an int": """
graph(%n : int, %x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %init : Union(Tensor, int) = prim::unchecked_cast(%zero)
  %y : Union(Tensor, int), %k : int = prim::Loop(%n, %true, %init, %zero)
    block0(%i : int, %a : Union(Tensor, int), %m : int):
      %is_tensor : bool = prim::isinstance[types=[Tensor]](%a)
      %b : Tensor = prim::If(%is_tensor)
        block0():
          %t : Tensor = prim::unchecked_cast(%a)
          %c : Tensor = aten::add(%t, %x, %one)
          -> (%c)
        block1():
          %s : int = prim::unchecked_cast(%a)
          %d : Tensor = aten::add(%x, %s, %one)
          -> (%d)
      %o : int = aten::add(%m, %i)
      -> (%true, %b, %o)
  %r : (Union(Tensor, int), int) = prim::TupleConstruct(%y, %k)
  return (%r)
""",
    "a constant number of times, until something is so": """
graph(%x : Tensor, %p : bool):
  %three : int = prim::Constant[value=3]()
  %half : float = prim::Constant[value=0.5]()
  %one : int = prim::Constant[value=1]()
  %init : Union(Tensor, float) = prim::unchecked_cast(%half)
  %y : Union(Tensor, float) = prim::Loop(%three, %p, %init)
    block0(%i : int, %a : Union(Tensor, float)):
      %is_tensor : bool = prim::isinstance[types=[Tensor]](%a)
      %b : Tensor = prim::If(%is_tensor)
        block0():
          %t : Tensor = prim::unchecked_cast(%a)
          %c : Tensor = aten::mul(%t, %x)
          -> (%c)
        block1():
          %s : float = prim::unchecked_cast(%a)
          %d : Tensor = aten::mul(%x, %s)
          -> (%d)
      %go_on : bool = aten::lt(%i, %one)
      -> (%go_on, %b)
  return (%y)
""",
    "a value that may be a number after each iteration stays": """
graph(%n : int, %x : Tensor, %p : bool):
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %init : Union(Tensor, int) = prim::unchecked_cast(%zero)
  %y : Union(Tensor, int) = prim::Loop(%n, %true, %init)
    block0(%i : int, %a : Union(Tensor, int)):
      %b : Union(Tensor, int) = prim::If(%p)
        block0():
          -> (%x)
        block1():
          -> (%a)
      -> (%true, %b)
  return (%y)
""",
}
