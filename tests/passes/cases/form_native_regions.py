"""Graphs before the pass ``form_native_regions``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a loop over numbers": """
graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %total : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %i)
      -> (%true, %b)
  return (%total)
""",
    "what the loop takes and what is made of its result goes with it": """
graph(%n : int, %xs : int[]):
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %m : int = aten::mul(%n, %two)
  %total : int = prim::Loop(%m, %true, %zero)
    block0(%i : int, %a : int):
      %x : int = aten::__getitem__(%xs, %i)
      %b : int = aten::add(%a, %x)
      -> (%true, %b)
  %twice : int = aten::mul(%total, %two)
  return (%twice)
""",
    "an inner loop that appends to a list of the outer loop would convert the list again and again": """
graph(%n : int, %x : Tensor):
  %true : bool = prim::Constant[value=1]()
  %longer : int[] = prim::ListConstruct()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %a : Tensor):
      %shorter : int[] = prim::ListConstruct()
       = prim::Loop(%i, %true)
        block0(%j : int):
          %1 : int[] = aten::append(%longer, %j)
          -> (%true)
      %b : Tensor = aten::relu(%a)
       = prim::Loop(%i, %true)
        block0(%j.1 : int):
          %2 : int[] = aten::append(%shorter, %j.1)
          -> (%true)
      -> (%true, %b)
  %r : (Tensor, int[]) = prim::TupleConstruct(%y, %longer)
  return (%r)
""",
    "a loop that computes tensors stays": """
graph(%n : int, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::add(%a, %i, %one)
      -> (%true, %b)
  return (%y)
""",
    "numbers without a loop stay": """
graph(%n : int):
  %two : int = prim::Constant[value=2]()
  %m : int = aten::mul(%n, %two)
  return (%m)
""",
    "a loop that prints stays": """
graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %total : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %a : int):
       = prim::Print(%a)
      %b : int = aten::add(%a, %i)
      -> (%true, %b)
  return (%total)
""",
}
