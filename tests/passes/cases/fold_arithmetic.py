"""Graphs before the pass ``fold_arithmetic``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "by an entry for each channel, and a number": """
graph(%x : Tensor):
  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %k : Float(1, 1, 1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %half : float = prim::Constant[value=0.5]()
  %1 : Tensor = aten::mul(%k, %c)
  %2 : Tensor = aten::add(%1, %k, %one)
  %3 : Tensor = aten::sub(%k, %2, %one)
  %4 : Tensor = aten::div(%3, %half)
  return (%4)
""",
    "a dimension for the batch, where there is one": """
graph(%x : Float(*, *, *, *)):
  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %k : Float(1, 1, 1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %k4 : Float(1, 1, 1, 1) = prim::Constant[value={2}]()
  %1 : Tensor = aten::mul(%c, %k4)
  return (%1)
""",
    "it is not known whether there is one": """
graph(%x : Tensor):
  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %k : Float(1, 1, 1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %k4 : Float(1, 1, 1, 1) = prim::Constant[value={2}]()
  %1 : Tensor = aten::mul(%c, %k4)
  return (%1)
""",
    "the convolution is added to, times another number": """
graph(%x : Tensor):
  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %k : Float(1, 1, 1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %two : int = prim::Constant[value=2]()
  %1 : Tensor = aten::add(%c, %k, %two)
  return (%1)
""",
    "it is what is times the number, or below the line; or the result is rounded": """
graph(%x : Tensor):
  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %k : Float(1, 1, 1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %two : int = prim::Constant[value=2]()
  %floor : str = prim::Constant[value="floor"]()
  %1 : Tensor = aten::add(%k, %c, %two)
  %d : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %2 : Tensor = aten::div(%k, %d)
  %e : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %3 : Tensor = aten::div(%e, %k, %floor)
  return (%1, %2, %3)
""",
    "another dtype, more channels, more rows": """
graph(%x : Tensor):
  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %k : Float(1, 1, 1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %double : Double(1, 1, 1) = prim::Constant[value={2}]()
  %1 : Tensor = aten::mul(%c, %double)
  return (%1)
""",
    "what is not finite": """
graph(%x : Tensor):
  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %k : Float(1, 1, 1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %1 : Tensor = aten::div(%c, %zero)
  return (%1)
""",
    "it has other uses, or it is written to": """
graph(%x : Tensor):
  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %k : Float(1, 1, 1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %1 : Tensor = aten::mul(%c, %k)
  %d : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %2 : Tensor = aten::add_(%d, %one, %one)
  %3 : Tensor = aten::mul(%2, %k)
  return (%1, %c, %3)
""",
    "a negation, and a subtraction from the right": """
graph(%x : Tensor):
  %w : Float(1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={2}]()
  %one : int = prim::Constant[value=1]()
  %c : Tensor = aten::linear(%x, %w, %b)
  %1 : Tensor = aten::neg(%c)
  %2 : Tensor = aten::rsub(%1, %b, %one)
  return (%2)
""",
    "a linear map": """
graph(%x : Tensor):
  %w : Float(1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={2}]()
  %none : NoneType = prim::Constant()
  %c : Tensor = aten::linear(%x, %w, %none)
  %1 : Tensor = aten::mul(%c, %b)
  return (%1)
""",
}
