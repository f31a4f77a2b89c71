"""Graphs before the pass ``lower_simple_tuples``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "unpacked where it is made": """
graph(%x : Tensor, %n : int):
  %t : (Tensor, int) = prim::TupleConstruct(%x, %n)
  %a : Tensor, %b : int = prim::TupleUnpack(%t)
  %c : Tensor = aten::mul(%a, %b)
  return (%c)
""",
    "indexed and cut; what is used as a tuple stays": """
graph(%x : Tensor, %n : int):
  %last : int = prim::Constant[value=-1]()
  %t : (Tensor, int, int) = prim::TupleConstruct(%x, %n, %n)
  %a : int = prim::TupleIndex(%t, %last)
  %u : (Tensor, int) = prim::TupleSlice[beg=0, end=2](%t)
  %b : (int, (Tensor, int), (Tensor, int, int)) = prim::TupleConstruct(%a, %u, %t)
  return (%b)
""",
    "a tuple that comes from elsewhere stays": """
graph(%t : (Tensor, int)):
  %a : Tensor, %b : int = prim::TupleUnpack(%t)
  return (%b)
""",
}
