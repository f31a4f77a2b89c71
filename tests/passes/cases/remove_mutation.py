"""Graphs before the pass ``remove_mutation``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a new tensor without other references; uses of the old one after the write take the new one": """
graph(%x : Tensor, %p : bool):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %x, %one)
  %n : int = aten::dim(%y)
  %z : Tensor = aten::relu_(%y)
  %r : Tensor = prim::If(%p)
    block0():
      %a : Tensor = aten::mul(%y, %n)
      -> (%a)
    block1():
      -> (%z)
  return (%r, %y)
""",
    "several writes, one after the other": """
graph(%x : Float(*, *)):
  %one : int = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.5]()
  %y : Float(*, *) = aten::neg(%x)
  %a : Float(*, *) = aten::add_(%y, %half, %one)
  %b : Float(*, *) = aten::sigmoid_(%a)
  %c : Float(*, *) = aten::mul_(%y, %b)
  %d : Float(*, *) = aten::mul_(%y, %x)
  return (%y, %d)
""",
    "activations keep the dtype, whatever it is": """
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %six : int = prim::Constant[value=6]()
  %1 : Tensor = aten::mm(%x, %w)
  %2 : Tensor = aten::hardtanh_(%1, %zero, %six)
  %3 : Tensor = aten::mm(%2, %w)
  %4 : Tensor = aten::silu_(%3)
  return (%4)
""",
    "integers stay integers where no fraction is added": """
graph(%x : Long(*)):
  %one : int = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.5]()
  %y : Long(*) = aten::neg(%x)
  %a : Long(*) = aten::add_(%y, %one, %one)
  %b : Long(*) = aten::mul_(%a, %half)
  return (%b)
""",
    "of another dtype, or of other sizes, the sum might be": """
graph(%x : Tensor, %y : Float(*, *), %z : Double(*, *), %w : Float(*, *)):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::add_(%a, %one, %one)
  %c : Float(*, *) = aten::neg(%y)
  %d : Float(*, *) = aten::add_(%c, %z, %one)
  %e : Float(*, *) = aten::neg(%y)
  %f : Float(*, *) = aten::mul(%y, %w)
  %g : Float(*, *) = aten::add_(%e, %f, %one)
  return (%b, %d, %g)
""",
    "sizes that are known": """
graph(%x : Float(2, 3), %y : Float(3), %z : Float(1), %w : Float(2, 1, 3), %n : Double()):
  %one : int = prim::Constant[value=1]()
  %a : Float(2, 3) = aten::neg(%x)
  %b : Float(2, 3) = aten::add_(%a, %y, %one)
  %c : Float(2, 3) = aten::add_(%b, %z, %one)
  %d : Float(2, 3) = aten::add_(%c, %n, %one)
  %e : Float(2, 3) = aten::add_(%d, %w, %one)
  return (%e)
""",
    "sizes may change": """
graph(%x : Float(*)):
  %zero : int = prim::Constant[value=0]()
  %y : Float(*) = aten::sigmoid(%x)
  %z : Tensor = aten::unsqueeze_(%x, %zero)
  %a : Float(*) = aten::mul_(%y, %z)
  return (%a)
""",
    "an argument, an attribute, a view of an argument": """
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu_(%x)
  %v : Tensor = aten::select(%x, %zero, %zero)
  %b : Tensor = aten::relu_(%v)
  return (%b)
""",
    "it has a view, or is held in a list": """
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %y : Tensor = aten::neg(%x)
  %v : Tensor = aten::select(%y, %zero, %zero)
  %a : Tensor = aten::relu_(%y)
  %z : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%z)
  %b : Tensor = aten::relu_(%z)
  return (%v, %l)
""",
    "a view that is written to: what it is a view of is not new": """
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %y : Tensor = aten::neg(%x)
  %v : Tensor = aten::select(%y, %zero, %zero)
  %a : Tensor = aten::relu_(%v)
  return (%y)
""",
    "a write in a branch, or in a loop, to what is made outside; and to what is made within": """
graph(%x : Tensor, %p : bool, %n : int):
  %true : bool = prim::Constant[value=1]()
  %y : Tensor = aten::neg(%x)
  %r : Tensor = prim::If(%p)
    block0():
      %a : Tensor = aten::relu_(%y)
      -> (%a)
    block1():
      -> (%y)
  %z : Tensor = prim::Loop(%n, %true, %r)
    block0(%i : int, %s : Tensor):
      %b : Tensor = aten::ceil_(%s)
      %c : Tensor = aten::neg(%b)
      %d : Tensor = aten::floor_(%c)
      -> (%true, %c)
  return (%z)
""",
    "lists are made with all that is added to them": """
graph(%x : Tensor, %y : Tensor):
  %zero : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct()
  %z : Tensor = aten::neg(%x)
  %m : Tensor[] = aten::append(%l, %z)
  %k : Tensor[] = prim::ListConstruct(%x)
  %n : Tensor[] = aten::append(%k, %y)
  %o : Tensor[] = aten::add_(%l, %k)
  %q : Tensor[] = aten::_set_item(%o, %zero, %y)
   = aten::insert(%q, %zero, %x)
  %p : Tensor = aten::pop(%l, %zero)
   = aten::reverse(%l)
  %r : Tensor = aten::stack(%l, %zero)
  return (%r, %p)
""",
    "a list that was looked at in between, is in another, or is not from here": """
graph(%x : Tensor, %h : Tensor[], %p : bool):
  %l : Tensor[] = prim::ListConstruct()
  %n : int = aten::len(%l)
  %m : Tensor[] = aten::append(%l, %x)
  %k : Tensor[] = prim::ListConstruct(%x)
  %o : Tensor[][] = prim::ListConstruct(%k)
  %q : Tensor[] = aten::append(%k, %x)
  %i : Tensor[] = aten::append(%h, %x)
  %j : Tensor[] = prim::ListConstruct()
   = prim::If(%p)
    block0():
      %s : Tensor[] = aten::append(%j, %x)
      -> ()
    block1():
      -> ()
  %t : Tensor[] = aten::append(%j, %x)
  return (%n, %l, %o, %j)
""",
    "a list that is concatenated while it grows": """
graph(%x : Tensor, %zero : int):
  %l : Tensor[] = prim::ListConstruct(%x)
  %y : Tensor = aten::cat(%l, %zero)
  %m : Tensor[] = aten::append(%l, %y)
  %z : Tensor = aten::cat(%l, %zero)
  %n : Tensor[] = aten::append(%l, %z)
  %a : Tensor = aten::stack(%l, %zero)
  %b : Tensor = aten::cat(%l, %zero)
  %k : Tensor[] = prim::ListConstruct(%x)
  %c : Tensor = aten::cat(%k, %zero)
  %d : int = aten::len(%k)
  %e : Tensor[] = aten::append(%k, %c)
  return (%a, %b, %d, %k)
""",
    "an index that is not there stays an error": """
graph(%x : Tensor, %n : int):
  %two : int = prim::Constant[value=2]()
  %l : Tensor[] = prim::ListConstruct(%x)
  %m : Tensor[] = aten::append(%l, %x)
  %a : Tensor[] = aten::_set_item(%l, %two, %x)
  %p : Tensor = aten::pop(%l, %n)
  return (%p)
""",
}
