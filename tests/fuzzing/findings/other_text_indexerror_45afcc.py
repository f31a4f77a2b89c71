"""other text: IndexError

Program 1644 of seed 3005; unoptimised, call 0.

'select(): index 0 out of range for tensor of size [0] at dimension 0', not 'index 0 is out of bounds for dimension 0 with size 0'
"""
from dataclasses import dataclass
import torch
from torch import Tensor
@dataclass
class Meter:
    value: Tensor
    count: int
def f(y: Tensor):
    Meter((1 + y)[0], 0)
SUBJECT = f
CALLS = [lambda: (torch.zeros(0),)]
WAYS = ('unoptimised',)
