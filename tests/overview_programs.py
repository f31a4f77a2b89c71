"""The programs of TorchScript's technical overview, as it shows them; test_overview.py tests them."""

# ruff: noqa: T201
# fmt: off

import math
from typing import Any, Optional

import torch
from torch import Tensor


def arithmetic(a, b):
  c = a + b
  d = c * c
  e = torch.tanh(d * c)
  return d + (e + e)


def branch(a, b, c):
    d = a + b
    if c:
        e = d + d
    else:
        e = b + d
    return e


def loop(x):
    z = x
    for i in range(x.size(0)):
        z = z * z
    return z


def continues(i: int):
    while i < 5:
      if i == 3:
        i += 1
        continue
      i += 2
    return i


def continues_transformed(i: int):
    continue_loop = i < 5
    while continue_loop:
      did_exit = False
      if i == 3:
        i = i + 1
        continue_loop = i < 5
        did_exit = True
      if did_exit:
        pass
      else:
        i = i + 2
        continue_loop = i < 5
    return i


def raises(i: int):
    if i < 0:
      raise Exception("Negative input")
    else:
      return math.sqrt(i)
    print(i)  # unreachable code


def refined(cond: bool, i: int):
    for _ in range(2):
        if cond:
          if i < 3:
              x = torch.jit.annotate(Optional[int], None)
              continue
          x = 1
        else:
          x = 2
        print(x)


def refined_rearranged(cond: bool, i: int):
    for _ in range(2):
        did_continue = False
        if cond:
          if i < 3:
            x = torch.jit.annotate(Optional[int], None)
            did_continue = True
          else:
            did_continue = False
            x = torch.jit.annotate(Optional[int], 1)
          if not did_continue:
            x = 1
        else:
          x = torch.jit.annotate(Optional[int], 2)
        if not did_continue:
          print(x)


def constant_of_a_module(x: float):
    return math.pi * x


def lstm_cell(x, hx, cx, w_ih, w_hh, b_ih, b_hh):
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
    ingate = torch.sigmoid(ingate)
    forgetgate = torch.sigmoid(forgetgate)
    cellgate = torch.tanh(cellgate)
    outgate = torch.sigmoid(outgate)
    cy = (forgetgate * cx) + (ingate * cellgate)
    hy = outgate * torch.tanh(cy)
    return hy, cy


def views(t: Tensor):
    t2 =  t[0] # view of one slice of t
    t2.relu_() # inplace relu operator, note t is modified as well!
    torch.add(t, t, out=t) # update t, without using temporary memory if possible
    return t, t2


def forked(x, y):
    fut = torch.jit.fork(arithmetic, x, y)
    z = x - y
    v = torch.jit.wait(fut)
    return v, z


class Multiplier:
    def __init__(self, mult: int):
        self.mult = mult

    def __enter__(self):
        self.mult += 1
        return self.mult

    def __exit__(self, type: Any, value: Any, tb: Any):
        self.mult -= 3


def with_statement(x, c: Multiplier):
    with c as mult:
      y = x + mult
    return y
