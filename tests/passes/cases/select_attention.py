"""Graphs before the pass ``select_attention``, by a title of what it does with each."""

from __future__ import annotations

_CONSTANTS = """  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %zero : float = prim::Constant[value=0.]()
  %some : float = prim::Constant[value=0.10000000000000001]()
"""

CASES = {
    "attention without dropout": f"""
graph(%q : Tensor, %k : Tensor, %v : Tensor):
{_CONSTANTS}  %a : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %none, %zero, %no, %none, %no)
  return (%a)
""",
    "dropout, and a part that is not known": f"""
graph(%q : Tensor, %k : Tensor, %v : Tensor, %p : float):
{_CONSTANTS}  %a : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %none, %some, %no, %none, %no)
  %b : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %none, %p, %no, %none, %no)
  return (%a, %b)
""",
    "attention that is written out": f"""
graph(%q : Tensor, %k : Tensor, %v : Tensor, %s : float):
{_CONSTANTS}  %last : int = prim::Constant[value=-1]()
  %second : int = prim::Constant[value=-2]()
  %t : Tensor = aten::transpose(%k, %second, %last)
  %m : Tensor = aten::matmul(%q, %t)
  %d : Tensor = aten::div(%m, %s)
  %p : Tensor = aten::softmax(%d, %last, %none)
  %a : Tensor = aten::matmul(%p, %v)
  return (%a)
""",
    "scores with another use, another dimension, and a write between": f"""
graph(%q : Tensor, %k : Tensor, %v : Tensor, %s : float):
{_CONSTANTS}  %last : int = prim::Constant[value=-1]()
  %second : int = prim::Constant[value=-2]()
  %one : int = prim::Constant[value=1]()
  %t : Tensor = aten::transpose(%k, %second, %last)
  %m : Tensor = aten::matmul(%q, %t)
  %d : Tensor = aten::mul(%m, %s)
  %p : Tensor = aten::softmax(%d, %last, %none)
  %a : Tensor = aten::matmul(%p, %v)
  %u : Tensor = aten::transpose(%k, %second, %last)
  %n : Tensor = aten::matmul(%q, %u)
  %e : Tensor = aten::mul(%n, %s)
  %r : Tensor = aten::softmax(%e, %one, %none)
  %b : Tensor = aten::matmul(%r, %v)
  %w : Tensor = aten::transpose(%k, %second, %last)
  %o : Tensor = aten::matmul(%q, %w)
  %f : Tensor = aten::mul(%o, %s)
  %g : Tensor = aten::softmax(%f, %last, %none)
  %h : Tensor = aten::relu_(%q)
  %c : Tensor = aten::matmul(%g, %v)
  return (%m, %a, %b, %c)
""",
}
