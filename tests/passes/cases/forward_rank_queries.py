"""Graphs before the pass ``forward_rank_queries``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a result has as many dimensions as its operand": """
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %list : int[] = prim::ListConstruct(%one, %one)
  %c : Tensor = aten::conv2d(%x, %w, %none, %list, %list, %list, %one)
  %r : Tensor = aten::relu_(%c)
  %d : int = aten::dim(%r)
  return (%r, %d)
""",
    "the number is known: by the type, by an operator, after a check": """
graph(%x : Tensor, %typed : Float(2, 3)):
  %one : int = prim::Constant[value=1]()
  %last : int = prim::Constant[value=-1]()
  %four : int = prim::Constant[value=4]()
  %text : str = prim::Constant[value="no batch"]()
  %none : NoneType = prim::Constant()
  %f : Tensor = aten::flatten(%x, %one, %last)
  %a : int = aten::dim(%f)
  %b : int = aten::dim(%typed)
  %c : int = aten::dim(%x)
  %wrong : bool = aten::ne(%c, %four)
   = prim::If(%wrong)
    block0():
       = prim::RaiseException(%text, %none)
      -> ()
    block1():
      -> ()
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::mul(%y, %f)
  %d : int = aten::dim(%y)
  %e : int = aten::dim(%z)
  return (%a, %b, %c, %d, %e)
""",
    "what a check within a branch proves holds within it": """
graph(%x : Tensor, %p : bool):
  %four : int = prim::Constant[value=4]()
  %text : str = prim::Constant[value="no batch"]()
  %none : NoneType = prim::Constant()
  %n : int = prim::If(%p)
    block0():
      %c : int = aten::dim(%x)
      %right : bool = aten::eq(%c, %four)
       = prim::If(%right)
        block0():
          -> ()
        block1():
           = prim::RaiseException(%text, %none)
          -> ()
      %d : int = aten::dim(%x)
      -> (%d)
    block1():
      -> (%four)
  %e : int = aten::dim(%x)
  return (%n, %e)
""",
    "where dimensions change in place, nothing is known": """
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %r : Tensor = aten::relu(%x)
  %y : Tensor = aten::unsqueeze_(%x, %zero)
  %d : int = aten::dim(%r)
  return (%d)
""",
    "a choice of branches, and what is not known": """
graph(%x : Tensor, %y : Tensor, %w : Tensor, %b : Tensor):
  %l : Tensor = aten::linear(%x, %w, %b)
  %m : Tensor = aten::matmul(%x, %y)
  %d : int = aten::dim(%l)
  %e : int = aten::dim(%m)
  return (%d, %e)
""",
}
