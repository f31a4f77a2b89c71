"""Graphs before the pass ``pack_weights``, by a title of what it does with each."""

from __future__ import annotations

_CONSTANTS = """  %w : Float(1, 1, 1, 1) = prim::Constant[value={3}]()
  %b : Float(1) = prim::Constant[value={1}]()
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %no : bool = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
"""

CASES = {
    "convolutions with the operators after them; the caller gets the usual order": f"""
graph(%x : Tensor):
{_CONSTANTS}  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %r : Tensor = aten::relu_(%c)
  %d : Tensor = aten::conv2d(%r, %w, %none, %ones, %zeros, %ones, %one)
  %s : Tensor = aten::add(%d, %r, %one)
  %t : Tensor = aten::relu(%s)
  return (%t)
""",
    "who looks at the order in memory, and who does not": f"""
graph(%x : Tensor):
{_CONSTANTS}  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %p : Tensor = aten::max_pool2d(%c, %ones, %ones, %zeros, %ones, %no)
  %list : Tensor[] = prim::ListConstruct(%p, %c)
  %t : Tensor = aten::cat(%list, %one)
  %n : int = aten::size(%t, %one)
  %v : Tensor = aten::view(%c, %ones)
  %s : Tensor = aten::sigmoid(%t)
  return (%v, %s, %n)
""",
    "reductions over channels, slices and sums in place keep the order; a slice that is viewed does not": f"""
graph(%x : Tensor):
{_CONSTANTS}  %two : int = prim::Constant[value=2]()
  %c : Tensor = aten::conv2d(%x, %w, %none, %ones, %zeros, %ones, %one)
  %q : Tensor = aten::pow(%c, %two)
  %only : int[] = prim::ListConstruct(%one)
  %m : Tensor = aten::mean(%q, %only, %no, %none)
  %k : Tensor = aten::unsqueeze(%m, %one)
  %r : Tensor = aten::rsqrt(%k)
  %n : Tensor = aten::mul(%c, %r)
  %a : Tensor = aten::slice(%n, %one, %zero, %one, %one)
  %parts : Tensor[] = aten::chunk(%n, %two, %one)
  %p : Tensor, %u : Tensor = prim::ListUnpack(%parts)
  %s : Tensor = aten::sigmoid(%p)
  %t : Tensor = aten::add_(%s, %a, %one)
  %d : Tensor = aten::conv2d(%t, %w, %none, %ones, %zeros, %ones, %one)
  %e : Tensor = aten::slice(%d, %one, %zero, %one, %one)
  %v : Tensor = aten::view(%e, %ones)
  return (%v)
""",
    "what is written to has the usual order at once": f"""
graph(%x : Tensor):
{_CONSTANTS}  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %r : Tensor = aten::relu(%c)
  %v : Tensor = aten::select(%c, %zero, %zero)
  %m : Tensor = aten::add_(%v, %one, %one)
  %d : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %e : Tensor = aten::neg(%d)
  %f : Tensor = aten::relu_(%d)
  return (%r, %c, %e, %f)
""",
    "weights that are not known, or written to": f"""
graph(%x : Tensor, %v : Tensor):
{_CONSTANTS}  %u : Float(1, 1, 1, 1) = prim::Constant[value={{3}}]()
  %c : Tensor = aten::conv2d(%x, %v, %b, %ones, %zeros, %ones, %one)
  %d : Tensor = aten::conv2d(%x, %u, %b, %ones, %zeros, %ones, %one)
  %m : Tensor = aten::add_(%u, %one, %one)
  return (%c, %d)
""",
    "padding by name, unless it is not constant or PyTorch refuses it": f"""
graph(%x : Tensor, %mode : str):
{_CONSTANTS}  %same : str = prim::Constant[value="same"]()
  %valid : str = prim::Constant[value="valid"]()
  %two : int = prim::Constant[value=2]()
  %twos : int[] = prim::ListConstruct(%two, %two)
  %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %same, %twos, %one)
  %d : Tensor = aten::conv2d(%x, %w, %b, %twos, %valid, %ones, %one)
  %e : Tensor = aten::conv2d(%x, %w, %b, %twos, %same, %ones, %one)
  %f : Tensor = aten::conv2d(%x, %w, %b, %ones, %mode, %ones, %one)
  return (%c, %d, %e, %f)
""",
    "small linear maps": """
graph(%x : Tensor):
  %w : Float(1, 1) = prim::Constant[value={3}]()
  %none : NoneType = prim::Constant()
  %c : Tensor = aten::linear(%x, %w, %none)
  return (%c)
""",
}
