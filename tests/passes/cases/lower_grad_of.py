"""Graphs before the pass ``lower_grad_of``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "one gradient, and two at once": """
graph(%d : Tensor, %e : Tensor, %x : Tensor, %y : Tensor):
  %zero : int = prim::Constant[value=0]()
  %g : Tensor = prim::GradOf[name="aten::relu"](%d)
    block0():
      %h : Tensor = aten::threshold_backward(%d, %x, %zero)
      -> (%h)
  %i : Tensor, %j : Tensor = prim::GradOf[name="aten::mul"](%g, %e)
    block0():
      %k : Tensor = aten::mul(%g, %y)
      %l : Tensor = aten::mul(%e, %x)
      -> (%k, %l)
  return (%i, %j)
""",
    "gradients in a branch": """
graph(%d : Tensor, %x : Tensor, %p : bool):
  %r : Tensor = prim::If(%p)
    block0():
      %g : Tensor = prim::GradOf[name="aten::neg"](%d)
        block0():
          %h : Tensor = aten::neg(%d)
          -> (%h)
      -> (%g)
    block1():
      -> (%x)
  return (%r)
""",
}
