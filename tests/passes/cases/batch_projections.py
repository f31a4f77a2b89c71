"""Graphs before the pass ``batch_projections``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a linear map of the part of each iteration": """
graph(%xs : Tensor(*, *, *), %h.1 : Tensor, %w : Tensor, %b : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %x : Tensor = aten::select(%xs, %zero, %t)
      %y : Tensor = aten::linear(%x, %w, %b)
      %h.3 : Tensor = aten::mul(%y, %h.2)
      -> (%true, %h.3)
  return (%h)
""",
    "a product with a matrix that is transposed in the loop, from the last part to the first": """
graph(%xs : Tensor(*, *, *), %h.1 : Tensor, %w : Tensor, %n : int, %last : int):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %i : int = aten::sub(%last, %t)
      %x : Tensor = aten::select(%xs, %one, %i)
      %v : Tensor = aten::t(%w)
      %y : Tensor(*, *) = aten::mm(%x, %v)
      %h.3 : Tensor = aten::mul(%y, %h.2)
      -> (%true, %h.3)
  return (%h)
""",
    "elements of rows, and parts of tensors whose rank is not known, stay": """
graph(%xs : Tensor(*, *), %ys : Tensor, %h.1 : Tensor, %w : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %x : Tensor = aten::select(%xs, %one, %t)
      %a : Tensor = aten::linear(%x, %w, %none)
      %y : Tensor = aten::select(%ys, %one, %t)
      %b : Tensor = aten::linear(%y, %w, %none)
      %h.3 : Tensor = aten::mul(%a, %b)
      -> (%true, %h.3)
  return (%h)
""",
    "loops that may end early, parts that are found in the loop, and weights that change stay": """
graph(%xs : Tensor(*, *, *), %h.1 : Tensor, %w.1 : Tensor, %n : int, %k : int):
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %x : Tensor = aten::select(%xs, %zero, %t)
      %h.3 : Tensor = aten::linear(%x, %w.1, %none)
      %more : bool = aten::lt(%t, %k)
      -> (%more, %h.3)
  %w : Tensor = prim::Loop(%n, %true, %w.1)
    block0(%s : int, %w.2 : Tensor):
      %i : int = aten::mul(%s, %k)
      %a : Tensor = aten::select(%xs, %zero, %i)
      %b : Tensor = aten::linear(%a, %w.1, %none)
      %c : Tensor = aten::select(%xs, %zero, %s)
      %d : Tensor = aten::linear(%c, %w.2, %none)
      %w.3 : Tensor = aten::mul(%b, %d)
      -> (%true, %w.3)
  return (%h, %w)
""",
    "what is written to stays": """
graph(%xs : Tensor(*, *, *), %h.1 : Tensor, %w : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %x : Tensor = aten::select(%xs, %zero, %t)
      %y : Tensor = aten::linear(%x, %w, %none)
      %z : Tensor = aten::mul_(%w, %h.2)
      -> (%true, %y)
  return (%h)
""",
    "what runs where gradients are not recorded stays": """
graph(%xs : Tensor(*, *, *), %h.1 : Tensor, %w : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
       = aten::set_grad_enabled(%false)
      %x : Tensor = aten::select(%xs, %zero, %t)
      %y : Tensor = aten::linear(%x, %w, %none)
       = aten::set_grad_enabled(%true)
      %h.3 : Tensor = aten::mul(%y, %h.2)
      -> (%true, %h.3)
  return (%h)
""",
    "batch_projections{sizes=[[9,4,256],[4,64],[256,256],[64,256],None]}: of large matrices alone": """
graph(%xs : Tensor, %h.1 : Tensor, %w : Tensor, %v : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %x : Tensor = aten::select(%xs, %zero, %t)
      %y : Tensor = aten::linear(%x, %w, %none)
      %z : Tensor = aten::linear(%x, %v, %none)
      %a : Tensor = aten::mul(%y, %z)
      %h.3 : Tensor = aten::mul(%a, %h.2)
      -> (%true, %h.3)
  return (%h)
""",
}
