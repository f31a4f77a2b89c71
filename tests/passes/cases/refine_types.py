"""Graphs before the pass ``refine_types``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "what follows from guards": """
graph(%x : Tensor, %w : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %1 : Float(2, 3, requires_grad=0, device=cpu) = prim::Guard(%x)
  %2 : Float(3, *, requires_grad=0, device=cpu) = prim::Guard(%w)
  %y : Tensor = aten::mm(%1, %2)
  %z : Tensor = aten::add(%y, %n, %one)
  %a : Tensor = aten::relu(%x)
  return (%z, %a)
""",
    "branches and loops": """
graph(%x : Tensor, %c : bool, %n : int):
  %true : bool = prim::Constant[value=1]()
  %1 : Float(2, 3, requires_grad=0, device=cpu) = prim::Guard(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::t(%1)
      -> (%a)
    block1():
      %b : Tensor = aten::relu(%1)
      -> (%b)
  %s : Tensor = prim::Loop(%n, %true, %1)
    block0(%i : int, %t : Tensor):
      %u : Tensor = aten::neg(%t)
      -> (%true, %u)
  return (%r, %s)
""",
}
