"""Graphs before the pass ``unwrap_scalar_operands``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "numbers beside tensors": """
graph(%x : Tensor, %n : int):
  %half : Tensor = prim::Constant[value={0.5}]()
  %two : Tensor = prim::Constant[value={2}]()
  %1 : Tensor = aten::mul(%x, %half)
  %2 : Tensor = aten::add(%1, %two, %n)
  %3 : Tensor = aten::true_divide(%2, %half)
  return (%3)
""",
    "on the left, of operators that keep the tensor, with dimensions: as they are": """
graph(%x : Tensor, %n : int, %mode : str):
  %half : Tensor = prim::Constant[value={0.5}]()
  %row : Double(1) = prim::Constant[value={3}]()
  %1 : Tensor = aten::mul(%half, %x)
  %2 : Tensor = aten::maximum(%1, %half)
  %3 : Tensor = aten::div(%2, %half, %mode)
  %4 : Tensor = aten::mul(%3, %row)
  return (%4)
""",
}
