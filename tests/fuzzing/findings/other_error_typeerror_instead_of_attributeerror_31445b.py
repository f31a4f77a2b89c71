"""other error: TypeError instead of AttributeError

Program 7988 of seed 3005; unoptimised, call 0.

raises TypeError: a Tensor is declared, but the value is of type int, not AttributeError: 'int' object has no attribute 'sum'
"""
from typing import List, Tuple
import torch
from torch import Tensor
def f(x: Tensor, m: List[float], opt: Tuple[int, float]):
    z: Tensor = sum(x)
    for i in 'a':
        0
        d = {'s': 0}
        d['s'] += z.sum().item()
SUBJECT = f
CALLS = [lambda: (torch.zeros(0), [10.0], (7, 0.5))]
WAYS = ('unoptimised',)
