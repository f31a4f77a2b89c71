"""Graphs before the pass ``normalize_ops``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
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
