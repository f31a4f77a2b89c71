"""Graphs before the pass ``remove_expands``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "for an addition": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %sizes : int[] = prim::ListConstruct(%two, %two)
  %1 : Tensor = aten::expand(%x, %sizes, %true)
  %2 : Tensor = aten::add(%1, %y, %one)
  return (%2)
""",
    "what the program itself expands, what is seen by others, what has nothing to be broadcast against": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %sizes : int[] = prim::ListConstruct(%two, %two)
  %1 : Tensor = aten::expand(%x, %sizes, %false)
  %2 : Tensor = aten::add(%1, %y, %one)
  %3 : Tensor = aten::expand(%x, %sizes, %true)
  %4 : Tensor = aten::mul(%3, %y)
  %5 : Tensor = aten::expand(%x, %sizes, %true)
  %6 : Tensor = aten::mul(%5, %two)
  %r : Tensor[] = prim::ListConstruct(%2, %3, %4, %6)
  return (%r)
""",
    "a tensor that is written to": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %sizes : int[] = prim::ListConstruct(%two, %two)
  %1 : Tensor = aten::expand(%x, %sizes, %true)
  %2 : Tensor = aten::unsqueeze_(%x, %two)
  %3 : Tensor = aten::add(%1, %y, %one)
  return (%3)
""",
}
