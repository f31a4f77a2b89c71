"""wrong answer: float instead of Tensor

Program 229 of seed 5; unoptimised, call 0.

result is 0.0, not tensor(0)
"""
import math
import torch
from torch import Tensor
class Meter:
    pass
def f(x: Tensor):
    best = math.inf
    for v2 in x:
        best = v2.sum()
    k2 = 10.0
    return best
SUBJECT = f
CALLS = [lambda: (torch.tensor([0]),)]
WAYS = ('unoptimised',)
