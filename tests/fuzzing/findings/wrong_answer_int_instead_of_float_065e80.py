"""wrong answer: int instead of float

Program 99 of seed 5; unoptimised, call 0.

result[0] is 1, not 1.5
"""
from typing import List
import torch
from torch import nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.names: 0[0] = 'a'
        self.register_buffer('buf', None)

    def forward(self, x):
        values: List[int] = []
        for v in x:
            values += [v.item()]
        return values
SUBJECT = M
CALLS = [lambda: (torch.tensor([1.5, -1.25], dtype=torch.float32),)]
WAYS = ('unoptimised',)
