"""Graphs before the pass ``specialize_autograd_zero``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a sum with what is missing is the other; of what is there, a plain sum": """
graph(%a : Tensor[Undefined], %b : Tensor, %x : Tensor):
  %z : Tensor = prim::AutogradZero()
  %c : Tensor = prim::AutogradAdd(%a, %b)
  %d : Tensor = prim::AutogradAdd(%c, %z)
  %e : Tensor = prim::AutogradAdd(%a, %z)
  %f : Tensor = aten::neg(%x)
  %g : Tensor = aten::relu(%x)
  %h : Tensor = prim::AutogradAdd(%f, %g)
  %i : Tensor = prim::AutogradAdd(%h, %b)
  return (%d, %e, %i)
""",
    "questions with one answer": """
graph(%a : Tensor[Undefined], %b : Tensor, %x : Tensor):
  %f : Tensor = aten::neg(%x)
  %p : bool = prim::AutogradAnyNonZero(%a, %a)
  %q : bool = prim::AutogradAnyNonZero(%a, %f, %b)
  %r : bool = prim::AutogradAnyNonZero(%a, %b)
  %s : bool = prim::AutogradAllNonZero(%f, %b)
  %t : bool = prim::AutogradAllNonZero(%b, %a)
  %u : bool = prim::AutogradAllZero(%b, %a)
  %v : bool = prim::AutogradAllZero(%b, %f)
  %w : bool = prim::AutogradAllNonZero(%f, %f)
  return (%p, %q, %r, %s, %t, %u, %v, %w)
""",
    "gradients of what is missing are missing, of what is there they are computed; else they stay": """
graph(%a : Tensor[Undefined], %b : Tensor, %x : Tensor):
  %f : Tensor = aten::neg(%x)
  %g : Tensor = prim::GradOf[name="aten::neg"](%a)
    block0():
      %h : Tensor = aten::neg(%a)
      -> (%h)
  %i : Tensor = prim::GradOf[name="aten::neg"](%f)
    block0():
      %j : Tensor = aten::neg(%f)
      -> (%j)
  %k : Tensor = prim::GradOf[name="aten::neg"](%b)
    block0():
      %l : Tensor = prim::AutogradAdd(%b, %g)
      -> (%l)
  %m : Tensor = prim::AutogradAdd(%g, %i)
  return (%m, %k)
""",
    "branches: known where both agree": """
graph(%b : Tensor, %x : Tensor, %p : bool):
  %f : Tensor, %g : Tensor = prim::If(%p)
    block0():
      %y : Tensor = aten::neg(%x)
      -> (%y, %y)
    block1():
      %z : Tensor = prim::AutogradZero()
      %w : Tensor = aten::relu(%x)
      -> (%z, %w)
  %q : bool = prim::AutogradAnyNonZero(%f)
  %r : bool = prim::AutogradAnyNonZero(%g)
  return (%q, %r)
""",
}
