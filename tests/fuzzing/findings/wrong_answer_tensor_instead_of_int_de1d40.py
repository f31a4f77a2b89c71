"""wrong answer: Tensor instead of int

Program 36 of seed 1004; unoptimised, call 0.

result is tensor(0), not 0
"""
import torch
from torch import Tensor
def f(x: Tensor):
    acc = 0
    for row in x:
        acc = row.sum()
    return acc
SUBJECT = f
CALLS = [lambda: (torch.zeros(0),)]
WAYS = ('unoptimised',)
