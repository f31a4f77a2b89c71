"""Graphs before the pass ``fill_elements``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "numbers that are assigned to an element": """
graph(%x : Float(*), %n : int, %f : float):
  %no : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %a : Tensor() = aten::select(%x, %zero, %n)
  %d : int = prim::dtype(%a)
  %c : Device = prim::device(%a)
  %t : Tensor() = aten::tensor[assigned=1](%n, %d, %c, %no)
  %r : Tensor() = aten::copy_(%a, %t, %no)
  %u : Tensor() = aten::tensor[assigned=1](%f, %d, %c, %no)
  %q : Tensor() = aten::copy_(%a, %u, %no)
  return (%x)
""",
    "several elements, another dtype, a Tensor with further uses, and a Tensor that the program makes": """
graph(%x : Float(*, *), %n : int, %f : float):
  %no : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %row : Float(*) = aten::select(%x, %zero, %n)
  %dr : int = prim::dtype(%row)
  %cr : Device = prim::device(%row)
  %t : Tensor() = aten::tensor[assigned=1](%f, %dr, %cr, %no)
  %1 : Tensor = aten::copy_(%row, %t, %no)
  %e : Float() = aten::select(%row, %zero, %n)
  %six : int = prim::Constant[value=6]()
  %ce : Device = prim::device(%e)
  %de : int = prim::dtype(%e)
  %u : Tensor() = aten::tensor[assigned=1](%f, %six, %ce, %no)
  %2 : Tensor() = aten::copy_(%e, %u, %no)
  %v : Tensor() = aten::tensor[assigned=1](%f, %de, %ce, %no)
  %3 : Tensor() = aten::copy_(%e, %v, %no)
  %w : Tensor() = aten::tensor(%f, %de, %ce, %no)
  %4 : Tensor() = aten::copy_(%e, %w, %no)
  return (%x, %v)
""",
}
