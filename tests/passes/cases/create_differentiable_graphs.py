"""Graphs before the pass ``create_differentiable_graphs``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "operators with formulas": """
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mm(%x, %w)
  %b : Tensor = aten::tanh(%a)
  return (%b)
""",
    "an operator without a formula splits the graph": """
graph(%x : Tensor):
  %a : Tensor = aten::tanh(%x)
  %b : Tensor = aten::sigmoid(%a)
  %c : Tensor = aten::frac(%b)
  %d : Tensor = aten::exp(%c)
  %e : Tensor = aten::neg(%d)
  return (%e)
""",
    "one operator alone stays": """
graph(%x : Tensor):
  %a : Tensor = aten::tanh(%x)
  return (%a)
""",
    "create_differentiable_graphs{threshold=1}: one operator alone is a graph": """
graph(%x : Tensor):
  %a : Tensor = aten::tanh(%x)
  return (%a)
""",
    "what is written to stays outside": """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::tanh(%x)
  %b : Tensor = aten::add_(%a, %y, %one)
  %c : Tensor = aten::sigmoid(%b)
  %d : Tensor = aten::exp(%c)
  return (%d)
""",
    "what needs no gradient stays": """
graph(%x : Float(*, *, requires_grad=0), %y : Float(*, *, requires_grad=0)):
  %a : Float(*, *, requires_grad=0) = aten::mul(%x, %y)
  %b : Float(*, *, requires_grad=0) = aten::tanh(%a)
  return (%b)
""",
    "a loop, where loops are allowed: create_differentiable_graphs{loops=True}": """
graph(%n : int, %x : Tensor, %w : Tensor):
  %true : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::mm(%a, %w)
      %c : Tensor = aten::tanh(%b)
      -> (%true, %c)
  return (%y)
""",
    "a loop that may raise, over a recurrent cell: create_differentiable_graphs{threshold=3, loops=True}": """
graph(%n : int, %xs : Tensor, %h.1 : Tensor, %w : Tensor, %v : Tensor, %wrong : bool, %message : str):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
       = prim::If(%wrong)
        block0():
           = prim::RaiseException(%message, %none)
          -> ()
        block1():
          -> ()
      %x : Tensor = aten::select(%xs, %zero, %t)
      %h.3 : Tensor = aten::rnn_tanh_cell(%x, %h.2, %w, %v, %none, %none)
      -> (%true, %h.3)
  return (%h)
""",
    "a recurrent cell counts as its operators: create_differentiable_graphs{threshold=3}": """
graph(%x : Tensor, %h : Tensor, %w : Tensor, %v : Tensor):
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::gru_cell(%x, %h, %w, %v, %none, %none)
  return (%y)
""",
}
