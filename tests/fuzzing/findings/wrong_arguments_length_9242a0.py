"""wrong arguments: length

Program 1489 of seed 1003; unoptimised, call 0.

arguments[1] is [0, 3], not [0]
"""
from typing import List
import torch
from torch import nn
class Meter:

    def __init__(self, value: List[int], count: int):
        self.value = 'a'
        self.count = 0
class M(nn.Module):

    def forward(self, y, w: List[int]):
        obj = Meter(w, 0)
        obj.count = y.sum().item()
        same = w
        same.pop()
        for e2 in obj.value:
            0 << obj.count % 1
SUBJECT = M
CALLS = [lambda: (torch.tensor(1.5), [0, 3])]
WAYS = ('unoptimised',)
