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
}
