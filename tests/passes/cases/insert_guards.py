"""Graphs before the pass ``insert_guards``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "what was seen is insisted on": """
graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = prim::profile[profiled_type=Float(2, *, strides=[3, 1], requires_grad=1, device=cpu)](%x)
  %2 : Tensor = prim::profile(%y)
  %z : Tensor = aten::mm(%1, %2)
  %3 : Tensor = prim::profile[profiled_type=Float(2, 4, strides=[4, 1], requires_grad=1, device=cpu)](%z)
  %r : Tensor = aten::relu(%3)
  return (%r)
""",
    "None, and what is not None": """
graph(%x : Tensor?, %y : Tensor?, %z : Tensor?):
  %none : NoneType = prim::Constant()
  %1 : Tensor? = prim::profile[profiled_type=NoneType](%x)
  %a : bool = aten::__is__(%1, %none)
  %2 : Tensor? = prim::profile[profiled_type=Tensor](%y)
  %b : bool = aten::__is__(%2, %none)
  %3 : Tensor? = prim::profile(%z)
  %c : bool = aten::__is__(%3, %none)
  return (%a, %b, %c)
""",
    "nothing that changes under the hands of the program": """
graph(%x : Tensor, %y : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %1 : Tensor = prim::profile[profiled_type=Float(2, 3, requires_grad=0, device=cpu)](%x)
  %a : Tensor = aten::t_(%1)
  %2 : Tensor = prim::profile[profiled_type=Float(2, 3, requires_grad=0, device=cpu)](%y)
  %b : Tensor = aten::mul_(%2, %n)
  return (%a, %b)
""",
}
