"""Graphs before the pass ``round_weights``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a weight of several maps, also read by others: round_weights{smallest=1}": """
graph(%x : Tensor):
  %w : Float(1, 1) = prim::Constant[value={0.1}]()
  %none : NoneType = prim::Constant()
  %c : Tensor = aten::linear(%x, %w, %none)
  %d : Tensor = aten::linear(%c, %w, %none)
  %e : Tensor = aten::mm(%d, %w)
  return (%e)
""",
    "weights that are not known, and of few numbers": """
graph(%x : Tensor, %v : Tensor):
  %w : Float(1, 1) = prim::Constant[value={0.1}]()
  %none : NoneType = prim::Constant()
  %c : Tensor = aten::linear(%x, %w, %none)
  %d : Tensor = aten::linear(%c, %v, %none)
  return (%d)
""",
    "a weight that is written to: round_weights{smallest=1}": """
graph(%x : Tensor):
  %w : Float(1, 1) = prim::Constant[value={0.1}]()
  %u : Float(1, 1) = prim::Constant[value={0.5}]()
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %m : Tensor = aten::add_(%w, %x, %one)
  %c : Tensor = aten::linear(%x, %w, %none)
  %d : Tensor = aten::linear(%c, %u, %none)
  return (%d)
""",
}
