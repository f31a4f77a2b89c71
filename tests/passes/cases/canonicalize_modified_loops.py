"""Graphs before the pass ``canonicalize_modified_loops``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a for loop with a break counts by hand": """
graph(%n : int, %x : int):
  %true : bool = prim::Constant[value=1]()
  %y : int = prim::Loop(%n, %true, %x)
    block0(%i : int, %y.1 : int):
      %go : bool = aten::ne(%i, %x)
      %y.2 : int = aten::add(%y.1, %i)
      -> (%go, %y.2)
  return (%y)
""",
    "a condition that is not known to hold at first is asked too": """
graph(%n : int, %c : bool):
  %true : bool = prim::Constant[value=1]()
   = prim::Loop(%n, %c)
    block0(%i : int):
       = prim::Print(%i)
      -> (%true)
  return (%n)
""",
    "plain for and while loops stay": """
graph(%n : int, %x : int):
  %true : bool = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %y : int = prim::Loop(%n, %true, %x)
    block0(%i : int, %y.1 : int):
      %y.2 : int = aten::add(%y.1, %i)
      -> (%true, %y.2)
  %c : bool = aten::lt(%y, %n)
  %z : int = prim::Loop(%max, %c, %y)
    block0(%j : int, %z.1 : int):
      %z.2 : int = aten::add(%z.1, %n)
      %d : bool = aten::lt(%z.2, %n)
      -> (%d, %z.2)
  return (%z)
""",
}
