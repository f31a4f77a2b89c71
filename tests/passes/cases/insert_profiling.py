"""Graphs before the pass ``insert_profiling``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "each use of a tensor, once for each node": """
graph(%x : Tensor, %n : int, %p : Tensor?):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::add(%y, %y, %one)
  %none : NoneType = prim::Constant()
  %q : bool = aten::__is__(%p, %none)
  %s : int[] = aten::size(%z)
  %m : int = aten::add(%n, %one)
  return (%z, %q, %s, %m)
""",
    "in blocks, not at them": """
graph(%x : Tensor, %c : bool, %n : int):
  %true : bool = prim::Constant[value=1]()
  %r : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      -> (%x)
  %s : Tensor = prim::Loop(%n, %true, %r)
    block0(%i : int, %t : Tensor):
      %u : Tensor = aten::mul(%t, %x)
      -> (%true, %u)
  return (%s)
""",
    "nodes that forward tensors, and what runs elsewhere, are not uses": """
graph(%x : Tensor, %y : Tensor):
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
  %f : Future(Tensor) = prim::fork_0(%x)
  return (%l, %t, %f)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
""",
    "what is constant": """
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %w : Tensor = prim::Constant[value={2}]()
  %y : Tensor = aten::add(%x, %w, %one)
  return (%y)
""",
}
