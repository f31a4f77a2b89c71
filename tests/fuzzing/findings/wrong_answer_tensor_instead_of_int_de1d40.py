"""wrong answer: Tensor instead of int

Program 83 of seed 5; unoptimised, call 0.

result is tensor(0), not 0
"""
import torch
from torch import Tensor
def f(x: Tensor):
    best = 0
    for row in x:
        best = row.sum()
    return best
SUBJECT = f
CALLS = [lambda: torch.tensor([[]])]
WAYS = ('unoptimised',)
