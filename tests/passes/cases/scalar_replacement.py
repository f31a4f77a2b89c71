"""Graphs before the pass ``scalar_replacement``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "states of layers, which are read before the loop and after it": """
graph(%a : Tensor, %b : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %last : int = prim::Constant[value=-1]()
  %l : Tensor[] = prim::ListConstruct(%a, %b)
  %first : Tensor = aten::__getitem__(%l, %zero)
   = prim::Loop(%n, %true)
    block0(%i : int):
      %x : Tensor = aten::__getitem__(%l, %zero)
      %y : Tensor = aten::mul(%x, %first)
      %1 : Tensor[] = aten::_set_item(%l, %zero, %y)
      %z : Tensor = aten::__getitem__(%l, %last)
      %u : Tensor = aten::add(%y, %z, %zero)
      %v : Tensor = aten::__getitem__(%l, %zero)
      %w : Tensor = aten::mul(%u, %v)
      %2 : Tensor[] = aten::_set_item(%l, %last, %w)
      -> (%true)
  %s : Tensor = aten::stack(%l, %zero)
  return (%s, %l)
""",
    "lists that are only read, elements that are chosen at run time, and lists that a loop uses as a whole stay": """
graph(%a : Tensor, %b : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%a)
  %k : Tensor[] = prim::ListConstruct(%a)
  %m : Tensor[] = prim::ListConstruct(%a)
   = prim::Loop(%n, %true)
    block0(%i : int):
      %x : Tensor = aten::__getitem__(%l, %zero)
      %1 : Tensor[] = aten::_set_item(%k, %i, %x)
      %2 : Tensor[] = aten::_set_item(%m, %zero, %x)
      %3 : Tensor = aten::stack(%m, %zero)
      %4 : Tensor[] = aten::_set_item(%m, %zero, %3)
      -> (%true)
  return (%l, %k, %m)
""",
    "lists that were seen before the loop, or are written to in a branch of it, stay": """
graph(%a : Tensor, %n : int, %p : bool):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%a)
  %t : (Tensor[], int) = prim::TupleConstruct(%l, %n)
  %m : Tensor[] = prim::ListConstruct(%a)
   = prim::Loop(%n, %true)
    block0(%i : int):
      %1 : Tensor[] = aten::_set_item(%l, %zero, %a)
       = prim::If(%p)
        block0():
          %2 : Tensor[] = aten::_set_item(%m, %zero, %a)
          -> ()
        block1():
          -> ()
      -> (%true)
  return (%t, %m)
""",
}
