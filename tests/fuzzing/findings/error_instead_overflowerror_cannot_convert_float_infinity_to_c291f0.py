"""error instead: OverflowError: cannot convert float infinity to integer

Program 43 of seed 5; unoptimised, call 0.

OverflowError: cannot convert float infinity to integer
"""
import math
import torch
from torch import Tensor
def f(y: Tensor):
    acc = 0
    for v2 in y:
        acc += v2.sum().item()
    return 0
SUBJECT = f
CALLS = [lambda: (torch.tensor([-math.inf]).requires_grad_(),)]
WAYS = ('unoptimised',)
