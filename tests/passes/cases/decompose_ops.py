"""Graphs before the pass ``decompose_ops``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a product and a sum": """
graph(%b : Float(*), %x : Float(*, *), %w : Float(*, *)):
  %one : int = prim::Constant[value=1]()
  %y : Float(*, *) = aten::addmm(%b, %x, %w, %one, %one)
  return (%y)
""",
    "factors, another dtype, and dtypes that are not known": """
graph(%b : Float(*), %x : Float(*, *), %w : Float(*, *), %d : Double(*), %t : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %y : Float(*, *) = aten::addmm(%b, %x, %w, %one, %two)
  %z : Float(*, *) = aten::addmm(%d, %x, %w, %one, %one)
  %v : Float(*, *) = aten::addmm(%t, %x, %w, %one, %one)
  return (%y, %z, %v)
""",
    "layer normalization, with and without a bias": """
graph(%x : Float(*, *, 4), %w : Float(4), %b : Float(4)):
  %four : int = prim::Constant[value=4]()
  %eps : float = prim::Constant[value=1e-05]()
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %n : int[] = prim::ListConstruct(%four)
  %y : Float(*, *, 4) = aten::layer_norm(%x, %n, %w, %b, %eps, %true)
  %z : Float(*, *, 4) = aten::layer_norm(%y, %n, %w, %none, %eps, %true)
  %v : Float(*, *, 4) = aten::layer_norm(%z, %n, %none, %none, %eps, %true)
  return (%v)
""",
    "batch normalization of images": """
graph(%x : Float(*, 3, *, *), %w : Float(3), %b : Float(3), %m : Float(3), %v : Float(3)):
  %eps : float = prim::Constant[value=1e-05]()
  %momentum : float = prim::Constant[value=0.1]()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %y : Float(*, 3, *, *) = aten::batch_norm(%x, %w, %b, %m, %v, %false, %momentum, %eps, %true)
  return (%y)
""",
    "a weight of which it is not known that it fits": """
graph(%x : Float(*, *), %w : Float(*), %m : Float(3), %n : int[], %o : Float(1)):
  %eps : float = prim::Constant[value=1e-05]()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %y : Float(*, *) = aten::batch_norm(%x, %w, %none, %m, %m, %false, %eps, %eps, %true)
  %z : Float(*, *) = aten::layer_norm(%x, %n, %o, %none, %eps, %true)
  return (%y, %z)
""",
}
