"""Graphs before the pass ``common_subexpression_elimination``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "the second of two is the first": """
graph(%x : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %i : int = aten::add(%n, %one)
  %j : int = aten::add(%n, %one)
  %k : int = aten::mul(%i, %j)
  %c : Tensor = aten::add(%a, %b, %k)
  return (%c)
""",
    "values of outer blocks are known within, and not the reverse": """
graph(%x : Tensor, %c : bool):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %y : Tensor = prim::If(%c)
    block0():
      %b : Tensor = aten::relu(%x)
      %d : Tensor = aten::neg(%b)
      -> (%d)
    block1():
      %e : Tensor = aten::neg(%a)
      -> (%e)
  %f : Tensor = aten::neg(%a)
  %z : Tensor = aten::add(%y, %f, %one)
  return (%z)
""",
    "one that is written to is not the other": """
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %w : Tensor = aten::add_(%b, %one, %one)
  %c : Tensor = aten::add(%a, %w, %one)
  return (%c)
""",
    "between the two the operand is written to": """
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %w : Tensor = aten::add_(%x, %one, %one)
  %b : Tensor = aten::relu(%x)
  %c : Tensor = aten::add(%a, %b, %one)
  return (%c)
""",
    "of two lists, a caller may write to each": """
graph(%x : Tensor):
  %a : Tensor[] = prim::ListConstruct(%x)
  %b : Tensor[] = prim::ListConstruct(%x)
  return (%a, %b)
""",
    "two views that are returned stay two; what they are views of is one, and so are two lists that stay here": """
graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %a : Tensor = aten::select(%x, %0, %0)
  %b : Tensor = aten::select(%x, %0, %0)
  %l : int[] = prim::ListConstruct(%0)
  %m : int[] = prim::ListConstruct(%0)
  %c : Tensor = aten::permute(%a, %l)
  %d : Tensor = aten::permute(%b, %m)
  return (%c, %d)
""",
    "objects that are distinguished": """
graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %c : bool = aten::__is__(%a, %b)
  return (%c)
""",
    "random numbers differ": """
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::bernoulli(%x, %none)
  %b : Tensor = aten::bernoulli(%x, %none)
  %c : Tensor = aten::sub(%a, %b, %one)
  return (%c)
""",
    "without gradients it is another; numbers are the same": """
graph(%x : Tensor, %n : int, %m : __torch__.torch.autograd.grad_mode.no_grad):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %i : int = aten::add(%n, %one)
  %e : NoneType = prim::Enter(%m)
  %b : Tensor = aten::relu(%x)
  %j : int = aten::add(%n, %one)
  %f : NoneType = prim::Exit(%m)
  %d : Tensor = aten::relu(%x)
  return (%a, %b, %d, %i, %j)
""",
}
