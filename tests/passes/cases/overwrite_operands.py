"""Graphs before the pass ``overwrite_operands``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "after a convolution and after a batch norm": """
graph(%x : Tensor, %w : Tensor, %b : Tensor?, %n : Tensor, %ones : int[], %zeros : int[], %low : float):
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %slope : float = prim::Constant[value=0.2]()
  %1 : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %2 : Tensor = aten::leaky_relu(%1, %slope)
  %3 : Tensor = aten::batch_norm(%2, %n, %n, %b, %b, %true, %slope, %slope, %true)
  %4 : Tensor = aten::hardtanh(%3, %low, %slope)
  return (%4)
""",
    "of another slope, of an operand with other users, of an argument, of what saves its result": """
graph(%x : Tensor, %w : Tensor, %b : Tensor?, %ones : int[], %zeros : int[], %unknown : float):
  %one : int = prim::Constant[value=1]()
  %slope : float = prim::Constant[value=0.2]()
  %negative : float = prim::Constant[value=-0.2]()
  %1 : Tensor = aten::leaky_relu(%x, %slope)
  %2 : Tensor = aten::conv2d(%1, %w, %b, %ones, %zeros, %ones, %one)
  %3 : Tensor = aten::leaky_relu(%2, %negative)
  %4 : Tensor = aten::conv2d(%3, %w, %b, %ones, %zeros, %ones, %one)
  %5 : Tensor = aten::leaky_relu(%4, %unknown)
  %6 : Tensor = aten::conv2d(%5, %w, %b, %ones, %zeros, %ones, %one)
  %7 : Tensor = aten::leaky_relu(%6, %slope)
  %8 : Tensor = aten::add(%6, %7, %one)
  %9 : Tensor = aten::exp(%8)
  %10 : Tensor = aten::leaky_relu(%9, %slope)
  return (%10)
""",
}
