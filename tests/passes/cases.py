"""What each pass does, as graphs before it. The graphs behind it are in ``tests/golden/passes``."""

from __future__ import annotations

CASES: dict[str, dict[str, str]] = {}
"""By the name of the pass: a title, and the text of a graph."""

CASES["canonicalize_modified_loops"] = {
    "a for loop with a break counts by hand": """
graph(%n : int, %x : int):
  %true : bool = prim::Constant[value=1]()
  %y : int = prim::Loop(%n, %true, %x)
    block0(%i : int, %y.1 : int):
      %go : bool = aten::ne(%i, %x)
      %y.2 : int = aten::add(%y.1, %i)
      -> (%go, %y.2)
  return (%y)
""",
    "a condition that is not known to hold at first is asked too": """
graph(%n : int, %c : bool):
  %true : bool = prim::Constant[value=1]()
   = prim::Loop(%n, %c)
    block0(%i : int):
       = prim::Print(%i)
      -> (%true)
  return (%n)
""",
    "plain for and while loops stay": """
graph(%n : int, %x : int):
  %true : bool = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %y : int = prim::Loop(%n, %true, %x)
    block0(%i : int, %y.1 : int):
      %y.2 : int = aten::add(%y.1, %i)
      -> (%true, %y.2)
  %c : bool = aten::lt(%y, %n)
  %z : int = prim::Loop(%max, %c, %y)
    block0(%j : int, %z.1 : int):
      %z.2 : int = aten::add(%z.1, %n)
      %d : bool = aten::lt(%z.2, %n)
      -> (%d, %z.2)
  return (%z)
""",
}

CASES["normalize_ops"] = {
    "aliases": """
graph(%x : Tensor, %y : Tensor, %two : int):
  %1 : Tensor = aten::multiply(%x, %y)
  %2 : Tensor = aten::absolute_(%1)
  %3 : Tensor = aten::special_expit(%2)
  %4 : Tensor = aten::special_polygamma(%two, %3)
  return (%4)
""",
    "subtraction the other way round": """
graph(%x : Tensor, %y : Tensor, %n : int):
  %1 : Tensor = aten::rsub(%x, %y, %n)
  %2 : Tensor = aten::rsub(%1, %n, %n)
  return (%2)
""",
    "identity of bools is equality; that of others is not": """
graph(%p : bool, %q : bool, %x : Tensor?):
  %none : NoneType = prim::Constant()
  %1 : bool = aten::__is__(%p, %q)
  %2 : bool = aten::__isnot__(%1, %q)
  %3 : bool = aten::__is__(%x, %none)
  %4 : (bool, bool) = prim::TupleConstruct(%2, %3)
  return (%4)
""",
}

CASES["lower_simple_tuples"] = {
    "unpacked where it is made": """
graph(%x : Tensor, %n : int):
  %t : (Tensor, int) = prim::TupleConstruct(%x, %n)
  %a : Tensor, %b : int = prim::TupleUnpack(%t)
  %c : Tensor = aten::mul(%a, %b)
  return (%c)
""",
    "indexed and cut; what is used as a tuple stays": """
graph(%x : Tensor, %n : int):
  %last : int = prim::Constant[value=-1]()
  %t : (Tensor, int, int) = prim::TupleConstruct(%x, %n, %n)
  %a : int = prim::TupleIndex(%t, %last)
  %u : (Tensor, int) = prim::TupleSlice[beg=0, end=2](%t)
  %b : (int, (Tensor, int), (Tensor, int, int)) = prim::TupleConstruct(%a, %u, %t)
  return (%b)
""",
    "a tuple that comes from elsewhere stays": """
graph(%t : (Tensor, int)):
  %a : Tensor, %b : int = prim::TupleUnpack(%t)
  return (%b)
""",
}

CASES["constant_propagation"] = {
    "numbers, strings and tuples are computed": """
graph(%x : int):
  %2 : int = prim::Constant[value=2]()
  %3 : float = prim::Constant[value=0.5]()
  %s : str = prim::Constant[value="ab"]()
  %4 : int = aten::mul(%2, %2)
  %5 : float = aten::add(%4, %3)
  %6 : str = aten::add(%s, %s)
  %7 : (float, str) = prim::TupleConstruct(%5, %6)
  %8 : ((float, str), int) = prim::TupleConstruct(%7, %x)
  return (%8)
""",
    "a branch that is known is the only one": """
graph(%x : Tensor):
  %3 : int = prim::Constant[value=3]()
  %4 : bool = aten::gt(%3, %3)
  %5 : Tensor = prim::If(%4)
    block0():
      %6 : Tensor = aten::neg(%x)
      -> (%6)
    block1():
      %7 : Tensor = aten::mul(%x, %3)
      -> (%7)
  return (%5)
""",
    "what both branches give is given without them": """
graph(%x : int, %c : bool):
  %y : int, %z : int, %w : int = prim::If(%c)
    block0():
      %1 : int = prim::Constant[value=1]()
      -> (%x, %1, %x)
    block1():
      %2 : int = prim::Constant[value=1]()
      %3 : int = aten::neg(%x)
      -> (%x, %2, %3)
  %4 : (int, int, int) = prim::TupleConstruct(%y, %z, %w)
  return (%4)
""",
    "a loop that never runs, and what a loop carries unchanged": """
graph(%x : int, %n : int):
  %true : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %a : int = prim::Loop(%0, %true, %x)
    block0(%i : int, %a.1 : int):
      %a.2 : int = aten::add(%a.1, %i)
      -> (%true, %a.2)
  %b : int, %c : int = prim::Loop(%n, %true, %a, %n)
    block0(%j : int, %b.1 : int, %c.1 : int):
      %b.2 : int = aten::add(%b.1, %c.1)
      -> (%true, %b.2, %c.1)
  %d : (int, int) = prim::TupleConstruct(%b, %c)
  return (%d)
""",
    "what raises, prints or can be written to is left to run": """
graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %s : str = prim::Constant[value="x"]()
  %2 : int = aten::floordiv(%1, %0)
   = prim::Print(%s)
  %3 : int[] = prim::ListConstruct(%0, %1)
  %4 : int = aten::len(%3)
  %5 : (int, int[], int) = prim::TupleConstruct(%2, %3, %4)
  return (%5)
""",
}

CASES["constant_pooling"] = {
    "each constant once, at the start": """
graph(%x : int, %c : bool):
  %1 : int = prim::Constant[value=1]()
  %2 : int = aten::add(%x, %1)
  %3 : int = prim::If(%c)
    block0():
      %4 : int = prim::Constant[value=1]()
      %5 : int = prim::Constant[value=2]()
      %6 : int = aten::mul(%2, %4)
      %7 : int = aten::mul(%6, %5)
      -> (%7)
    block1():
      -> (%1)
  return (%3)
""",
    "equal is not the same: types, signs of zero": """
graph():
  %1 : int = prim::Constant[value=1]()
  %2 : float = prim::Constant[value=1.]()
  %3 : bool = prim::Constant[value=1]()
  %4 : float = prim::Constant[value=0.]()
  %5 : float = prim::Constant[value=-0.]()
  %6 : NoneType = prim::Constant()
  %7 : int? = prim::Constant()
  %8 : NoneType = prim::Constant()
  %9 : (int, float, bool, float, float, NoneType, int?, NoneType) = prim::TupleConstruct(%1, %2, %3, %4, %5, %6, %7, %8)
  return (%9)
""",
}

CASES["canonicalize_outputs"] = {
    "by first use, the unused ones last": """
graph(%x : int, %c : bool):
  %a : int, %b : int, %d : int = prim::If(%c)
    block0():
      %1 : int = aten::neg(%x)
      -> (%1, %x, %x)
    block1():
      %2 : int = aten::neg(%x)
      -> (%x, %2, %x)
  %e : int = aten::neg(%d)
  %f : int = aten::add(%b, %e)
  return (%f)
""",
    "loops carry in that order too": """
graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %a : int, %b : int = prim::Loop(%n, %true, %n, %n)
    block0(%i : int, %a.1 : int, %b.1 : int):
      %a.2 : int = aten::add(%b.1, %i)
      %b.2 : int = aten::mul(%a.1, %i)
      -> (%true, %a.2, %b.2)
  %c : int = aten::neg(%b)
  %d : int = aten::mul(%c, %a)
  return (%d)
""",
    "the order outside decides the one inside": """
graph(%x : int, %c : bool):
  %a : int, %b : int = prim::If(%c)
    block0():
      %a.1 : int, %b.1 : int = prim::If(%c)
        block0():
          %1 : int = aten::neg(%x)
          -> (%1, %x)
        block1():
          -> (%x, %x)
      -> (%a.1, %b.1)
    block1():
      -> (%x, %x)
  %d : int = aten::sub(%b, %a)
  return (%d)
""",
}

CASES["dead_code_elimination"] = {
    "nodes, outputs and whole branches that nobody needs": """
graph(%x : Tensor, %c : bool, %n : int):
  %1 : Tensor = aten::neg(%x)
  %2 : Tensor, %3 : Tensor = prim::If(%c)
    block0():
      %4 : Tensor = aten::abs(%x)
      %5 : Tensor = aten::exp(%x)
      -> (%4, %5)
    block1():
      -> (%x, %x)
   = prim::If(%c)
    block0():
      %6 : int = aten::neg(%n)
      -> ()
    block1():
      -> ()
  return (%2)
""",
    "what a loop carries for itself alone stays, what nobody reads goes": """
graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %a : int, %b : int, %c : int = prim::Loop(%n, %true, %n, %n, %n)
    block0(%i : int, %a.1 : int, %b.1 : int, %c.1 : int):
      %a.2 : int = aten::add(%a.1, %i)
      %b.2 : int = aten::mul(%b.1, %i)
      %c.2 : int = aten::neg(%i)
      -> (%true, %a.2, %b.2, %c.2)
  return (%a)
""",
    "a write to what is not read again goes, one to what is stays": """
graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %2 : Tensor = aten::add_(%a, %1, %1)
  %3 : Tensor = aten::add_(%b, %1, %1)
  %4 : Tensor = aten::abs(%b)
  %5 : Tensor = aten::add_(%b, %1, %1)
  return (%4)
""",
    "a write through a view, into a list, or in a loop is seen": """
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::select(%a, %0, %0)
  %2 : Tensor = aten::add_(%b, %1, %1)
  %l : int[] = prim::ListConstruct()
   = prim::Loop(%n, %true)
    block0(%i : int):
      %m : int = aten::len(%l)
       = prim::Print(%m)
      %3 : int[] = aten::append(%l, %i)
      -> (%true)
  return (%a)
""",
    "what is written to from outside, printed, raised or called stays": """
graph(%x : Tensor, %l : int[], %n : int):
  %s : str = prim::Constant[value="no"]()
  %t : str = prim::Constant[value="builtins.ValueError"]()
  %1 : Tensor = aten::relu_(%x)
  %2 : int[] = aten::append(%l, %n)
   = prim::Print(%n)
   = prim::RaiseException(%s, %t)
  %3 : int = aten::neg(%n)
  return (%n)
""",
    "a loop on a condition may not end": """
graph(%n : int, %c : bool):
  %true : bool = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
   = prim::Loop(%n, %true)
    block0(%i : int):
      %1 : int = aten::neg(%i)
      -> (%true)
   = prim::Loop(%max, %c)
    block0(%j : int):
      %d : bool = aten::lt(%n, %n)
      -> (%d)
  return (%n)
""",
}

CASES["annotate_warns"] = {
    "each its number": """
graph(%s : str, %n : int):
   = aten::warn(%s, %n)
   = aten::warn(%s, %n)
  return (%n)
""",
}
