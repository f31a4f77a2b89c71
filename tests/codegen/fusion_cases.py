"""Graphs before the fusion pass, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a chain, with constants of its own": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %y, %one)
  %b : Tensor = aten::tanh(%a)
  %c : Tensor = aten::mul(%b, %x)
  return (%c)
""",
    "around an operator that fuses with nothing; what is used on both sides is an output": """
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::sigmoid(%a)
  %c : Tensor = aten::inner(%b, %y)
  %d : Tensor = aten::mul(%c, %a)
  %e : Tensor = aten::relu(%d)
  return (%e)
""",
    "past operators in between": """
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::inner(%x, %y)
  %c : Tensor = aten::relu(%a)
  return (%b, %c)
""",
    "operators in between move after them": """
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::inner(%a, %y)
  %c : Tensor = aten::relu(%a)
  return (%b, %c)
""",
    "who else uses a value of the group joins it": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %n : NoneType = prim::Constant()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::inner(%b, %y)
  %d : Tensor = aten::tanh(%a)
  %e : Tensor = aten::sum(%b, %n)
  return (%c, %d, %e)
""",
    "tensors that are joined": """
graph(%x : Tensor, %y : Tensor, %z : Tensor[]):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %y)
  %l : Tensor[] = prim::ListConstruct(%a, %x)
  %b : Tensor = aten::cat(%l, %one)
  %c : Tensor = aten::relu(%b)
  %d : Tensor = aten::cat(%z, %one)
  %e : Tensor = aten::neg(%d)
  return (%c, %e)
""",
    "numbers that are computed come in as inputs": """
graph(%x : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %s : float = aten::sqrt(%n)
  %a : Tensor = aten::mul(%x, %s)
  %b : Tensor = aten::add(%a, %n, %one)
  return (%b)
""",
    "not across a write to what is read": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::add_(%x, %y, %one)
  %c : Tensor = aten::mul(%a, %x)
  return (%b, %c)
""",
    "a result may be written to afterwards": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::add_(%b, %y, %one)
  return (%c)
""",
    "views join that are not used outside": """
graph(%x : Tensor, %y : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor, %c : Tensor = prim::ConstantChunk[chunks=2, dim=1](%a)
  %d : Tensor = aten::add(%b, %c, %one)
  return (%d)
""",
    "views that leave stay outside": """
graph(%x : Tensor, %y : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::select(%a, %zero, %one)
  %c : Tensor = aten::relu(%b)
  %d : Tensor = aten::neg(%c)
  return (%b, %d)
""",
    "dropout in inference joins where its result is not seen; it may be its argument itself": """
graph(%x : Tensor, %y : Tensor):
  %p : float = prim::Constant[value=0.5]()
  %false : bool = prim::Constant[value=0]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::dropout(%a, %p, %false)
  %c : Tensor = aten::relu(%b)
  %d : Tensor = aten::dropout(%c, %p, %false)
  return (%d)
""",
    "in blocks, each by itself": """
graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::neg(%x)
  %y : Tensor = prim::If(%c)
    block0():
      %b : Tensor = aten::relu(%a)
      %d : Tensor = aten::tanh(%b)
      -> (%d)
    block1():
      -> (%x)
  %e : Tensor = aten::sigmoid(%y)
  return (%e)
""",
    "products of matrices, with the operators around them": """
graph(%x : Tensor, %w : Tensor, %v : Tensor, %b : Tensor):
  %wt : Tensor = aten::t(%w)
  %p : Tensor = aten::mm(%x, %wt)
  %r : Tensor = aten::relu(%p)
  %q : Tensor = aten::linear(%r, %v, %b)
  return (%q)
""",
    "a product that is scaled stays": """
graph(%x : Tensor, %y : Tensor, %c : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %p : Tensor = aten::addmm(%c, %x, %y, %one, %two)
  %r : Tensor = aten::relu(%p)
  return (%r)
""",
    "rows of a table, and windows": """
graph(%w : Tensor, %i : Tensor):
  %m : int = prim::Constant[value=-1]()
  %no : bool = prim::Constant[value=0]()
  %kernel : int[] = prim::Constant[value=[2]]()
  %none : int[] = prim::Constant[value=annotate(List[int], [])]()
  %zero : int[] = prim::Constant[value=[0]]()
  %one : int[] = prim::Constant[value=[1]]()
  %e : Tensor = aten::embedding(%w, %i, %m, %no, %no)
  %p : Tensor = aten::max_pool1d(%e, %kernel, %none, %zero, %one, %no)
  %l : Tensor?[] = prim::ListConstruct(%i)
  %x : Tensor = aten::index(%p, %l)
  return (%x)
""",
    "one operator alone stays": """
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::inner(%a, %y)
  return (%b)
""",
    "tensors known to be on another device, or complex, stay": """
graph(%x : Float(*, *, device=cuda:0), %y : ComplexFloat(*, *)):
  %a : Tensor = aten::mul(%x, %x)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::mul(%y, %y)
  %d : Tensor = aten::neg(%c)
  return (%b, %d)
""",
    "fuse_graph{least=3}: two operators are too few": """
graph(%x : Float(*, *)):
  %a : Float(*, *) = aten::exp(%x)
  %b : Float(*, *) = aten::sigmoid(%a)
  return (%b)
""",
    "fuse_graph{most=2}: groups have so many operators at most": """
graph(%x : Float(*, *)):
  %a : Float(*, *) = aten::exp(%x)
  %b : Float(*, *) = aten::sigmoid(%a)
  %c : Float(*, *) = aten::tanh(%b)
  %d : Float(*, *) = aten::neg(%c)
  return (%d)
""",
    "fuse_graph{alone=True}: an operator that computes is a group by itself, with the views that it reads": """
graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::inner(%a, %y)
  %t : Tensor = aten::transpose(%b, %0, %1)
  %c : Tensor = aten::relu(%t)
  return (%c)
""",
    "fuse_graph{alone=True}: products, views, joins and lookups are left to PyTorch": """
graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::mm(%x, %y)
  %t : Tensor = aten::transpose(%y, %0, %1)
  %list : Tensor[] = prim::ListConstruct(%x, %y)
  %b : Tensor = aten::cat(%list, %0)
  return (%a, %t, %b)
""",
    "fuse_graph{alone=True}: a sum with a gradient that may not exist joins others, and is not a group by itself": """
graph(%x : Tensor, %y : Tensor?, %z : Tensor):
  %a : Tensor = autodiff::plus(%x, %y)
  %b : Tensor = aten::tanh(%a)
  %c : Tensor = aten::inner(%b, %x)
  %d : Tensor = autodiff::plus(%c, %y)
  return (%d)
""",
    "fuse_graph{ordered=False}: scans and indices of extremes are left to PyTorch, as on GPUs": """
graph(%x : Tensor):
  %0 : int = prim::Constant[value=-1]()
  %f : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::sigmoid(%a)
  %c : Tensor = aten::cumsum(%b, %0, %none)
  %d : Tensor = aten::neg(%c)
  %e : Tensor = aten::tanh(%d)
  %i : Tensor = aten::argmax(%e, %0, %f)
  return (%i)
""",
}
