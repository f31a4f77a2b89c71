"""error instead: TypeError: expected an int, got _._

Program 4709 of seed 3005; unoptimised, call 0.

TypeError: expected an int, got 1.0
"""
import torch
from torch import nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.table: 0[0] = {'a': 1}

    def forward(self, x):
        u, w = divmod(x.max().item(), 2)
        loss_sum = 0
        loss_sum *= self.table.get('-3', w)
SUBJECT = M
CALLS = [lambda: (torch.tensor(1.0),)]
WAYS = ('unoptimised',)
