"""Graphs before the pass ``canonicalize_outputs``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "by first use, the unused ones last": """
graph(%x : int, %c : bool):
  %a : int, %b : int, %d : int = prim::If(%c)
    block0():
      %1 : int = aten::neg(%x)
      -> (%1, %x, %x)
    block1():
      %2 : int = aten::neg(%x)
      -> (%x, %2, %x)
  %e : int = aten::neg(%d)
  %f : int = aten::add(%b, %e)
  return (%f)
""",
    "loops carry in that order too": """
graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %a : int, %b : int = prim::Loop(%n, %true, %n, %n)
    block0(%i : int, %a.1 : int, %b.1 : int):
      %a.2 : int = aten::add(%b.1, %i)
      %b.2 : int = aten::mul(%a.1, %i)
      -> (%true, %a.2, %b.2)
  %c : int = aten::neg(%b)
  %d : int = aten::mul(%c, %a)
  return (%d)
""",
    "the order outside decides the one inside": """
graph(%x : int, %c : bool):
  %a : int, %b : int = prim::If(%c)
    block0():
      %a.1 : int, %b.1 : int = prim::If(%c)
        block0():
          %1 : int = aten::neg(%x)
          -> (%1, %x)
        block1():
          -> (%x, %x)
      -> (%a.1, %b.1)
    block1():
      -> (%x, %x)
  %d : int = aten::sub(%b, %a)
  return (%d)
""",
}
