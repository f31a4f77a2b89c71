"""Graphs before the pass ``type_refinement``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "what operators compute of what is known": """
graph(%x : Float(*, 4, device=cpu), %n : int):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::mul(%y, %n)
  %s : Tensor = aten::gt(%z, %1)
  %d : int = aten::dim(%s)
  return (%d, %s)
""",
    "what comes from two sides agrees in part": """
graph(%p : bool, %x : Float(*, 4, device=cpu)):
  %0 : int = prim::Constant[value=0]()
  %r : Tensor = prim::If(%p)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      %b : Tensor = aten::select(%x, %0, %0)
      -> (%b)
  return (%r)
""",
    "nothing of what is resized": """
graph(%x : Float(*, 4, device=cpu)):
  %0 : int = prim::Constant[value=0]()
  %y : Tensor = aten::neg(%x)
  %z : Tensor = aten::unsqueeze_(%y, %0)
  return (%y, %z)
""",
    "nothing is known, and nothing follows": """
graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
""",
    "what comes from a side that raises is not looked at, and a tensor is not None": """
graph(%x : Float(*, *, device=cpu), %wrong : bool, %message : str):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %nothing : Tensor? = prim::Uninitialized()
  %r : Tensor? = prim::If(%wrong)
    block0():
       = prim::RaiseException(%message, %none)
      -> (%nothing)
    block1():
      %n : Float(*, *, device=cpu) = aten::neg(%x)
      -> (%n)
  %missing : bool = aten::__is__(%r, %none)
  %y : Tensor = prim::If(%missing)
    block0():
      %z : Tensor = aten::flatten(%x, %zero, %one)
      -> (%z)
    block1():
      %c : Tensor = prim::unchecked_cast(%r)
      -> (%c)
  %h : Tensor = aten::relu(%y)
  return (%h)
""",
}
