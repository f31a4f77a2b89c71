"""Graphs before the pass ``loop_unrolling``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "twice, with what each iteration does in order": """
graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %y : Tensor, %z : Tensor = prim::Loop(%two, %true, %x, %x)
    block0(%i : int, %a : Tensor, %b : Tensor):
       = prim::Print(%i)
      %c : Tensor = aten::add(%a, %i, %one)
      -> (%true, %b, %c)
  %r : (Tensor, Tensor) = prim::TupleConstruct(%y, %z)
  return (%r)
""",
    "a loop in a loop, and one that never runs": """
graph(%n : int):
  %none : int = prim::Constant[value=-3]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %r : int = prim::Loop(%two, %true, %n)
    block0(%i : int, %a : int):
      %s : int = prim::Loop(%two, %true, %a)
        block0(%j : int, %b : int):
          %c : int = aten::mul(%b, %i)
          %d : int = aten::add(%c, %j)
          -> (%true, %d)
      -> (%true, %s)
  %t : int = prim::Loop(%none, %true, %r)
    block0(%k : int, %e : int):
      %f : int = aten::neg(%e)
      -> (%true, %f)
  return (%t)
""",
    "a computed number of times, too many times, until something is so": """
graph(%n : int, %p : bool):
  %many : int = prim::Constant[value=65]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %r : int = prim::Loop(%n, %true, %n)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %i)
      -> (%true, %b)
  %s : int = prim::Loop(%many, %true, %r)
    block0(%j : int, %c : int):
      %d : int = aten::add(%c, %j)
      -> (%true, %d)
  %t : int = prim::Loop(%two, %true, %s)
    block0(%k : int, %e : int):
      %f : int = aten::add(%e, %k)
      -> (%p, %f)
  %u : int = prim::Loop(%two, %p, %t)
    block0(%l : int, %g : int):
      %h : int = aten::add(%g, %l)
      -> (%true, %h)
  return (%u)
""",
}
