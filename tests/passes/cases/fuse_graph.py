"""Graphs before the pass ``fuse_graph``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "a chain of elementwise operators": """
graph(%x : Float(*, *), %y : Float(*, *)):
  %one : int = prim::Constant[value=1]()
  %a : Float(*, *) = aten::add(%x, %y, %one)
  %b : Float(*, *) = aten::tanh(%a)
  %c : Float(*, *) = aten::mul(%b, %x)
  return (%c)
""",
    "a value that is used outside is a result of the group": """
graph(%x : Float(*, *)):
  %a : Float(*, *) = aten::exp(%x)
  %b : Float(*, *) = aten::sigmoid(%a)
  return (%a, %b)
""",
    "a row operator and what is computed of its result": """
graph(%x : Float(*, *)):
  %dim : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %a : Float(*, *) = aten::softmax(%x, %dim, %none)
  %b : Float(*, *) = aten::neg(%a)
  return (%b)
""",
    "nothing is known of the tensors, and a group asks at run time": """
graph(%x : Tensor):
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::sigmoid(%a)
  return (%b)
""",
    "an operator alone stays": """
graph(%x : Float(*, *)):
  %a : Float(*, *) = aten::exp(%x)
  return (%a)
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
    "what is written to between two operators keeps them apart": """
graph(%x : Float(*, *), %y : Float(*, *)):
  %one : int = prim::Constant[value=1]()
  %a : Float(*, *) = aten::exp(%x)
  %w : Float(*, *) = aten::add_(%x, %y, %one)
  %b : Float(*, *) = aten::mul(%a, %x)
  return (%b)
""",
    "a branch ends a group": """
graph(%x : Float(*, *), %p : bool):
  %a : Float(*, *) = aten::exp(%x)
  %b : Float(*, *) = aten::sigmoid(%a)
  %c : Float(*, *) = prim::If(%p)
    block0():
      %d : Float(*, *) = aten::tanh(%b)
      %e : Float(*, *) = aten::neg(%d)
      -> (%e)
    block1():
      -> (%b)
  return (%c)
""",
}
