"""Graphs before the pass ``constant_pooling``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "each constant once, at the start": """
graph(%x : int, %c : bool):
  %1 : int = prim::Constant[value=1]()
  %2 : int = aten::add(%x, %1)
  %3 : int = prim::If(%c)
    block0():
      %4 : int = prim::Constant[value=1]()
      %5 : int = prim::Constant[value=2]()
      %6 : int = aten::mul(%2, %4)
      %7 : int = aten::mul(%6, %5)
      -> (%7)
    block1():
      -> (%1)
  return (%3)
""",
    "equal is not the same: types, signs of zero": """
graph():
  %1 : int = prim::Constant[value=1]()
  %2 : float = prim::Constant[value=1.]()
  %3 : bool = prim::Constant[value=1]()
  %4 : float = prim::Constant[value=0.]()
  %5 : float = prim::Constant[value=-0.]()
  %6 : NoneType = prim::Constant()
  %7 : int? = prim::Constant()
  %8 : NoneType = prim::Constant()
  %9 : (int, float, bool, float, float, NoneType, int?, NoneType) = prim::TupleConstruct(%1, %2, %3, %4, %5, %6, %7, %8)
  return (%9)
""",
}
