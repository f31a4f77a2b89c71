"""Graphs before the pass ``remove_dropout``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "not in training": """
graph(%x : Tensor):
  %no : bool = prim::Constant[value=0]()
  %p : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::dropout(%x, %p, %no)
  %b : Tensor = aten::feature_dropout_(%a, %p, %no)
  %c : Tensor = aten::relu_(%b)
  return (%c)
""",
    "in training, and unknown": """
graph(%x : Tensor, %training : bool):
  %yes : bool = prim::Constant[value=1]()
  %p : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::dropout(%x, %p, %yes)
  %b : Tensor = aten::alpha_dropout(%a, %p, %training)
  return (%b)
""",
}
