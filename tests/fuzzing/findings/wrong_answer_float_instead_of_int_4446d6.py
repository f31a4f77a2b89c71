"""wrong answer: float instead of int

Program 50 of seed 5; unoptimised, call 0.

result[1] is 1.0, not 1
"""
from typing import List
import torch
def f(y, flag: List[float]):
    u = 2 ** (-(len(flag) % 5))
    y2 = 2
    out = 0
    for v in 'a':
        pass
    k = 1
    return (flag, u, y2, out, k)
SUBJECT = f
CALLS = [lambda: (torch.tensor([0.25], dtype=torch.float32), [-0.5, 1.0, 10.0, 0.5, 3.75])]
WAYS = ('unoptimised',)
