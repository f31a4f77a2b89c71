"""Graphs before the pass ``hoist_from_if``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "what both begin with, and what depends on it": """
graph(%p : bool, %x : Tensor):
  %r : Tensor = prim::If(%p)
    block0():
      %a : Tensor = aten::relu_(%x)
      %b : Tensor = aten::neg(%a)
      %c : Tensor = aten::exp(%b)
      -> (%c)
    block1():
      %d : Tensor = aten::relu_(%x)
      %e : Tensor = aten::neg(%d)
      -> (%e)
  return (%r)
""",
    "out of two": """
graph(%p : bool, %x : Tensor):
  %r : Tensor = prim::If(%p)
    block0():
      %s : Tensor = prim::If(%p)
        block0():
          %a : Tensor = aten::neg(%x)
          -> (%a)
        block1():
          %b : Tensor = aten::neg(%x)
          -> (%b)
      -> (%s)
    block1():
      %c : Tensor = aten::neg(%x)
      -> (%c)
  return (%r)
""",
    "what follows something else, takes another value or has another attribute": """
graph(%p : bool, %x : Tensor, %y : Tensor, %t : (Tensor, Tensor)):
  %r : Tensor = prim::If(%p)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
       = prim::Print(%p)
      %b : Tensor = aten::neg(%x)
      -> (%b)
  %s : Tensor = prim::If(%p)
    block0():
      %c : Tensor = aten::neg(%x)
      -> (%c)
    block1():
      %d : Tensor = aten::neg(%y)
      -> (%d)
  %u : Tensor = prim::If(%p)
    block0():
      %e : Tensor, %f : Tensor = prim::ConstantChunk[chunks=2, dim=0](%x)
      -> (%e)
    block1():
      %g : Tensor, %h : Tensor = prim::ConstantChunk[chunks=2, dim=1](%x)
      -> (%g)
  %v : Tensor[] = prim::ListConstruct(%r, %s, %u)
  return (%v)
""",
    "a with statement's entry stays beside its exit": """
graph(%p : bool, %x : Tensor, %mode : __torch__.Mode):
  %r : Tensor = prim::If(%p)
    block0():
      %a : NoneType = prim::Enter(%mode)
      %b : Tensor = aten::neg(%x)
      %c : NoneType = prim::Exit(%mode)
      -> (%b)
    block1():
      %d : NoneType = prim::Enter(%mode)
      %e : Tensor = aten::relu(%x)
      %f : NoneType = prim::Exit(%mode)
      -> (%e)
  return (%r)
""",
}
