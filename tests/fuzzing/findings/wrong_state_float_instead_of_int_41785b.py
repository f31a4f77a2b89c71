"""wrong state: float instead of int

Program 388 of seed 5; unoptimised, call 0.

state['history'][1] is 6.0, not 6
"""
from dataclasses import dataclass
from typing import List
import torch
from torch import Tensor, nn
@dataclass
class Meter:
    value: int
    count: Tensor

    def update(self, n: float):
        return 4

    def get(self, n: int):
        pass
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.names: List[str] = ['a', 'b']
        self.history: List[float] = [0.5]

    def forward(self, x: Tensor, y, z: Tensor, k: bool, n: float):
        self.history.append(max(n / -2, n + n))
SUBJECT = M
CALLS = [lambda: (torch.tensor([[-4], [1]], dtype=torch.int64), torch.tensor([1.5, -0.5], dtype=torch.float32).requires_grad_(), torch.tensor([[-2.5], [-1.25]], dtype=torch.float32).requires_grad_(), True, 3)]
WAYS = ('unoptimised',)
