"""wrong tangent: Tensor value

Program 2285 of seed 3016; jvp, call 0.

tangent[1] is tensor([0., 0.]), not tensor([nan, 0.])
"""
import math
import torch
def f(x):
    w = x.sum(dim=1).floor().softmax(0)
    b = w
    b[1] = 1.5
    return w
SUBJECT = f
CALLS = [lambda: (torch.tensor([[0.5, 0.5, 1.0], [math.nan, 1.5, 2.0]]),)]
WAYS = ('jvp',)
