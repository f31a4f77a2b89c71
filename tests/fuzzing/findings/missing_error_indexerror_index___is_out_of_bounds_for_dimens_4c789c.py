"""missing error: IndexError: index _ is out of bounds for dimension _ with size _

Program 5662 of seed 3005; saved, call 0.

returns None, but eager raises IndexError: index 0 is out of bounds for dimension 0 with size 0
"""
import torch
from torch import Tensor
def f(y: Tensor):
    y[0]
SUBJECT = f
CALLS = [lambda: (torch.zeros(0),)]
WAYS = ('saved',)
