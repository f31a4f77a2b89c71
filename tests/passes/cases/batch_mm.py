"""Graphs before the pass ``batch_mm``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a sum of four products": """
graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %one : int = prim::Constant[value=1]()
  %p : Tensor = aten::mm(%a, %b)
  %q : Tensor = aten::mm(%c, %d)
  %r : Tensor = aten::mm(%a, %c)
  %s : Tensor = aten::mm(%b, %d)
  %t : Tensor = aten::add(%p, %q, %one)
  %u : Tensor = aten::add(%r, %s, %one)
  %v : Tensor = aten::add(%t, %u, %one)
  return (%v)
""",
    "more than a sum: what is added to the end stays, and so does a product that is used elsewhere": """
graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor, %e : Tensor):
  %one : int = prim::Constant[value=1]()
  %o : Tensor = aten::mm(%e, %e)
  %p : Tensor = aten::mm(%a, %b)
  %q : Tensor = aten::mm(%c, %d)
  %r : Tensor = aten::mm(%a, %c)
  %s : Tensor = aten::mm(%b, %d)
  %t : Tensor = aten::add(%p, %q, %one)
  %u : Tensor = aten::add(%t, %r, %one)
  %v : Tensor = aten::add(%u, %s, %one)
  %w : Tensor = aten::add(%v, %o, %one)
  %x : Tensor = aten::mul(%w, %o)
  return (%x)
""",
    "three products; and a factor of two": """
graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %p : Tensor = aten::mm(%a, %b)
  %q : Tensor = aten::mm(%c, %d)
  %r : Tensor = aten::mm(%a, %c)
  %s : Tensor = aten::mm(%b, %d)
  %t : Tensor = aten::add(%p, %q, %one)
  %u : Tensor = aten::add(%t, %r, %one)
  %v : Tensor = aten::add(%u, %s, %two)
  return (%v)
""",
    "a factor that is written to": """
graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %one : int = prim::Constant[value=1]()
  %p : Tensor = aten::mm(%a, %b)
  %q : Tensor = aten::mm(%c, %d)
  %r : Tensor = aten::mm(%a, %c)
  %w : Tensor = aten::add_(%a, %one, %one)
  %s : Tensor = aten::mm(%b, %d)
  %t : Tensor = aten::add(%p, %q, %one)
  %u : Tensor = aten::add(%r, %s, %one)
  %v : Tensor = aten::add(%t, %u, %one)
  return (%v)
""",
    "gradients are recorded for some of the products": """
graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor, %m : __torch__.torch.autograd.grad_mode.no_grad):
  %one : int = prim::Constant[value=1]()
  %p : Tensor = aten::mm(%a, %b)
  %q : Tensor = aten::mm(%c, %d)
  %e : NoneType = prim::Enter(%m)
  %r : Tensor = aten::mm(%a, %c)
  %s : Tensor = aten::mm(%b, %d)
  %f : NoneType = prim::Exit(%m)
  %t : Tensor = aten::add(%p, %q, %one)
  %u : Tensor = aten::add(%r, %s, %one)
  %v : Tensor = aten::add(%t, %u, %one)
  return (%v)
""",
    "a recurrent layer, unrolled: what steps feed to the layer is computed at once, what they carry is not": """
graph(%x : Tensor, %h : Tensor, %w : Tensor, %u : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %x0 : Tensor = aten::select(%x, %zero, %zero)
  %a0 : Tensor = aten::mm(%x0, %w)
  %b0 : Tensor = aten::mm(%h, %u)
  %c0 : Tensor = aten::add(%a0, %b0, %one)
  %h0 : Tensor = aten::tanh(%c0)
  %x1 : Tensor = aten::select(%x, %zero, %one)
  %a1 : Tensor = aten::mm(%x1, %w)
  %b1 : Tensor = aten::mm(%h0, %u)
  %c1 : Tensor = aten::add(%a1, %b1, %one)
  %h1 : Tensor = aten::tanh(%c1)
  %x2 : Tensor = aten::select(%x, %zero, %two)
  %a2 : Tensor = aten::mm(%x2, %w)
  %b2 : Tensor = aten::mm(%h1, %u)
  %c2 : Tensor = aten::add(%a2, %b2, %one)
  %h2 : Tensor = aten::tanh(%c2)
  %x3 : Tensor = aten::select(%x, %zero, %three)
  %a3 : Tensor = aten::mm(%x3, %w)
  %b3 : Tensor = aten::mm(%h2, %u)
  %c3 : Tensor = aten::add(%a3, %b3, %one)
  %h3 : Tensor = aten::tanh(%c3)
  return (%h3)
""",
    "the left factor is shared, and the result of an activation is never written to": """
graph(%w : Tensor, %a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %p : Tensor = aten::mm(%w, %a)
  %q : Tensor = aten::mm(%w, %b)
  %r : Tensor = aten::mm(%w, %c)
  %s : Tensor = aten::mm(%w, %d)
  %e : Tensor = aten::relu(%p)
  %f : Tensor = aten::relu(%q)
  %g : Tensor = aten::relu(%r)
  %h : Tensor = aten::relu(%s)
  %i : Tensor = aten::neg_(%h)
  return (%e, %f, %g, %i)
""",
    "products that a caller gets, that are in a list, or that are written to": """
graph(%w : Tensor, %a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor, %e : Tensor):
  %p : Tensor = aten::mm(%a, %w)
  %q : Tensor = aten::mm(%b, %w)
  %r : Tensor = aten::mm(%c, %w)
  %s : Tensor = aten::mm(%d, %w)
  %t : Tensor = aten::mm(%e, %w)
  %l : Tensor[] = prim::ListConstruct(%q)
  %u : Tensor = aten::neg_(%r)
  %v : Tensor = aten::relu(%s)
  %x : Tensor = aten::relu(%t)
  return (%p, %l, %u, %v, %x)
""",
    "one product needs another": """
graph(%w : Tensor, %a : Tensor, %b : Tensor):
  %p : Tensor = aten::mm(%a, %w)
  %q : Tensor = aten::mm(%b, %w)
  %r : Tensor = aten::mm(%q, %w)
  %s : Tensor = aten::mm(%r, %w)
  %t : Tensor = aten::mm(%b, %w)
  %u : Tensor = aten::mul(%s, %t)
  %v : Tensor = aten::mul(%u, %p)
  return (%v)
""",
}
