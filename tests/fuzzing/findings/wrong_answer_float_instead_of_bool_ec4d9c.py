"""wrong answer: float instead of bool

Program 880 of seed 1003; unoptimised, call 0.

result is 1.0, not True
"""
from dataclasses import dataclass
import torch
from torch import Tensor, nn
@dataclass
class Point:
    value: float

    def update(self, n: float):
        pass
class M(nn.Module):

    def forward(self, y: Tensor, s: float):
        point = Point(0)
        point.update(y.mean().item())
        return s
SUBJECT = M
CALLS = [lambda: (torch.tensor(1.0).t().contiguous().t(), True)]
WAYS = ('unoptimised',)
