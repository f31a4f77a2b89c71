"""Graphs before the pass ``loop_invariant_motion``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "out of two loops, and what depends on the counter out of the inner one": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %r : int = prim::Loop(%n, %true, %n)
    block0(%i : int, %a : int):
      %s : int = prim::Loop(%n, %true, %a)
        block0(%j : int, %b : int):
          %d : int = aten::dim(%x)
          %e : int = aten::mul(%d, %n)
          %f : int = aten::mul(%e, %i)
          %c : int = aten::add(%b, %f)
          -> (%true, %c)
      -> (%true, %s)
  return (%r)
""",
    "what may fail, or makes a tensor for each iteration, stays": """
graph(%x : Tensor, %y : Tensor, %n : int, %f : float):
  %true : bool = prim::Constant[value=1]()
  %l : Tensor[] = prim::ListConstruct()
  %r : float = prim::Loop(%n, %true, %f)
    block0(%i : int, %a : float):
      %q : int = aten::floordiv(%n, %n)
      %k : int = aten::len(%y)
      %s : int = aten::size(%x, %k)
      %p : Tensor = aten::mm(%x, %y)
      %m : Tensor[] = aten::append(%l, %p)
      %b : float = aten::mul(%a, %s)
      -> (%true, %b)
  %t : (float, Tensor[]) = prim::TupleConstruct(%r, %l)
  return (%t)
""",
    "what is written to": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %l : int[] = prim::ListConstruct()
  %r : int = prim::Loop(%n, %true, %n)
    block0(%i : int, %a : int):
      %u : Tensor = aten::unsqueeze_(%x, %zero)
      %d : int = aten::dim(%x)
      %m : int[] = aten::append(%l, %d)
      %s : int = aten::len(%l)
      %b : int = aten::add(%a, %s)
      -> (%true, %b)
  return (%r)
""",
}
