"""Graphs before the pass ``simplify_carried_values``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "elements of tuples, also of tuples in tuples": """
graph(%h : Tensor, %s.1 : (Tensor, (Tensor, int)), %n : int):
  %true : bool = prim::Constant[value=1]()
  %s : (Tensor, (Tensor, int)) = prim::Loop(%n, %true, %s.1)
    block0(%i : int, %s.2 : (Tensor, (Tensor, int))):
      %a : Tensor, %t : (Tensor, int) = prim::TupleUnpack(%s.2)
      %b : Tensor, %k : int = prim::TupleUnpack(%t)
      %c : Tensor = aten::mul(%a, %b)
      %t.3 : (Tensor, int) = prim::TupleConstruct(%a, %k)
      %s.3 : (Tensor, (Tensor, int)) = prim::TupleConstruct(%c, %t.3)
      -> (%true, %s.3)
  return (%s)
""",
    "a tuple that has no value before the loop stays": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %s.1 : (Tensor, int) = prim::Uninitialized()
  %s : (Tensor, int) = prim::Loop(%n, %true, %s.1)
    block0(%i : int, %s.2 : (Tensor, int)):
      %s.3 : (Tensor, int) = prim::TupleConstruct(%x, %i)
      -> (%true, %s.3)
  return (%s)
""",
    "a tuple that an iteration takes from elsewhere stays": """
graph(%s.1 : (Tensor, Tensor), %l : (Tensor, Tensor)[], %n : int):
  %true : bool = prim::Constant[value=1]()
  %s : (Tensor, Tensor) = prim::Loop(%n, %true, %s.1)
    block0(%i : int, %s.2 : (Tensor, Tensor)):
      %s.3 : (Tensor, Tensor) = aten::__getitem__(%l, %i)
      -> (%true, %s.3)
  return (%s)
""",
    "a list that grows is the list that it was": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %l.1 : Tensor[] = prim::ListConstruct()
  %l : Tensor[], %y : Tensor = prim::Loop(%n, %true, %l.1, %x)
    block0(%i : int, %l.2 : Tensor[], %a : Tensor):
      %b : Tensor = aten::tanh(%a)
      %one : Tensor[] = prim::ListConstruct(%b)
      %l.3 : Tensor[] = aten::add_(%l.2, %one)
      %two : Tensor[] = prim::ListConstruct(%a, %b)
      %l.4 : Tensor[] = aten::add_(%l.3, %two)
      -> (%true, %l.4, %b)
  %r : (Tensor[], Tensor) = prim::TupleConstruct(%l, %y)
  return (%r)
""",
    "a list that each iteration makes stays": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %l.1 : Tensor[] = prim::ListConstruct()
  %l : Tensor[] = prim::Loop(%n, %true, %l.1)
    block0(%i : int, %l.2 : Tensor[]):
      %one : Tensor[] = prim::ListConstruct(%x)
      %l.3 : Tensor[] = aten::add(%l.2, %one)
      -> (%true, %l.3)
  return (%l)
""",
    "elements of the iteration are selected": """
graph(%x : Tensor, %dim : int, %h.1 : Tensor):
  %true : bool = prim::Constant[value=1]()
  %parts : Tensor[] = aten::unbind(%x, %dim)
  %n : int = aten::len(%parts)
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%i : int, %h.2 : Tensor):
      %a : Tensor = aten::__getitem__(%parts, %i)
      %h.3 : Tensor = aten::mul(%h.2, %a)
      -> (%true, %h.3)
  return (%h)
""",
    "other elements, and those of lists with other uses, stay": """
graph(%x : Tensor, %dim : int, %h.1 : Tensor, %m : int):
  %true : bool = prim::Constant[value=1]()
  %parts : Tensor[] = aten::unbind(%x, %dim)
  %n : int = aten::len(%parts)
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%i : int, %h.2 : Tensor):
      %k : int = aten::mul(%i, %m)
      %a : Tensor = aten::__getitem__(%parts, %k)
      %h.3 : Tensor = aten::mul(%h.2, %a)
      -> (%true, %h.3)
  %seen : Tensor[] = aten::unbind(%x, %dim)
  %q : int = aten::len(%seen)
  %g : Tensor = prim::Loop(%q, %true, %h)
    block0(%j : int, %g.2 : Tensor):
      %b : Tensor = aten::__getitem__(%seen, %j)
      %g.3 : Tensor = aten::mul(%g.2, %b)
      -> (%true, %g.3)
  %r : (Tensor, Tensor[]) = prim::TupleConstruct(%g, %seen)
  return (%r)
""",
    "elements that are written to stay: PyTorch refuses that of parts of unbind": """
graph(%x : Tensor, %dim : int, %h.1 : Tensor):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %parts : Tensor[] = aten::unbind(%x, %dim)
  %n : int = aten::len(%parts)
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%i : int, %h.2 : Tensor):
      %a : Tensor = aten::__getitem__(%parts, %i)
      %b : Tensor = aten::add_(%a, %h.2, %one)
      %h.3 : Tensor = aten::mul(%h.2, %b)
      -> (%true, %h.3)
  return (%h)
""",
    "slices of all of a tensor are that": """
graph(%x : Tensor(*, *, *), %h.1 : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %a : Tensor(*, *, *) = aten::slice(%x, %zero, %none, %none, %one)
      %b : Tensor(*, *) = aten::select(%a, %one, %t)
      %c : Tensor(*, *) = aten::slice(%b, %one, %zero, %none, %one)
      %h.3 : Tensor = aten::mul(%c, %h.2)
      -> (%true, %h.3)
  return (%h)
""",
    "slices that may be out of range, or that are returned, stay": """
graph(%x : Tensor(*), %y : Tensor, %h.1 : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %h : Tensor, %r : Tensor = prim::Loop(%n, %true, %h.1, %h.1)
    block0(%t : int, %h.2 : Tensor, %r.2 : Tensor):
      %a : Tensor = aten::slice(%y, %zero, %none, %none, %one)
      %b : Tensor(*) = aten::slice(%x, %one, %none, %none, %one)
      %c : Tensor(*) = aten::slice(%x, %zero, %none, %none, %one)
      %d : Tensor = aten::mul(%a, %b)
      -> (%true, %c, %d)
  return (%r, %h)
""",
}
