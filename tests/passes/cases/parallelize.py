"""Graphs before the pass ``parallelize``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "two products of three layers, and what comes before and after": """
graph(%x : Float(64, 512), %v : Float(512, 512), %w : Float(512, 512)):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %y : Float(64, 512) = aten::neg(%x)
  %a : Float(64, 512) = aten::linear(%y, %v, %none)
  %b : Float(64, 512) = aten::relu(%a)
  %c : Float(64, 512) = aten::linear(%y, %w, %none)
  %d : Float(64, 512) = aten::relu(%c)
  %e : Float(64, 512) = aten::linear(%d, %w, %none)
  %f : Float(64, 512) = aten::add(%b, %e, %one)
  return (%f)
""",
    "three results": """
graph(%x : Float(64, 512), %w : Float(512, 512)):
  %a : Float(64, 512) = aten::mm(%x, %w)
  %b : Float(512, 512) = aten::mm(%w, %w)
  %y : Float(64, 512) = aten::neg(%x)
  %c : Float(64, 512) = aten::mm(%y, %w)
  return (%a, %b, %c)
""",
    "small products, and sizes that are not known": """
graph(%x : Float(4, 4), %y : Float(*, *), %z : Tensor):
  %a : Float(4, 4) = aten::mm(%x, %x)
  %b : Float(*, *) = aten::mm(%y, %y)
  %c : Tensor = aten::mm(%z, %z)
  return (%a, %b, %c)
""",
    "one needs the other": """
graph(%x : Float(64, 512), %w : Float(512, 512)):
  %a : Float(64, 512) = aten::mm(%x, %w)
  %b : Float(64, 512) = aten::mm(%a, %w)
  %c : Float(64, 512) = aten::mul(%a, %b)
  return (%c)
""",
    "a write, a draw of random numbers": """
graph(%x : Float(512, 512), %w : Float(512, 512)):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %a : Float(512, 512) = aten::mm(%x, %x)
  %u : Float(512, 512) = aten::add_(%x, %one, %one)
  %b : Float(512, 512) = aten::mm(%x, %w)
  %r : Float(512, 512) = aten::bernoulli(%w, %none)
  %c : Float(512, 512) = aten::mm(%r, %w)
  return (%a, %b, %c)
""",
    "another mode": """
graph(%x : Float(512, 512), %w : Float(512, 512), %m : __torch__.torch.autograd.grad_mode.no_grad):
  %e : NoneType = prim::Enter(%m)
  %a : Float(512, 512) = aten::mm(%x, %x)
  %f : NoneType = prim::Exit(%m)
  %b : Float(512, 512) = aten::mm(%x, %w)
  return (%a, %b)
""",
}
