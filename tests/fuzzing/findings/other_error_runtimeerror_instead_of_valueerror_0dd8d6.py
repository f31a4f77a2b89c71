"""other error: RuntimeError instead of ValueError

Program 2925 of seed 3005; unoptimised, call 0.

raises RuntimeError: a Tensor with 2 elements cannot be converted to Scalar, not ValueError: math domain error
"""
import math
from typing import List
import torch
from torch import Tensor
class Point:

    def __init__(self, value: Tensor, count: List[int], rest: int):
        self.rest = 0

    def update(self):
        pass
def f(x: Tensor):
    point = Point(torch.tensor(4.5, dtype=torch.float32), [1, 0, 10], max(math.floor(-7), max((3 for i in range(4)), default=-2)))
    c = 0
    pair = x.kthvalue(1, 1)
    None
    for v2 in x:
        top = v2.sum()
    math.fmod(top, 2.5) + c
    best = float('-inf')
    for i3, row in enumerate(pair):
        if row.item() < best:
            pass
SUBJECT = f
CALLS = [lambda: (torch.tensor([[0.1, -1.25], [3.75, math.inf]], dtype=torch.float32).requires_grad_(),)]
WAYS = ('unoptimised',)
