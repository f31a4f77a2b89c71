"""Graphs before the pass ``fold_constant_tensors``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "what is computed of constants": """
graph(%x : Tensor):
  %w : Float(1, 1) = prim::Constant[value={3}]()
  %two : float = prim::Constant[value=2.]()
  %zero : int = prim::Constant[value=0]()
  %t : Tensor = aten::t(%w)
  %s : Tensor = aten::mul(%t, %two)
  %list : Tensor[] = prim::ListConstruct(%s, %w)
  %c : Tensor = aten::cat(%list, %zero)
  %n : int = aten::size(%c, %zero)
  %y : Tensor = aten::matmul(%x, %c)
  return (%y, %n)
""",
    "lists and dicts": """
graph():
  %l : int[] = prim::Constant[value=[7, 8]]()
  %zero : int = prim::Constant[value=0]()
  %n : int = aten::len(%l)
  %a : int = aten::__getitem__(%l, %zero)
  return (%n, %a)
""",
    "a caller gets the result, and may write to it": """
graph():
  %w : Float(1) = prim::Constant[value={3}]()
  %a : Tensor = aten::neg(%w)
  return (%a)
""",
    "an input or a result is written to": """
graph(%x : Tensor):
  %w : Float(1) = prim::Constant[value={3}]()
  %v : Float(1) = prim::Constant[value={4}]()
  %one : int = prim::Constant[value=1]()
  %m : Tensor = aten::add_(%w, %one, %one)
  %a : Tensor = aten::neg(%w)
  %b : Tensor = aten::neg(%v)
  %c : Tensor = aten::add_(%b, %one, %one)
  %d : Tensor = aten::mul(%x, %a)
  %e : Tensor = aten::mul(%d, %b)
  return (%e)
""",
    "random numbers, a dtype that may change, and what raises an error": """
graph(%x : Tensor):
  %w : Float(1) = prim::Constant[value={3}]()
  %i : Long(1) = prim::Constant[value={3}]()
  %half : float = prim::Constant[value=0.5]()
  %yes : bool = prim::Constant[value=1]()
  %five : int = prim::Constant[value=5]()
  %a : Tensor = aten::dropout(%w, %half, %yes)
  %b : Tensor = aten::mul(%i, %half)
  %c : Tensor = aten::select(%w, %five, %five)
  %d : Tensor = aten::mul(%x, %a)
  %e : Tensor = aten::mul(%d, %b)
  %f : Tensor = aten::mul(%e, %c)
  return (%f)
""",
    "a complex dtype that may change, and one that may not": """
graph(%x : Tensor):
  %i : Long(1) = prim::Constant[value={3}]()
  %w : Float(1) = prim::Constant[value={3}]()
  %j : complex = prim::Constant[value=0.+1.j]()
  %a : Tensor = aten::mul(%i, %j)
  %b : Tensor = aten::mul(%w, %j)
  %c : Tensor = aten::mul(%x, %a)
  %d : Tensor = aten::mul(%c, %b)
  return (%d)
""",
    "a result that is much larger": """
graph(%x : Tensor):
  %w : Float(1) = prim::Constant[value={3}]()
  %many : int = prim::Constant[value=1000000]()
  %no : bool = prim::Constant[value=0]()
  %sizes : int[] = prim::ListConstruct(%many)
  %a : Tensor = aten::repeat(%w, %sizes)
  %b : Tensor = aten::expand(%w, %sizes, %no)
  %c : Tensor = aten::exp(%b)
  %d : Tensor = aten::mul(%x, %a)
  %e : Tensor = aten::mul(%d, %c)
  return (%e)
""",
    "under autocast an operator is another": """
graph(%x : Tensor, %mode : __torch__.torch.amp.autocast_mode.autocast):
  %w : Float(1) = prim::Constant[value={3}]()
  %e : NoneType = prim::Enter(%mode)
  %a : Tensor = aten::neg(%w)
  %f : NoneType = prim::Exit(%mode)
  %b : Tensor = aten::mul(%x, %a)
  return (%b)
""",
}
