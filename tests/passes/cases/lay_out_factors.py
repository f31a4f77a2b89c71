"""Graphs before the pass ``lay_out_factors``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "factors that are not constant, or are stored row by row": """
graph(%x : Tensor, %v : Tensor):
  %w : Float(1, 1) = prim::Constant[value={0.1}]()
  %c : Tensor = aten::mm(%x, %w)
  %d : Tensor = aten::mm(%c, %v)
  return (%d)
""",
}
