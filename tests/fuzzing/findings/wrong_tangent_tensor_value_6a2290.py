"""wrong tangent: Tensor value

Program 4749 of seed 3005; jvp, call 0.

tangent[1] is tensor(0.), not tensor(nan)
"""
import math
import torch
def f(x):
    return 0 / torch.sigmoid(x).round().sum().abs()
SUBJECT = f
CALLS = [lambda: torch.tensor([math.nan])]
WAYS = ('jvp',)
