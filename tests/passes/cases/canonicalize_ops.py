"""Graphs before the pass ``canonicalize_ops``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a chunk that is unpacked, in a branch too": """
graph(%x : Tensor, %p : bool):
  %two : int = prim::Constant[value=2]()
  %l : Tensor[] = aten::chunk(%x, %two, %two)
  %one : int = prim::Constant[value=1]()
  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)
  %r : Tensor = prim::If(%p)
    block0():
      %m : Tensor[] = aten::chunk(%b, %one, %two)
      %c : Tensor = prim::ListUnpack(%m)
      -> (%c)
    block1():
      -> (%a)
  return (%r)
""",
    "unpacked into more or fewer than asked for: some tensors have so many": """
graph(%x : Tensor):
  %five : int = prim::Constant[value=5]()
  %zero : int = prim::Constant[value=0]()
  %l : Tensor[] = aten::chunk(%x, %five, %zero)
  %a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor = prim::ListUnpack(%l)
  return (%a)
""",
    "a number of chunks that is computed": """
graph(%x : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %l : Tensor[] = aten::chunk(%x, %n, %zero)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)
  return (%a)
""",
    "a list that is used elsewhere": """
graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %l : Tensor[] = aten::chunk(%x, %two, %two)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)
  return (%l)
""",
    "something happens before the error of too few chunks": """
graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %l : Tensor[] = aten::chunk(%x, %two, %two)
   = prim::Print(%two)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)
  return (%a)
""",
}
