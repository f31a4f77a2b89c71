"""wrong state: int instead of float

Program 64 of seed 5; unoptimised, call 0.

state['count'] is 4, not 4.5
"""
import torch
from torch import nn
def combine():
    return 0
class M(nn.Module):

    def __init__(self):
        super().__init__()
        0.0
        self.count = 0
        True

    def forward(self, y):
        0
        self.count = y.max().item()
SUBJECT = M
CALLS = [lambda: (torch.tensor([4.5, 0.0, 2.0], dtype=torch.float32),)]
WAYS = ('unoptimised',)
