"""Graphs before the pass ``peephole``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "negations of negations and of comparisons": """
graph(%p : bool, %a : float, %b : float):
  %1 : bool = aten::__not__(%p)
  %2 : bool = aten::__not__(%1)
  %3 : bool = aten::eq(%a, %b)
  %4 : bool = aten::__not__(%3)
  %r : (bool, bool) = prim::TupleConstruct(%2, %4)
  return (%r)
""",
    "what NaN answers differently, and a negation of a tensor's negation, stay": """
graph(%a : float, %b : float, %x : Tensor):
  %1 : bool = aten::lt(%a, %b)
  %2 : bool = aten::__not__(%1)
  %3 : Tensor = aten::neg(%x)
  %4 : Tensor = aten::neg(%3)
  %r : (bool, Tensor) = prim::TupleConstruct(%2, %4)
  return (%r)
""",
    "casts to the type that is there": """
graph(%n : int, %f : float, %x : Tensor, %o : Tensor?):
  %1 : int = aten::Int(%n)
  %2 : float = aten::Float(%f)
  %3 : float = aten::Float(%n)
  %4 : Tensor = prim::unchecked_cast(%x)
  %5 : Tensor = aten::_unwrap_optional(%x)
  %6 : Tensor = aten::_unwrap_optional(%o)
  %r : (int, float, float, Tensor, Tensor, Tensor) = prim::TupleConstruct(%1, %2, %3, %4, %5, %6)
  return (%r)
""",
    "numbers that change nothing; of ints alone, since -0.0 + 0 is 0.0 and a tensor gets a new one": """
graph(%n : int, %f : float, %x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %1 : int = aten::mul(%one, %n)
  %2 : int = aten::add(%1, %zero)
  %3 : int = aten::sub(%2, %zero)
  %4 : int = aten::floordiv(%3, %one)
  %5 : int = aten::sub(%zero, %4)
  %6 : float = aten::add(%f, %zero)
  %7 : Tensor = aten::mul(%x, %one)
  %8 : Tensor = aten::add(%x, %zero, %one)
  %r : (int, float, Tensor, Tensor) = prim::TupleConstruct(%5, %6, %7, %8)
  return (%r)
""",
    "the least of numbers that are written out; a list that is written to stays": """
graph(%a : int, %b : int, %x : float, %p : bool):
  %1 : int[] = prim::ListConstruct(%a, %b, %a)
  %2 : int = prim::min(%1)
  %3 : float[] = prim::ListConstruct(%x)
  %4 : float = prim::max(%3)
  %5 : int[] = prim::ListConstruct(%a, %b)
  %6 : int[] = aten::append(%5, %a)
  %7 : int = prim::max(%5)
  %8 : bool[] = prim::ListConstruct(%p, %p)
  %9 : bool = prim::min(%8)
  %r : (int, float, int, bool) = prim::TupleConstruct(%2, %4, %7, %9)
  return (%r)
""",
    "is it None, where the type decides": """
graph(%x : Tensor, %o : Tensor?):
  %none : NoneType = prim::Constant()
  %1 : bool = aten::__is__(%x, %none)
  %2 : bool = aten::__isnot__(%none, %x)
  %3 : bool = aten::__is__(%o, %none)
  %r : (bool, bool, bool) = prim::TupleConstruct(%1, %2, %3)
  return (%r)
""",
    "is it another object, where a tensor is new": """
graph(%x : Tensor, %y : Tensor, %c : bool):
  %one : int = prim::Constant[value=1]()
  %p : float = prim::Constant[value=0.5]()
  %sum : Tensor = aten::add(%x, %y, %one)
  %view : Tensor = aten::transpose(%x, %one, %one)
  %chosen : Tensor = prim::If(%c)
    block0():
      -> (%sum)
    block1():
      %3 : Tensor = aten::neg(%x)
      -> (%3)
  %same : Tensor = aten::contiguous(%x, %one)
  %dropped : Tensor = aten::dropout(%x, %p, %c)
  %written : Tensor = aten::add_(%x, %y, %one)
  %4 : bool = aten::__is__(%sum, %x)
  %5 : bool = aten::__isnot__(%y, %view)
  %6 : bool = aten::__is__(%chosen, %y)
  %7 : bool = aten::__is__(%chosen, %sum)
  %8 : bool = aten::__is__(%same, %x)
  %9 : bool = aten::__is__(%dropped, %x)
  %10 : bool = aten::__is__(%written, %x)
  %11 : bool = aten::__is__(%x, %y)
  %r : (bool, bool, bool, bool, bool, bool, bool, bool) = prim::TupleConstruct(%4, %5, %6, %7, %8, %9, %10, %11)
  return (%r)
""",
    "is it another object, of a value that a node forwards": """
graph(%x : Tensor, %l : Tensor[], %t : (Tensor, int)):
  %first : Tensor, %second : Tensor = prim::ListUnpack(%l)
  %third : Tensor, %n : int = prim::TupleUnpack(%t)
  %fourth : Tensor = prim::unchecked_cast(%x)
  %1 : bool = aten::__is__(%first, %x)
  %2 : bool = aten::__is__(%first, %second)
  %3 : bool = aten::__is__(%third, %x)
  %4 : bool = aten::__is__(%fourth, %x)
  %r : (bool, bool, bool, bool) = prim::TupleConstruct(%1, %2, %3, %4)
  return (%r)
""",
    "is it a Tensor, where the type before casts decides": """
graph(%x : Tensor, %n : int, %b : bool, %u : Union(Tensor, int)):
  %wide : Union(Tensor, int) = prim::unchecked_cast(%x)
  %number : Union(Tensor, int) = prim::unchecked_cast(%n)
  %flag : Union(Tensor, bool) = prim::unchecked_cast(%b)
  %1 : bool = prim::isinstance[types=[Tensor]](%wide)
  %2 : bool = prim::isinstance[types=[Tensor]](%number)
  %3 : bool = prim::isinstance[types=[int, float]](%flag)
  %4 : bool = prim::isinstance[types=[Tensor]](%u)
  %5 : Tensor = prim::unchecked_cast(%wide)
  %6 : int = prim::unchecked_cast(%number)
  %r : (bool, bool, bool, bool, Tensor, int) = prim::TupleConstruct(%1, %2, %3, %4, %5, %6)
  return (%r)
""",
    "is it a Tensor or an object, where a cast to a member of a Union decides": """
graph(%u : Union(Tensor, Generator), %w : Union(Tensor, int)):
  %x : Tensor = prim::unchecked_cast(%u)
  %y : Tensor = prim::unchecked_cast(%w)
  %1 : bool = prim::isinstance[types=[Tensor]](%x)
  %2 : bool = prim::isinstance[types=[int]](%y)
  %3 : bool = prim::isinstance[types=[Generator]](%x)
  %4 : bool = prim::isinstance[types=[Tensor]](%u)
  %r : (bool, bool, bool, bool) = prim::TupleConstruct(%1, %2, %3, %4)
  return (%r)
""",
    "a choice of True and False": """
graph(%p : bool):
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %1 : bool, %2 : bool = prim::If(%p)
    block0():
       = prim::Print(%p)
      -> (%yes, %no)
    block1():
      -> (%no, %yes)
  %r : (bool, bool) = prim::TupleConstruct(%1, %2)
  return (%r)
""",
    "lists that are written out": """
graph(%x : Tensor, %y : Tensor):
  %last : int = prim::Constant[value=-1]()
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %1 : int = aten::len(%l)
  %2 : Tensor = aten::__getitem__(%l, %last)
  %3 : Tensor, %4 : Tensor = prim::ListUnpack(%l)
  %r : (int, Tensor, Tensor, Tensor) = prim::TupleConstruct(%1, %2, %3, %4)
  return (%r)
""",
    "a list that is written to, and an element that is not there": """
graph(%x : Tensor, %y : Tensor):
  %zero : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x)
  %m : Tensor[] = aten::append(%l, %y)
  %1 : int = aten::len(%l)
  %2 : Tensor = aten::__getitem__(%l, %zero)
  %none : Tensor[] = prim::ListConstruct()
  %3 : Tensor = aten::__getitem__(%none, %zero)
  %r : (int, Tensor, Tensor) = prim::TupleConstruct(%1, %2, %3)
  return (%r)
""",
    "the length of a dict without other users, and of one that escapes": """
graph():
  %d : Dict(str, int) = prim::DictConstruct()
  %1 : int = aten::len(%d)
  %e : Dict(str, int) = prim::DictConstruct()
  %2 : int = aten::len(%e)
  %r : (int, int, Dict(str, int)) = prim::TupleConstruct(%1, %2, %e)
  return (%r)
""",
    "the number of dimensions is the length of the shape": """
graph(%x : Tensor):
  %s : int[] = aten::size(%x)
  %n : int = aten::len(%s)
  return (%n)
""",
    "… but not where the tensor is written to": """
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %s : int[] = aten::size(%x)
  %y : Tensor = aten::unsqueeze_(%x, %zero)
  %n : int = aten::len(%s)
  return (%n)
""",
    "what follows from the type of a tensor": """
graph(%x : Float(2, *, device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %six : int = prim::Constant[value=6]()
  %seven : int = prim::Constant[value=7]()
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %1 : int = aten::dim(%x)
  %2 : int = aten::size(%x, %zero)
  %3 : int = aten::size(%x, %one)
  %4 : int = aten::size(%x, %six)
  %5 : int = prim::dtype(%x)
  %6 : Device = prim::device(%x)
  %7 : bool = aten::is_floating_point(%x)
  %8 : Float(2, *, device=cpu) = aten::to(%x, %six, %no, %no, %none)
  %9 : Float(2, *, device=cpu) = aten::to(%x, %seven, %no, %no, %none)
  %a : (int, int, int, int, int) = prim::TupleConstruct(%1, %2, %3, %4, %5)
  %b : (Device, bool, Tensor, Tensor) = prim::TupleConstruct(%6, %7, %8, %9)
  %r : ((int, int, int, int, int), (Device, bool, Tensor, Tensor)) = prim::TupleConstruct(%a, %b)
  return (%r)
""",
    "what is no longer so, for the tensor is written to": """
graph(%x : Float(2, 3)):
  %zero : int = prim::Constant[value=0]()
  %y : Tensor = aten::unsqueeze_(%x, %zero)
  %1 : int = aten::dim(%x)
  %2 : int = aten::size(%x, %zero)
  %r : (int, int) = prim::TupleConstruct(%1, %2)
  return (%r)
""",
    "a list is not None, although it was cast to an Optional; what a cast narrows may be None": """
graph(%o : int[]?):
  %none : NoneType = prim::Constant()
  %xs : int[] = prim::ListConstruct()
  %stride : int[]? = prim::unchecked_cast(%xs)
  %1 : bool = aten::__is__(%stride, %none)
  %2 : bool = aten::__isnot__(%stride, %none)
  %other : int[]? = prim::unchecked_cast(%o)
  %3 : bool = aten::__is__(%other, %none)
  %r : (bool, bool, bool) = prim::TupleConstruct(%1, %2, %3)
  return (%r)
""",
    "an attribute that is None by its type, of an object that may not have it yet, stays": """
graph(%m : __torch__.Entry, %x : Tensor):
  %w : NoneType = prim::GetAttr[name="weight"](%m)
  %t : bool = prim::GetAttr[name="training"](%m)
  %r : (Tensor, NoneType, bool) = prim::TupleConstruct(%x, %w, %t)
  return (%r)
""",
    "dropout that returns its argument; one with a probability, one that may be in training, and errors stay": """
graph(%x : Tensor, %training : bool):
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %zero : float = prim::Constant[value=0.]()
  %half : float = prim::Constant[value=0.5]()
  %two : float = prim::Constant[value=2.]()
  %1 : Tensor = aten::dropout(%x, %zero, %yes)
  %2 : Tensor = aten::feature_dropout(%1, %half, %no)
  %3 : Tensor = aten::alpha_dropout(%2, %zero, %training)
  %4 : Tensor = aten::dropout(%3, %half, %yes)
  %5 : Tensor = aten::dropout(%4, %half, %training)
  %6 : Tensor = aten::dropout(%5, %two, %no)
  return (%6)
""",
}
